package replay

import (
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// Columns may be separated by semicolons or tabs, with and without quotes.
func TestSeparators(t *testing.T) {
	text := strings.ReplaceAll(timedText, `"v,w"`, "v")
	want := parseLog(t, text, timedMapping())
	for _, comma := range []string{";", "\t"} {
		for _, quoted := range []string{"s", `"s"`} {
			got := parseLog(t, strings.ReplaceAll(strings.Replace(text, "\ns,", "\n"+quoted+",", 1), ",", comma),
				timedMapping())
			var a, b codec.Context
			for i := range want.Len() {
				want.Context(&a, i)
				got.Context(&b, i)
				if !reflect.DeepEqual(a, b) || got.table.ID(i) != want.table.ID(i) {
					t.Errorf("%q, row %d: %+v, want %+v", comma, i, b, a)
				}
			}
		}
	}
}

func TestBanditLog(t *testing.T) {
	b := timedLog(t)
	if got := b.Actions; !reflect.DeepEqual(got, []string{"a", "b"}) || b.Len() != 4 || b.Columns != 1+1+3 ||
		b.Name != "t.csv" {
		t.Errorf("actions %v, %d rounds, %d columns, %s", got, b.Len(), b.Columns, b.Name)
	}
	number := func(v float64) codec.Feature { return codec.Feature{Name: "x", Kind: codec.Number, Value: v} }
	text := func(v string) codec.Feature { return codec.Feature{Name: "y", Kind: codec.Text, Text: v} }
	want := [][]codec.Feature{{number(1.5), text("u")}, {text("7")}, {number(3), text("v,w")}, {number(-2), text("u")}}
	loss := []float64{0, 1, math.NaN(), 0.75}
	base := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	v := b
	for i, action := range []int{1, 0, 1, 0} {
		var c codec.Context
		b.Context(&c, i)
		if !reflect.DeepEqual(c.Features, want[i]) {
			t.Errorf("row %d: %v, want %v", i, c.Features, want[i])
		}
		if int(v.table.Action[i]) != action || v.table.Observed(i) != (i != 2) || v.table.ID(i) != string("qrst"[i]) {
			t.Errorf("row %d: action %d, observed %v, id %s", i, v.table.Action[i], v.table.Observed(i), v.table.ID(i))
		}
		if got := b.Loss(i, action); got != loss[i] && !(math.IsNaN(got) && math.IsNaN(loss[i])) {
			t.Errorf("row %d: loss %v, want %v", i, got, loss[i])
		}
		if !math.IsNaN(b.Loss(i, 1-action)) || b.Known {
			t.Errorf("row %d: the loss of the other action is known", i)
		}
	}
	if got, want := b.table.Decided, []int64{base, base + 10e9, base + 20.5e9, base + 30e9}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("decided at %v, want %v", got, want)
	}
	if got, want := b.table.Came, []int64{base + 25e9, base + 11e9, scan.NoTime, base + 30e9}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("outcomes at %v, want %v", got, want)
	}
}

