package logs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"hindsight/internal/scan"
)

// Names of formats.
const (
	Dsjson  = "dsjson"  // decision-service JSON of Vowpal Wabbit and Azure Personalizer
	CB      = "cb"      // Vowpal Wabbit text, --cb K
	CBADF   = "cb_adf"  // Vowpal Wabbit text, --cb_adf
	CCB     = "ccb"     // Vowpal Wabbit text, --ccb_explore_adf
	JSONL   = "jsonl"   // our events, a JSON object a line; CloudEvents too
	Msgpack = "msgpack" // our events, MessagePack maps one behind the other
	Parquet = "parquet" // a row a record
)

// Names of formats in CSV.
const (
	Labelled   = "multiclass" // a label a row, and features
	Bandit     = "bandit"     // columns that a [Mapping] names
	OpenBandit = "obd"        // Open Bandit data
	Times      = "times"      // columns of times that a [Mapping] names, and nothing else of a bandit log
	itemRows   = "items"      // of Open Bandit data
)

// csvFormat is a format in CSV.
type csvFormat struct {
	name, is string                            // is: what it is; "": no flag names it
	has      func(columns []string) bool       // tells it by its columns; nil: they do not tell it
	open     func(t *table, c *scan.CSV) error // reads the header
}

func csvFormats() []csvFormat {
	return []csvFormat{
		{Labelled, "labelled CSV", nil, (*table).labelled},
		{Bandit, "CSV whose columns are named", nil, (*table).columns},
		{OpenBandit, "Open Bandit CSV or its folder", isOpenBandit, (*table).openBandit},
		{Times, "", nil, (*table).columns},
		{itemRows, "", nil, (*table).columnsOfItems},
	}
}

// csvFormatOf returns the format in CSV of a name, nil if there is none.
func csvFormatOf(name string) *csvFormat {
	for _, f := range csvFormats() {
		if f.name == name {
			return &f
		}
	}
	return nil
}

// CSVFormats returns the formats in CSV that flags name, and what each is.
func CSVFormats() (names, texts []string) {
	for _, f := range csvFormats() {
		if f.is != "" {
			names, texts = append(names, f.name), append(texts, f.name+" ("+f.is+")")
		}
	}
	return names, texts
}

// Formats returns the names of the other formats that are read.
func Formats() []string { return []string{Dsjson, CB, CBADF, CCB, JSONL, Msgpack, Parquet} }

// FormatNames lists them in a text.
func FormatNames() string { return strings.Join(Formats(), ", ") }

// ErrCSV says that a file looks like CSV, whose columns need names.
var ErrCSV = errors.New("this looks like CSV, whose columns must be named: --action-column, --reward-column and " +
	"others, or --mapping")

// ErrLabelled says that a file is a labelled CSV.
var ErrLabelled = errors.New("rows of a labelled CSV are no decisions, so that there is nothing to convert: play it " +
	"with backtest --data, or name its columns")

var errEmpty = errors.New("the log is empty")

var errUnknownFormat = errors.New("the format is not known by its content; name it with --format, one of " +
	"" + FormatNames())

// newDecoder returns the decoder of a file and its format: that of its content where none is named.
func (r *Reader) newDecoder(in *input) (d decoder, format string, err error) {
	format = r.o.Format
	if r.table != nil {
		format = r.table.Format
	}
	head, err := in.head()
	switch {
	case err != nil:
	case format == "":
		format, err = detect(head)
		if errors.Is(err, ErrCSV) && r.account.Files == 0 {
			format, err = r.csvFormat(head)
		}
	case format != Msgpack && format != Parquet:
		err = foreign(head)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", in.name, err)
	}
	switch format {
	case Dsjson:
		return newDsjson(scan.NewLines(in.r)), format, nil
	case CB, CBADF, CCB:
		return &vwText{lines: lines{Lines: scan.NewLines(in.r)}, adf: format != CB, slots: format == CCB}, format, nil
	case JSONL:
		return &jsonEvents{rounds: rounds{o: &r.o}, lines: lines{Lines: scan.NewLines(in.r)}}, format, nil
	case Msgpack:
		return &packEvents{r: in.r}, format, nil
	case Parquet:
		d, err := openParquet(in)
		return d, format, err
	}
	d, err = r.newRows(in, format)
	return d, format, err
}

// csvFormat tells CSV whose columns nobody named.
func (r *Reader) csvFormat(head []byte) (string, error) {
	columns := columnsOf(head)
	for _, f := range csvFormats() {
		if f.has != nil && f.has(columns) {
			return f.name, nil
		}
	}
	switch {
	case r.o.Labelled:
		return Labelled, nil
	case bytes.HasPrefix(head, []byte("label,")):
		return "", ErrLabelled
	}
	return "", ErrCSV
}

// detectBytes of a file decide what it is.
const detectBytes = 64 << 10

// Detect returns the format of a log by its first bytes, decompressed.
func detect(head []byte) (string, error) {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if len(head) < detectBytes-utf8.UTFMax && isBlank(head) {
		return "", errEmpty
	}
	switch c := head[0]; {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet, nil
	case c >= 0x80 && c <= 0x8f, c == 0xde, c == 0xdf:
		return Msgpack, nil
	}
	if err := foreign(head); err != nil {
		return "", err
	}
	for line := range bytes.Lines(head) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] == '{' {
			return detectJSON(text), nil
		}
	}
	if format := detectText(head); format != "" {
		return format, nil
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if scan.Separator(line) != 0 {
		return "", ErrCSV
	}
	return "", fmt.Errorf("%w; it begins with %q", errUnknownFormat, line[:min(len(line), 40)])
}

// detectJSON tells JSON by its first object, which may be cut.
func detectJSON(text []byte) string {
	var s scan.JSON
	s.Reset(text)
	for first := s.Open('{'); s.More(&first, '}'); {
		switch s.Key() {
		case "specversion", "features", "actions", "id", "v", "arms":
			return JSONL
		case "c", "_label_cost", "_label_probability", "_label_Action", "_labelIndex", "_label_ca", "_outcomes",
			"EventId", "RewardValue", "EnqueuedTimeUtc", "Version", "_skipLearn", "pdrop":
			return Dsjson
		}
		s.Skip(1)
	}
	return JSONL
}

// detectText tells Vowpal Wabbit's text, whose lines have a bar: of actions with features
// an example has several lines, and a blank one ends it.
func detectText(head []byte) string {
	lines := bytes.Split(head, []byte("\n"))
	if len(lines) > 1 {
		lines = lines[:len(lines)-1] // it may be cut
	}
	format := ""
	for i, line := range lines {
		label, _, bar := bytes.Cut(line, []byte("|"))
		label = bytes.TrimSpace(label)
		switch {
		case isBlank(line):
			if format != "" && i < len(lines)-1 {
				return CBADF
			}
		case bytes.HasPrefix(label, []byte("ccb ")):
			return CCB
		case !bar:
			return ""
		case len(label) == 0, bytes.HasPrefix(label, []byte("shared")), bytes.HasPrefix(label, []byte("0:")):
			return CBADF
		default:
			format = CB
		}
	}
	return format
}
