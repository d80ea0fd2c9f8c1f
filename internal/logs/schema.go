package logs

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/recent"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// Schema says what the rows of a log in CSV have.
type Schema struct {
	Format       string // [Bandit], [Labelled] or [OpenBandit]
	File         string // the first
	Columns      []featureColumn
	Actions      []string          // that there are; nil: those that occur
	Items        [][]codec.Feature // of each action; nil: actions have none
	Kind         codec.OutcomeKind // of outcomes
	IDs          bool
	OutcomeTimes bool
}

type featureColumn struct {
	Name string
	Type columnType
}

type columnType uint8

// The types of columns. A cell of an untyped one is a number if it looks like one.
const (
	untyped columnType = iota
	Number
	textColumn
	Ngrams // texts of any length, of which the words count
)

type outcomeColumn struct {
	name     string // of the outcome
	at, time int    // columns; time -1: that of all outcomes
}

// maxColumns of a file leave room for those that are no features.
const maxColumns = 2 * codec.MaxFeatures

// table is what the files of a log in CSV have in common.
type table struct {
	Schema
	o      *Options
	m      Mapping
	header []string
	at     []int            // of the columns of features
	places map[string][]int // of the header: where a name is

	time, outcomeTime, action, value, id, propensity int // columns; -1: none
	outcomes                                         []outcomeColumn

	actions map[string]struct{} // of the rows so far
	items   []codec.Action
	last    int64 // time of the row above
	ids     *recent.Memory[int32]
	key     []byte
}

const (
	emptyFile    = "the file is empty; its first line names the columns"
	labelledHint = "; the first line is for example: label,n_age,c_country"
)

// open reads the header of the first file.
func (t *table) open(c *scan.CSV) error {
	header, err := c.Row()
	switch {
	case errors.Is(err, io.EOF) && t.Format == Labelled:
		return c.Errorf(1, "", "the file is empty%s", labelledHint)
	case errors.Is(err, io.EOF):
		return c.Errorf(1, "", emptyFile)
	case err != nil:
		return err
	case len(header) > maxColumns:
		return c.Errorf(1, "", "the header has %d columns, at most %d are allowed", len(header), maxColumns)
	}
	for _, name := range header {
		t.header = append(t.header, strings.Clone(name))
	}
	return csvFormatOf(t.Format).open(t, c)
}

func (t *table) labelled(c *scan.CSV) error {
	line := c.Line(0)
	if t.header[0] != "label" {
		return c.Errorf(line, t.header[0],
			"the first column must be label%s; for a bandit log name its columns by --action-column, --reward-column "+
				"or --loss-column, --features and others: there are %s", labelledHint, strings.Join(t.header, ", "))
	}
	if len(t.header)-1 > codec.MaxFeatures {
		return c.Errorf(line, "", "%d columns, at most %d are allowed", len(t.header), codec.MaxFeatures+1)
	}
	t.time, t.outcomeTime, t.value, t.id, t.propensity = -1, -1, -1, -1, -1
	for i, name := range t.header[1:] {
		column := featureColumn{name, Number}
		if !strings.HasPrefix(name, "n_") {
			column.Type = textColumn
		}
		switch {
		case column.Type == textColumn && !strings.HasPrefix(name, "c_"):
			return c.Errorf(line, strconv.Quote(name), "a column's name begins with n_ (number) or c_ (category)%s",
				labelledHint)
		case codec.CheckText(name, codec.MaxNameBytes) != nil:
			return c.Errorf(line, strconv.Quote(name),
				"a column's name is UTF-8 of at most %d bytes without control characters", codec.MaxNameBytes)
		case slices.Contains(t.header[1:i+1], name):
			return c.Errorf(line, name, "the column is there twice")
		}
		t.Columns, t.at = append(t.Columns, column), append(t.at, i+1)
	}
	return nil
}

// columns finds what the mapping names among the columns of the header.
func (t *table) columns(c *scan.CSV) error {
	t.places = make(map[string][]int, len(t.header))
	for i, name := range t.header {
		t.places[name] = append(t.places[name], i)
	}
	m := &t.m
	if t.Kind = codec.Loss; m.Reward != "" {
		t.Kind = codec.Reward
	}
	t.IDs, t.OutcomeTimes = m.ID != "", m.OutcomeTime != "" && len(m.Outcomes) == 0
	for _, column := range []struct {
		name string
		into *int
	}{{m.Time, &t.time}, {m.OutcomeTime, &t.outcomeTime}, {m.Action, &t.action}, {m.value(), &t.value}, {m.ID,
		&t.id}, {m.Propensity, &t.propensity}} {
		var err error
		if *column.into, err = t.column(c, column.name); err != nil {
			return err
		}
	}
	if err := t.findOutcomes(c); err != nil {
		return err
	}
	return t.findFeatures(c)
}

