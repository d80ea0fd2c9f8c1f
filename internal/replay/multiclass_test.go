package replay

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/logs"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

func read(t testing.TB, text string) *Rounds {
	t.Helper()
	m, err := readLabelled("t.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMulticlass(t *testing.T) {
	m := read(t, "\ufefflabel,n_x,c_y,n_z\nred,1.5,?,-3\nblue,,\"u,v\",1e3\nred,0,,\n")
	if got := m.Actions; !reflect.DeepEqual(got, []string{"blue", "red"}) {
		t.Errorf("actions %v", got)
	}
	if m.Len() != 3 || m.Columns != 1+2+2 || m.Name != "t.csv" {
		t.Errorf("%d rounds, %d columns, name %s", m.Len(), m.Columns, m.Name)
	}
	number := func(name string, v float64) codec.Feature {
		return codec.Feature{Name: name, Kind: codec.Number, Value: v}
	}
	text := func(name, v string) codec.Feature { return codec.Feature{Name: name, Kind: codec.Text, Text: v} }
	for i, want := range [][]codec.Feature{
		{number("n_x", 1.5), text("c_y", "?"), number("n_z", -3)},
		{text("c_y", "u,v"), number("n_z", 1000)},
		{number("n_x", 0)},
	} {
		var c codec.Context
		m.Context(&c, i)
		if !reflect.DeepEqual(c.Features, want) {
			t.Errorf("row %d: %v, want %v", i, c.Features, want)
		}
		label := []int{1, 0, 1}[i]
		if int(m.table.Action[i]) != label || m.Loss(i, label) != 0 || m.Loss(i, 1-label) != 1 {
			t.Errorf("row %d: label %d, losses %v %v", i, m.table.Action[i], m.Loss(i, 0), m.Loss(i, 1))
		}
	}
}

func TestMulticlassErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "t.csv:1: the file is empty; the first line is for example: label,n_age"},
		{"label,n_x\n", "t.csv:2: there are no rows"},
		{"n_x,label\n", "t.csv:1: column n_x: the first column must be label"},
		{"label,age\n", `t.csv:1: column "age": a column's name begins with n_ (number) or c_ (category)`},
		{"label,n_x,n_x\n", "t.csv:1: column n_x: the column is there twice"},
		{"label,n_x\na,1\nb\n", "t.csv:3: 1 cells, but the header has 2 columns"},
		{"label,n_x\na,1\nb,1,2\n", "t.csv:3: 3 cells, but the header has 2 columns"},
		{"label,n_x\na,1\n\n,1\n", "t.csv:4: column label: the label is missing"},
		{"label,n_x,n_y\na,1,2\nb,1,?\n", `t.csv:3: column n_y: "?" is not a finite number`},
		{"label,n_x\na,NaN\n", `t.csv:2: column n_x: "NaN" is not a finite number`},
		{"label,n_x\na,1e999\n", `t.csv:2: column n_x: "1e999" is not a finite number`},
		{"label,c_x\na,\"1\n", "t.csv:2: not CSV: "},
		{"label,c_x\na,\xff\n", "t.csv:2: column c_x: a category is UTF-8"},
		{"label,c_x\n\ta,a\n", "t.csv:2: column label: a label is UTF-8 of at most 256 bytes without control " +
			"characters"},
		{"label,c_x\n\xff,a\n", "t.csv:2: column label: a label is UTF-8"},
		{"label,c_x\n" + strings.Repeat("l", 300) + ",a\n", "t.csv:2: column label: a label is UTF-8 of at most " +
			"256 bytes"},
	} {
		_, err := readLabelled("t.csv", strings.NewReader(c.text))
		var at *scan.LineError
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.As(err, &at) {
			t.Errorf("%q:\ngot  %v\nwant %s…", c.text, err, c.want)
		}
	}
	if _, err := openLog(t.TempDir()+"/none.csv", logs.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestPublicSets checks what the replayer finds in the two public sets.
func TestPublicSets(t *testing.T) {
	for _, c := range []struct {
		name                   string
		rows, columns, actions int
	}{
		{"pendigits", 10992, 17, 10},
		{"mushroom", 8124, 118, 2},
	} {
		path := "../../../shared/data/multiclass/" + c.name + ".csv"
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the public data sets are not here: %v", err)
		}
		m, err := openLog(path, logs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Len() != c.rows || m.Columns != c.columns || len(m.Actions) != c.actions {
			t.Errorf("%s: %d rows, %d columns, %d actions, want %+v", c.name, m.Len(), m.Columns, len(m.Actions), c)
		}
		var x codec.Context
		for i := range m.Len() {
			if m.Context(&x, i); x.Validate() != nil {
				t.Fatalf("%s row %d: %v", c.name, i, x.Validate())
			}
		}
		uniform, best, _ := reference(m)
		if want := 1 - 1/float64(c.actions); best != 0 || uniform < want-1e-9 || uniform > want+1e-9 {
			t.Errorf("%s: uniform %v, best %v", c.name, uniform, best)
		}
	}
}

func FuzzReadMulticlass(f *testing.F) {
	f.Add("label,n_x,c_y\nred,1.5,?\nblue,,\"u,v\"\n")
	f.Add("\ufefflabel\r\na\r\n\r\nb\r\n")
	f.Add("label,n_x\na,-0\na,1e308\n")
	f.Add("label,c_0\n0,000\n\f,")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := readLabelled("t.csv", strings.NewReader(text))
		if err != nil {
			checkPlace(t, err)
			return
		}
		var c codec.Context
		distinct := map[string]bool{}
		for i := range m.Len() {
			m.Context(&c, i)
			if err := c.Validate(); err != nil {
				t.Fatalf("%q row %d: %v", text, i, err)
			}
			if m.table.Action[i] < 0 || int(m.table.Action[i]) >= len(m.Actions) {
				t.Fatalf("%q row %d: label %d", text, i, m.table.Action[i])
			}
			for _, f := range c.Features {
				if f.Kind == codec.Text {
					distinct[f.Name+"\x00"+f.Text] = true
				}
			}
		}
		want := 1 + len(distinct)
		for _, name := range m.table.Features() {
			if strings.HasPrefix(name, "n_") {
				want++
			}
		}
		if m.Columns != want {
			t.Fatalf("%q: %d columns, want %d", text, m.Columns, want)
		}
	})
}