// TestRecordedByHand: the outcome of round 0 comes between decisions 2 and 3, after two
// later ones; that of round 1 at once; that of round 3 at its decision.
func TestRecordedByHand(t *testing.T) {
	b := timedLog(t)
	if got := recordedOf(b); !reflect.DeepEqual(got, []int64{2, 0, delay.Never, 0}) {
		t.Errorf("delays %v", got)
	}
	// Round 0: 3 − 0; 1: 2 − 1; 2: 4 − 2; 3: its outcome is not later than its decision.
	got := delay.Describe(b.table.Decided, b.table.Came, func(int) {})
	want := &delay.Recorded{Stats: delay.Stats{D: 6, DMax: 3, SigmaMax: 2, Mean: 1.5, P50: 1, P90: 3, P99: 3},
		Overtaken: 2}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestBanditLogTypesAndRanges(t *testing.T) {
	text := "a,l,n,m\np,5,1,1\nq,15,2,x\n"
	m := logs.Mapping{Action: "a", Loss: "l", Features: []string{"n:text"}, FeaturePrefix: "m"}
	if _, err := readLog("t.csv", strings.NewReader(text), logOptions{Options: logs.Options{Mapping: m}}); err == nil ||
		!strings.HasPrefix(err.Error(), "t.csv:2: column l: 5 is not in [0, 1]; a model file may give another "+
			"range, for example loss:") {
		t.Errorf("out of range: %v", err)
	}
	b, err := readLog("t.csv", strings.NewReader(text),
		logOptions{Options: logs.Options{Mapping: m, Range: loop.Range{Min: 0, Max: 10, Clip: true},
			Actions: []string{"q", "z", "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	if b.Loss(0, 2) != 0.5 || b.Loss(1, 0) != 1 {
		t.Errorf("losses %v %v, want 0.5 and a clipped 1", b.Loss(0, 2), b.Loss(1, 0))
	}
	if kind, v := b.table.Kind, b.table.Value[1]; kind != codec.Loss || v != 15 {
		t.Errorf("outcome %v %v: it must be reported as recorded", kind, v)
	}
	var c codec.Context
	b.Context(&c, 0)
	want := []codec.Feature{{Name: "n", Kind: codec.Text, Text: "1"}, {Name: "m", Kind: codec.Text, Text: "1"}}
	if !reflect.DeepEqual(c.Features, want) {
		t.Errorf("features %v, want %v", c.Features, want)
	}
	if b.Timed() || b.RecordsDelays() {
		t.Error("a log without times has some")
	}
}

func TestBanditLogErrors(t *testing.T) {
	m := timedMapping()
	const header = "id,at,who,paid,back,x,y\n"
	for _, c := range []struct{ text, want string }{
		{"", "t.csv:1: the file is empty"},
		{header, "t.csv:2: there are no rows"},
		{"id,at,who,paid,x,y\n", `t.csv:1: column "back": there is no such column; there are id, at, who, paid, x, y`},
		{"id,at,who,paid,back,x,y,at\n", "t.csv:1: column at: the column is there twice"},
		{header + "q,2020-01-01T00:00:00Z,b,1\n", "t.csv:2: 4 cells, but the header has 7 columns"},
		{header + "q,2020-01-01T00:00:00Z,,1,2020-01-01T00:00:00Z,,\n", "t.csv:2: column who: the action is missing"},
		{header + ",2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:00Z,,\n", "t.csv:2: column id: the id is missing"},
		{header +
			"q,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:00Z,,\n\nq,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:00Z,,\n",
			`t.csv:4: column id: the id "q" is that of line 2, too`},
		{header + "q,yesterday,b,1,2020-01-01T00:00:00Z,,\n", `t.csv:2: column at: "yesterday": expected a time`},
		{header + "q,1577836820500,b,1,2020-01-01T00:00:00Z,,\n",
			`t.csv:2: column at: "1577836820500" is in the year 5`},
		{header + "q,2020-01-01,b,1,2020-01-01T00:00:00Z,,\n", `t.csv:2: column at: "2020-01-01": expected a time`},
		{header + "q,2020-01-01T00:00:00Z,b,1,soon,,\n", `t.csv:2: column back: "soon": expected a time`},
		{header + "q,2020-01-01T00:00:00Z,b,1,,,\n", "t.csv:2: column back: the outcome has no time"},
		{header + "q,2020-01-01T00:00:00Z,b,,2020-01-01T00:00:00Z,,\n", "t.csv:2: column paid: the outcome is " +
			"missing, but it has a time"},
		{header + "q,2020-01-01T00:00:00Z,b,yes,2020-01-01T00:00:00Z,,\n",
			`t.csv:2: column paid: "yes" is not a finite number`},
		{header + "q,2020-01-01T00:00:00Z,b,1.5,2020-01-01T00:00:00Z,,\n", "t.csv:2: column paid: 1.5 is not " +
			"in [0, 1]"},
		{header +
			"q,2020-01-02T00:00:00Z,b,1,2020-01-02T00:00:00Z,,\nr,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:00Z,,\n",
			`t.csv:3: column at: "2020-01-01T00:00:00Z" is before the time of the row above: sort the rows by at`},
		{header + "q,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:00Z,\"1\n", "t.csv:2: not CSV"},
		{header + "q,2020-01-01T00:00:00Z,b,1,2020-01-01T00:00:00Z,1,\xff\n", "t.csv:2: column y: a text is UTF-8"},
		{header + "q,2020-01-01T00:00:00Z,\xff,1,2020-01-01T00:00:00Z,1,\n", "t.csv:2: column who: an action is UTF-8"},
	} {
		_, err := readLog("t.csv", strings.NewReader(c.text), logOptions{Options: logs.Options{Mapping: m}})
		var at *scan.LineError
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.As(err, &at) {
			t.Errorf("%q:\ngot  %v\nwant %s…", c.text, err, c.want)
		}
	}
	for want, change := range map[string]func(m *logs.Mapping){
		`column "z": there is no such column`:    func(m *logs.Mapping) { m.Features = []string{"z"} },
		"column paid: it is what is known after": func(m *logs.Mapping) { m.Features = []string{"paid"} },
		"column back: it is what is known after": func(m *logs.Mapping) { m.Features = []string{"back"} },
		"column who: it is the action":           func(m *logs.Mapping) { m.Features = []string{"who"} },
		"column x: the feature is there twice": func(m *logs.Mapping) {
			m.Features = []string{"x", "x:text"}
		},
		`t.csv:2: column y: "u" is not a finite number; `:  func(m *logs.Mapping) { m.Features = []string{"y:number"} },
		`t.csv:1: no column begins with "z"`:               func(m *logs.Mapping) { m.FeaturePrefix = "z" },
		"needs the column of its actions: --action-column": func(m *logs.Mapping) { m.Action = "" },
		"--loss-column or --reward-column":                 func(m *logs.Mapping) { m.Reward = "" },
		"not both":                                         func(m *logs.Mapping) { m.Loss = "x" },
		"an outcome time needs the time of the decision":   func(m *logs.Mapping) { m.Time = "" },
	} {
		m := timedMapping()
		change(&m)
		if _, err := readLog("t.csv", strings.NewReader(timedText),
			logOptions{Options: logs.Options{Mapping: m}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := readLog("t.csv", strings.NewReader(timedText),
		logOptions{Options: logs.Options{Mapping: m, Actions: []string{"b"}}}); err == nil ||
		err.Error() != `t.csv:3: column who: the model does not list the action "a"` {
		t.Errorf("an action that the model lacks: %v", err)
	}
	if _, err := openLog(t.TempDir()+"/none.csv", logs.Options{Mapping: m}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzReadLog(f *testing.F) {
	f.Add(timedText)
	f.Add("id,at,who,paid,back,x,y\nq,1,b,1,0,,\n")
	f.Add("id,at,who,paid,back,x,y\nq,-0.5,b,0x1p-2,9e9,nan,\n")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := readLog("t.csv", strings.NewReader(text), logOptions{Options: logs.Options{Mapping: timedMapping()}})
		if err != nil {
			checkPlace(t, err)
			return
		}
		var c codec.Context
		for i := range b.Len() {
			b.Context(&c, i)
			c.ID = b.table.ID(i)
			if err := c.Validate(); err != nil {
				t.Fatalf("%q row %d: %v", text, i, err)
			}
			if l := b.Loss(i, int(b.table.Action[i])); !math.IsNaN(l) && !(l >= 0 && l <= 1) {
				t.Fatalf("%q row %d: loss %v", text, i, l)
			}
		}
		for i, d := range recordedOf(b) {
			if d < delay.Never || int(d) > b.Len()-1-i {
				t.Fatalf("%q row %d of %d: delay %d", text, i, b.Len(), d)
			}
		}
	})
}

// recordedOf returns the delays of all rounds by the log's own times.
func recordedOf(r *Rounds) (d []int64) {
	for t, at := range r.Log.Came {
		d = append(d, delay.Of(r.Log.Decided, at, t))
	}
	return d
}
