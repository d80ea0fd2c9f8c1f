package model

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/oracle"
)

const linearText = `{"hindsight_class":1,"kind":"linear","features":["age"],"actions":["red","green"]}
{"prior":2,"w":[[0.5,0.25],[-1,1]]}

{"w":[[0,0.75],[0,2]]}
`

func TestClassFile(t *testing.T) {
	c, err := ParseClass("f.jsonl", []byte(linearText))
	if err != nil {
		t.Fatal(err)
	}
	want := &ClassFile{Kind: LinearClass, Features: []string{"age"}, Actions: []string{"red", "green"},
		Functions: []Function{
			{Prior: 2, W: [][]float64{{0.5, 0.25}, {-1, 1}}},
			{Prior: 1, W: [][]float64{{0, 0.75}, {0, 2}}},
		}}
	if !reflect.DeepEqual(c, want) {
		t.Fatalf("got %+v, want %+v", c, want)
	}
	class, err := c.Class()
	if err != nil {
		t.Fatal(err)
	}
	x := &oracle.Input{
		Features: []oracle.Feature{{Name: "age", Kind: oracle.Number, Value: 0.5}},
		Actions:  []oracle.Action{{Name: "green"}, {Name: "red"}},
	}
	got := make([]float64, 2)
	for a, want := range [][]float64{{0.5, 1}, {0.5, 0.75}} { // 2 is clipped to 1
		if class.Eval(got, x, a); !reflect.DeepEqual(got, want) {
			t.Errorf("action %s: got %v, want %v", x.Actions[a].Name, got, want)
		}
	}
	if q := c.Priors(); !reflect.DeepEqual(q, []float64{2, 1}) {
		t.Errorf("priors %v", q)
	}
}

func TestTabularFile(t *testing.T) {
	c, err := ParseClass("f.jsonl", []byte(`{"hindsight_class":1,"kind":"tabular","features":["country","vip"],`+
		`"actions":["a","b"]}
{"prior":1,"table":{"DE|true":[0.25,1],"FR|false":[0,0.5]}}`))
	if err != nil {
		t.Fatal(err)
	}
	class, err := c.Class()
	if err != nil {
		t.Fatal(err)
	}
	x := &oracle.Input{
		Features: []oracle.Feature{{Name: "vip", Kind: oracle.Bool, Value: 1},
			{Name: "country", Kind: oracle.Text, Text: "DE"}},
		Actions: []oracle.Action{{Name: "a"}, {Name: "b"}},
	}
	got := make([]float64, 1)
	if class.Eval(got, x, 0); got[0] != 0.25 {
		t.Errorf("got %v, want 0.25", got)
	}
}

func TestClassErrors(t *testing.T) {
	head := `{"hindsight_class":1,"kind":"linear","features":["x"],"actions":["a","b"]}` + "\n"
	table := strings.Replace(head, "linear", "tabular", 1)
	for _, c := range []struct{ text, want string }{
		{"", "f:1: the class file is empty"},
		{"\n\n", "f:1: the class file is empty"},
		{"{}", "f:1: the first line is not a class header"},
		{`{"w":[[1]]}`, `f:1: class header: unknown field "w"`},
		{`{"hindsight_class":2}`, "f:1: hindsight_class is 2, this version reads 1"},
		{`{"hindsight_class":1,"kind":"tree"}`,
			`f:1: kind: expected linear | logistic | tabular | mixed | shared, found "tree"`},
		{`{"hindsight_class":1,"kind":"linear"}`, "f:1: actions: expected at least one name"},
		{`{"hindsight_class":1,"kind":"linear","actions":["a","a"]}`, `f:1: actions[1]: "a" is there twice`},
		{`{"hindsight_class":1,"kind":"linear","actions":["a"],"features":[""]}`, "f:1: features[0] is empty"},
		{`{"hindsight_class":1`, "f:1: class header: the line ends inside a JSON object"},
		{head, "f:1: the class has no function"},
		{head + `{"w":[[1,2],[3,4]]} {}`, "f:2: function: more than one JSON object"},
		{head + "\n" + `{"w":[[1,2]]}`, "f:3: linear class: 1 rows for 2 actions; for example {"},
		{head + `{"w":[[1,2],[3]]}`,
			`f:2: linear class: row 1, of a number a feature and the intercept: 1 numbers where 2 are expected`},
		{head + `{"w":[[1,2],[3,1e999]]}`, "f:2: function: "},
		{head + `{"w":[[1,2],[3,"x"]]}`, "f:2: function: "},
		{head + `{"prior":0,"w":[[1,2],[3,4]]}`, "f:2: prior: expected a positive number"},
		{head + `{"table":{"1":[0,1]}}`, "f:2: a function of a linear class has w, and nothing else"},
		{table + `{"w":[[1,2],[3,4]]}`, "f:2: a function of a tabular class has table, and nothing else"},
		{table + `{"table":{"1":[0]}}`, `f:2: tabular class: key "1": 1 losses for 2 actions`},
	} {
		_, err := ParseClass("f", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\ngot  %v\nwant %s…", c.text, err, c.want)
		}
		if e := new(Error); err != nil && (!errors.As(err, &e) || e.Line == 0) {
			t.Errorf("%q: the error has no line: %v", c.text, err)
		}
	}
}