// findOutcomes finds the columns of named outcomes. A name ends that of its column, behind the last dot: data frames
// that were made of our events call it outcomes.quality.
func (t *table) findOutcomes(c *scan.CSV) error {
	for _, spec := range t.m.Outcomes {
		column, time, _ := strings.Cut(spec, ":")
		at, err := t.column(c, column)
		if err != nil {
			return err
		}
		o := outcomeColumn{name: column[strings.LastIndexByte(column, '.')+1:], at: at}
		if o.time, err = t.column(c, time); err != nil {
			return err
		}
		switch {
		case o.name == "" || codec.CheckText(o.name, codec.MaxNameBytes) != nil:
			return c.Errorf(c.Line(0), strconv.Quote(column), "an outcome's name is UTF-8 of 1 to %d bytes without "+
				"control characters", codec.MaxNameBytes)
		case slices.ContainsFunc(t.outcomes, func(x outcomeColumn) bool { return x.name == o.name }):
			return c.Errorf(c.Line(0), column, "the outcome %s is there twice", o.name)
		}
		t.outcomes = append(t.outcomes, o)
	}
	return nil
}

// column finds a column by its name; -1 for "".
func (t *table) column(c *scan.CSV, name string) (int, error) {
	switch at := t.places[name]; {
	case name == "":
		return -1, nil
	case len(at) == 0:
		return 0, c.Errorf(c.Line(0), strconv.Quote(name), "there is no such column; there are %s",
			strings.Join(t.header, ", "))
	case len(at) > 1:
		return 0, c.Errorf(c.Line(0), name, "the column is there twice")
	default:
		return at[0], nil
	}
}

func (t *table) findFeatures(c *scan.CSV) error {
	for _, f := range t.m.Features {
		column := featureColumn{Name: f}
		if name, ok := strings.CutSuffix(f, ":text"); ok {
			column = featureColumn{name, textColumn}
		} else if name, ok := strings.CutSuffix(f, ":number"); ok {
			column = featureColumn{name, Number}
		} else if name, ok := strings.CutSuffix(f, ":ngrams"); ok {
			column = featureColumn{name, Ngrams}
		}
		at, err := t.column(c, column.Name)
		if err == nil {
			err = t.feature(c, column, at)
		}
		if err != nil {
			return err
		}
	}
	if prefix := t.m.FeaturePrefix; prefix != "" {
		before := len(t.Columns)
		for i, name := range t.header {
			if !strings.HasPrefix(name, prefix) || slices.Contains(t.at, i) || slices.Contains(t.used(), i) {
				continue
			}
			if err := t.feature(c, featureColumn{Name: name}, i); err != nil {
				return err
			}
		}
		if len(t.Columns) == before {
			return c.Errorf(c.Line(0), "", "no column begins with %q; there are %s", prefix, strings.Join(t.header,
				", "))
		}
	}
	if n := len(t.Columns); n > codec.MaxFeatures {
		return c.Errorf(c.Line(0), "", "%d features, at most %d are allowed", n, codec.MaxFeatures)
	}
	return nil
}

// used returns the columns that have a meaning besides those of features.
func (t *table) used() []int {
	return append(t.after(), t.time, t.action, t.id, t.propensity)
}

// after returns the columns of what is known after the decision only.
func (t *table) after() []int {
	at := []int{t.value, t.outcomeTime}
	for _, o := range t.outcomes {
		at = append(at, o.at, o.time)
	}
	return at
}

func (t *table) feature(c *scan.CSV, column featureColumn, at int) error {
	line := c.Line(0)
	switch {
	case slices.Contains(t.after(), at):
		return c.Errorf(line, column.Name, "it is what is known after the decision only: it cannot be a feature of it")
	case at == t.action:
		return c.Errorf(line, column.Name, "it is the action: it cannot be a feature of the decision")
	case at == t.propensity:
		return c.Errorf(line, column.Name, "it is the propensity of the action: it cannot be a feature of the decision")
	case slices.ContainsFunc(t.Columns, func(o featureColumn) bool { return o.Name == column.Name }):
		return c.Errorf(line, column.Name, "the feature is there twice")
	case codec.CheckText(column.Name, codec.MaxNameBytes) != nil || column.Name == "":
		return c.Errorf(line, strconv.Quote(column.Name),
			"a feature's name is UTF-8 of 1 to %d bytes without control characters", codec.MaxNameBytes)
	}
	if column.Type == untyped {
		column.Type = t.o.types[column.Name]
	}
	if t.o.Typed && t.o.Long != nil && t.o.Long(column.Name) {
		column.Type = Ngrams
	}
	t.Columns, t.at = append(t.Columns, column), append(t.at, at)
	return nil
}

// survey returns the types of the columns of features whose names say none: numbers where every cell is one.
func survey(path string, o Options) (map[string]columnType, error) {
	o.Typed, o.Strict, o.Rejects = false, false, nil
	r, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	types := map[string]columnType{}
	return types, r.Each(func(rec *Record) error {
		for i := range rec.Features {
			f := &rec.Features[i]
			if f.Kind == codec.Text {
				types[f.Name] = textColumn
			} else if _, known := types[f.Name]; !known {
				types[f.Name] = Number
			}
		}
		return nil
	})
}
