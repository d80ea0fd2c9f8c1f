package logs

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/testkit/golden"
)

var update = flag.Bool("update", false, "write what testdata/records.golden should say")

// TestGoldenRecords: what a log says, by format, to the last field. A block of the file is == name format,
// the log, -- and what was read of it: records with the fields that say something, its account, errors.
func TestGoldenRecords(t *testing.T) {
	golden.Blocks(t, *update, "testdata/records.golden", func(words []string, log string) string {
		return goldenRecords(t, words[1], log, words[2:])
	})
}

// TestGoldenWritten: what is written of our events in the formats that are text, to the byte.
func TestGoldenWritten(t *testing.T) {
	golden.Blocks(t, *update, "testdata/written.golden", func(words []string, log string) string {
		var out strings.Builder
		r, err := Open(Stdin, Options{Format: JSONL, Inactive: true, Stdin: strings.NewReader(log)})
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewWriter(&out, words[1])
		if err != nil {
			t.Fatal(err)
		}
		err = r.Each(func(rec *Record) error {
			if err := w.Write(rec); err != nil {
				fmt.Fprintln(&out, err)
			}
			return nil
		})
		if err = errors.Join(err, w.Close()); err != nil || r.Account().Malformed > 0 {
			t.Fatal(err, r.Account().Errors())
		}
		return out.String()
	})
}

// goldenRecords says what is read of a log. Columns are those of a mapping, as KEY=COLUMN; other words are options.
func goldenRecords(t *testing.T, format, text string, columns []string) string {
	o := Options{Format: strings.TrimPrefix(format, "by-content"), Dedup: 10}
	for _, c := range columns {
		name, value, _ := strings.Cut(c, "=")
		switch name {
		case "labelled":
			o.Labelled = true
		case "typed":
			o.Typed = true
		case "inactive":
			o.Inactive = true
		case "range":
			o.Range = loop.Range{Min: -1, Max: 1, Clip: value == "clip"}
		case "actions":
			o.Actions = strings.Split(value, ",")
		case "long":
			o.Long = func(feature string) bool { return feature == value }
		case "keys":
			o.Keys = strings.Split(value, ",")
		}
		for _, k := range mappingKeys() {
			switch {
			case k.name != name:
			case k.text != nil:
				*k.text(&o.Mapping) = value
			default:
				*k.list(&o.Mapping) = strings.Split(value, ",")
			}
		}
	}
	var out strings.Builder
	o.Stdin = strings.NewReader(text)
	r, err := Open(Stdin, o)
	if err != nil {
		return err.Error() + "\n"
	}
	if s := r.Schema(); s != nil {
		out.WriteString("schema" + golden.Fields(s, "File", "Format"))
	}
	records, err := readAll(t, r)
	for i := range records {
		if n, ok := r.EventOf(records[i].ID); ok {
			fmt.Fprint(&out, " event ", n)
		}
		out.WriteString(golden.Fields(&records[i], "File"))
	}
	a := r.Account()
	out.WriteString(golden.Fields(a, "Shown"))
	for _, e := range append(a.Errors(), fmt.Sprint(err)) {
		out.WriteString(e + "\n")
	}
	return out.String()
}
