package logs

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what testdata/records.golden should say")

// TestGoldenRecords: what a log says, by format, to the last field. A block of the file is == name format,
// the log, -- and what was read of it: records with the fields that say something, its account, errors.
func TestGoldenRecords(t *testing.T) {
	const file = "testdata/records.golden"
	all, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, block := range strings.Split(string(all), "== ")[1:] {
		head, rest, _ := strings.Cut(block, "\n")
		text, want, ok := strings.Cut(rest, "\n--\n")
		words := strings.Fields(head)
		if !ok || len(words) < 2 {
			t.Fatalf("%s: no block: %q", file, block)
		}
		got := goldenRecords(t, words[1], text+"\n", words[2:])
		if got != want && !*update {
			t.Errorf("%s:\n%s\nwant\n%s", head, got, want)
		}
		fmt.Fprintf(&out, "== %s\n%s\n--\n%s", head, text, got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
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
	said := func(v any) {
		x := reflect.Indirect(reflect.ValueOf(v))
		for i := range x.NumField() {
			if f := x.Type().Field(i); f.IsExported() && f.Name != "File" && f.Name != "Shown" && !x.Field(i).IsZero() {
				fmt.Fprintf(&out, " %s:%v", f.Name, x.Field(i))
			}
		}
		out.WriteString("\n")
	}
	o.Stdin = strings.NewReader(text)
	r, err := Open(Stdin, o)
	if err != nil {
		return err.Error() + "\n"
	}
	records, err := readAll(t, r)
	for i := range records {
		if n, ok := r.EventOf(records[i].ID); ok {
			fmt.Fprint(&out, " event ", n)
		}
		said(&records[i])
	}
	a := r.Account()
	said(a)
	for _, e := range append(a.Errors(), fmt.Sprint(err)) {
		out.WriteString(e + "\n")
	}
	return out.String()
}