// TestClassTooLarge holds that a table is counted as the class stores it: dense.
func TestClassTooLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"hindsight_class":1,"kind":"tabular","features":["x"],"actions":["a"]}` + "\n")
	for i := range 2100 {
		b.WriteString(`{"table":{"` + strings.Repeat("k", i%200+1) + string(rune('A'+i/200)) + `":[0]}}` + "\n")
	}
	if _, err := ParseClass("f", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than the") {
		t.Errorf("2100 functions with a key each: %v, want the limit of %d", err, maxClassNumbers)
	}
}

func drawClass(t *rapid.T) *ClassFile {
	name := names(8)
	number := rapid.Float64Range(-1e12, 1e12)
	c := &ClassFile{
		Kind:     rapid.SampledFrom([]string{LinearClass, LogisticClass, tabularClass}).Draw(t, "kind"),
		Features: rapid.SliceOfNDistinct(name, 0, 4, rapid.ID[string]).Draw(t, "features"),
		Actions:  rapid.SliceOfNDistinct(name, 1, 4, rapid.ID[string]).Draw(t, "actions"),
	}
	row := func(n int) []float64 { return rapid.SliceOfN(number, n, n).Draw(t, "row") }
	for range rapid.IntRange(1, 4).Draw(t, "size") {
		f := Function{Prior: rapid.Float64Range(1e-9, 1e9).Draw(t, "prior")}
		if c.Kind == tabularClass {
			f.Table = map[string][]float64{}
			for range rapid.IntRange(0, 3).Draw(t, "keys") {
				f.Table[name.Draw(t, "key")] = row(len(c.Actions))
			}
		} else {
			for range c.Actions {
				f.W = append(f.W, row(len(c.Features)+1))
			}
		}
		c.Functions = append(c.Functions, f)
	}
	return c
}

func TestClassRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawClass(t)
		b := c.Append(nil)
		got, err := ParseClass("f", b)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%s\nreads as %+v, %v\nwant %+v", b, got, err, c)
		}
		if again := string(got.Append(nil)); again != string(b) {
			t.Fatalf("not stable:\n%s\n%s", b, again)
		}
		if _, err := got.Class(); err != nil {
			t.Fatalf("no class of it: %v", err)
		}
	})
}

func FuzzParseClass(f *testing.F) {
	f.Add([]byte(linearText))
	f.Add([]byte(`{"hindsight_class":1,"kind":"tabular","features":["c"],"actions":["a"]}` + "\n" +
		`{"table":{"":[1e-7],"x|y":[-0]}}`))
	f.Add([]byte(`{"hindsight_class":1,"kind":"logistic","features":[],"actions":["a"]}` + "\n" + `{"w":[[null]]}`))
	f.Add([]byte(mixedText))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseClass("f", b)
		if err != nil {
			return
		}
		text := c.Append(nil)
		back, err := ParseClass("f", text)
		if err != nil {
			t.Fatalf("%q → %q: %v", b, text, err)
		}
		if again := back.Append(nil); string(again) != string(text) {
			t.Fatalf("not stable: %q, %q", text, again)
		}
		if _, err := c.Class(); err != nil {
			t.Fatalf("%q: accepted, but no class: %v", b, err)
		}
	})
}
