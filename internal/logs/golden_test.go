package logs

import (
	"flag"
	"fmt"
	"strings"
	"testing"

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

// goldenRecords says what is read of a log. Columns are those of a mapping, as KEY=COLUMN.
func goldenRecords(t *testing.T, format, text string, columns []string) string {
	o := Options{Format: format, Dedup: 10}
	for _, c := range columns {
		name, value, _ := strings.Cut(c, "=")
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
