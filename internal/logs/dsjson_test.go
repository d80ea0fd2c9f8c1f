package logs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

// samples is the folder of published samples.
const samples = "../../../shared/data/dsjson"

func sample(t testing.TB, name string) string {
	path := filepath.Join(samples, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the data that this test needs is not there: %v", err)
	}
	return path
}

// readSample reads a sample to its end.
func readSample(t testing.TB, name string) ([]Record, *Account) {
	t.Helper()
	r, err := Open(sample(t, name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := readAll(t, r)
	if err != nil {
		t.Fatal(err)
	}
	return all, r.Account()
}

// readAll reads a log to its end; a log that cannot be read on ends with the error.
func readAll(t testing.TB, r *Reader) ([]Record, error) {
	t.Helper()
	defer r.Close()
	var out []Record
	var rec Record
	for {
		err := r.Next(&rec)
		if a := r.Account(); !balanced(a) {
			t.Fatalf("unbalanced account %+v", a)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, clone(&rec))
	}
}

func openText(t testing.TB, text string, o Options) *Reader {
	t.Helper()
	o.Stdin = strings.NewReader(text)
	r, err := Open(Stdin, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The counts are those that the data's own description gives.
func TestPublishedSamples(t *testing.T) {
	for _, c := range []struct {
		file string
		want Account
	}{
		{"dsjson_cb.json", Account{Read: 23, Events: 23, Observed: 23}},
		{"b1848_dsjson_parser_regression.txt", Account{Read: 8, Dangling: 1, Duplicates: 5, Skipped: 2,
			Reasons: map[string]int64{"not activated": 1, "checkpoint line": 1}}},
		{"cb_simple.json", Account{Read: 1, Events: 1, Observed: 1}},
		{"cb_simple_pdrop.json", Account{Read: 1, Events: 1, Observed: 1}},
	} {
		_, got := readSample(t, c.file)
		c.want.Format, c.want.Files, c.want.Bytes, c.want.First, c.want.Last = Dsjson, 1, got.Bytes, got.First, got.Last
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.file, *got, c.want)
		}
	}
}

func TestDsjsonEvent(t *testing.T) {
	all, _ := readSample(t, "dsjson_cb.json")
	e := all[0]
	at, _ := scan.ParseTime("2021-02-04T16:31:29.246Z")
	if e.ID != "13118d9b4c114f8485d9dec417e3aefe" || e.Time != at || e.Action != "Latte" || e.Chosen != 3 ||
		e.Propensity != 0.05000000074505806 || e.Outcome != codec.Reward || e.Value != 0 || e.Weight != 1 ||
		!e.observed() {
		t.Errorf("%+v", e)
	}
	if want := []float64{.05, .05, .85, .05}; !reflect.DeepEqual(e.Propensities, want) {
		// a = 4,2,1,3; p = .05 .05 .05 .85
		t.Errorf("law %v, want %v", e.Propensities, want)
	}
	wantFeatures := []codec.Feature{{Name: "FromUrl.timeofday", Kind: codec.Text, Text: "Afternoon"},
		{Name: "FromUrl.weather", Kind: codec.Text, Text: "Sunny"}, {Name: "FromUrl.name", Kind: codec.Text,
			Text: "Cathy"}}
	if !reflect.DeepEqual(e.Features, wantFeatures) {
		t.Errorf("features %v", e.Features)
	}
	want := codec.Action{Name: "Iced mocha", Features: []codec.Feature{{Name: "i.constant", Kind: codec.Number,
		Value: 1}, {Name: "i.id", Kind: codec.Text, Text: "Iced mocha"},
		{Name: "j.type", Kind: codec.Text, Text: "cold"}, {Name: "j.origin", Kind: codec.Text, Text: "ethiopia"},
		{Name: "j.organic", Kind: codec.Text, Text: "no"}, {Name: "j.roast", Kind: codec.Text, Text: "light"}}}
	if !reflect.DeepEqual(e.Actions[2], want) {
		t.Errorf("action %v", e.Actions[2])
	}
}

func TestDsjsonLines(t *testing.T) {
	const rest = `"a":[2,1],"p":[0.25,0.75],"c":{"u":{"f":1},"_multi":[{},{"_tag":"b"}]}`
	for _, c := range []struct {
		name, line string
		class      class
		reason     string // or part of the error
		check      func(r *Record) bool
	}{
		{"plain", `{"_label_cost":-2,"_label_probability":0.25,"_label_Action":2,"_labelIndex":1,` + rest + `}`,
			isEvent, "",
			func(r *Record) bool {
				return r.Value == 2 && r.Action == "b" && r.Actions[0].Name == "1" && r.Propensities[0] == .75
			}},
		{"pdrop", `{"_label_cost":-2,"pdrop":0.9,` + rest + `}`, isEvent, "", func(r *Record) bool {
			return r.Weight > 9.999 && r.Weight < 10.001
		}},
		{"pdrop 1", `{"_label_cost":-2,"pdrop":1,` + rest + `}`, 0, "pdrop", nil},
		{"_p counts too", `{"_label_cost":-2,"a":[1],"_p":[0.5],"c":{"_multi":[{}]}}`, isEvent, "",
			func(r *Record) bool {
				return r.Propensity == .5
			}},
		{"_p inside c does not", `{"_label_cost":-2,"a":[1],"p":[0.5],"c":{"_p":[0.1],"_multi":[{}]}}`, isEvent, "",
			func(r *Record) bool { return r.Propensity == .5 }},
		{"baseline", `{"_label_cost":-2,"_ba":[2,1],` + rest + `}`, isEvent, "", func(r *Record) bool {
			return reflect.DeepEqual(r.Baseline, []int{1, 0})
		}},
		{"nothing observed", `{"_label_cost":0,"o":[],` + rest + `}`, isEvent, "", func(r *Record) bool {
			return r.Flags == Defaulted && !r.observed()
		}},
		{"not activated", `{"_label_cost":0,"_original_label_cost":-3,"_skipLearn":true,` + rest + `}`, isEvent, "",
			func(r *Record) bool { return r.Flags&Inactive != 0 && r.Value == 3 }},
		{"ranks disagree", `{"_label_cost":0,"_label_Action":1,` + rest + `}`, 0, "different actions", nil},
		{"probabilities disagree", `{"_label_cost":0,"_label_probability":0.5,` + rest + `}`, 0, "differ", nil},
		{"law too short", `{"_label_cost":0,"a":[2,1],"p":[1],"c":{"_multi":[{},{}]}}`, 0, "length", nil},
		{"ccb", `{"_outcomes":[{"_label_cost":0,"_a":[0],"_p":[1]}],"c":{"_multi":[{}],"_slots":[{}]}}`, isEvent, "",
			nil},
		{"slots without outcomes", `{"c":{"_multi":[{}],"_slots":[{}]}}`, isSkipped, "no action was played", nil},
		{"slates", `{"_label_cost":1,"_outcomes":[{"_a":[1],"_p":[1]}],"c":{"_multi":[{"_slot_id":0}],"_slots":[{}]}}`,
			isSkipped, "slates (_outcomes)", nil},
		{"continuous", `{"_label_ca":{"cost":1},"c":{}}`, isSkipped, "continuous actions (_label_ca)", nil},
		{"dangling",
			`{"RewardValue":1.0,"EnqueuedTimeUtc":"2018-09-22T01:48:38.423Z","EventId":"x","Observations":[{"v":1.0,` +
				`"EventId":"x","ActionId":null}]}`, isDangling, "",
			func(r *Record) bool { return r.Kind == Outcome && r.Value == 1 && r.OutcomeTime > 0 && r.Flags == 0 }},
		{"dangling, second generation",
			`{"Timestamp":"2017-11-27T01:19:13.4610000Z","RewardValue":1.0,"EnqueuedTimeUtc":"2017-08-23T03:31:06.85Z",` +
				`"EventId":"y"}`, isDangling, "", func(r *Record) bool { return r.ID == "y" }},
		{"dangling, deferred",
			`{"RewardValue":1.0,"DeferredAction":false,"EnqueuedTimeUtc":"2018-10-26T01:23:00.825Z","EventId":"z",` +
				`"Observations":[{"v":null,"DeferredAction":false},{"v":1.0,"DeferredAction":true}]}`, isDangling, "",
			func(r *Record) bool { return r.Flags == Activation && r.Value == 1 }},
		{"text is escaped", `{"_label_cost":0,"a":[1],"c":{"n":"\u00e9\ud83d\ude00\"","_multi":[{}]}}`, isEvent, "",
			func(r *Record) bool { return r.Features[0].Text == "é😀\"" && r.Propensity == 0 }},
		{"names repeat", `{"_label_cost":0,"a":[1],"c":{"n":[{"x":1},{"x":2}],"_multi":[{"_tag":"t"},{"_tag":"t"}]}}`,
			isEvent, "", func(r *Record) bool { return r.Features[1].Name == "n.x#2" && r.Actions[1].Name == "t#2" }},
		{"cut", `{"_label_cost":0,"a":[1`, 0, "ends too early", nil},
		{"checkpoint", `[CHECKPOINT INFO LINE]`, isSkipped, "checkpoint line", nil},
		{"blank", ` `, isSkipped, "blank line", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r Record
			r.reset()
			d := newDsjson(scan.NewLines(newTextInput(c.line)))
			class, reason, err := d.next(&r)
			if err != nil {
				var end ended
				if c.class != 0 || errors.As(err, &end) || !strings.Contains(err.Error(), c.reason) {
					t.Fatalf("error %v, want one with %q", err, c.reason)
				}
				return
			}
			if class != c.class || reason != c.reason || c.check != nil && !c.check(&r) {
				t.Errorf("class %v, reason %q, %+v", class, reason, r)
			}
		})
	}
}

func TestRejectsAndStrict(t *testing.T) {
	const text = "{\"_label_cost\":-1,\"EventId\":\"e\",\"a\":[1],\"c\":{\"_multi\":[{}]}}\n{\"c\":\n[CHECKPOINT]\n{\"_label_cost\":-1,\"EventId\":\"e\",\"a\":[1],\"c\":{\"_multi\":[{}]}}\n"
	var rejects strings.Builder
	r := openText(t, text, Options{Rejects: &rejects})
	if all, err := readAll(t, r); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if lines := strings.Split(rejects.String(), "\n"); len(lines) != 4 || !strings.Contains(lines[0], `"line":2`) ||
		!strings.Contains(lines[0], `"malformed"`) ||
		!strings.Contains(lines[1], "checkpoint") || !strings.Contains(lines[2], `"line":4`) {
		t.Errorf("%s", rejects.String())
	}
	if got := r.Account().Errors(); len(got) != 1 || !strings.HasPrefix(got[0], "standard input:2:6: ") {
		t.Errorf("%q", got)
	}
	if got := r.Account().ReasonTexts(); len(got) != 1 || got[0] != "checkpoint line: 1" {
		t.Errorf("%q", got)
	}
	rejects.Reset()
	for _, raw := range []string{strings.Repeat("é", maxRejectBytes/2) + "x", "x\xff", "\xa9" + strings.Repeat("é",
		maxRejectBytes)} {
		one := newRejects(&rejects)
		if one.add(Reject{}, []byte(raw)); one.flush() != nil {
			t.Error("not flushed")
		}
	}
	for i, want := range []string{`"text":"é`, `"bytes":"eP8="`, `"bytes":"qc`} {
		line := strings.Split(rejects.String(), "\n")[i]
		if !strings.Contains(line, want) || len(line) > 2*maxRejectBytes {
			t.Errorf("%.50s… of %d bytes, want %s", line, len(line), want)
		}
	}
	closed, broken := io.Pipe()
	_ = closed.Close()
	r = openText(t, text, Options{Rejects: broken})
	if err := r.Each(func(*Record) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := r.Close(); !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "file of rejects: ") {
		t.Errorf("rejects that cannot be written: %v", err)
	}
	r = openText(t, text, Options{Strict: true})
	var bad *scan.LineError
	if all, err := readAll(t, r); !errors.As(err, &bad) || bad.Line != 2 || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}

// TestDsjsonDepth: what is passed over may be nested as deep as JSON that is read, about.
func TestDsjsonDepth(t *testing.T) {
	const passed = scan.MaxDepth - 2
	const action = `"a":[1],"p":[1],"c":{"_multi":[{`
	const slot = `"_outcomes":[{"_a":[0],"_p":[1]}],"c":{"_multi":[{}],"_slots":[{`
	for key, most := range map[string]int{action + `"f"`: passed - 1, action + `"_hidden"`: passed,
		action + `"_slot_id"`: passed, slot + `"f"`: passed - 1, slot + `"_hidden"`: passed} {
		for _, deep := range []int{most, most + 1} {
			text := `{"_label_cost":0,` + key + `:` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}]}}`
			r := openText(t, text, Options{Format: Dsjson})
			_, err := readAll(t, r)
			if a := r.Account(); err != nil || (a.Malformed > 0) != (deep > most) {
				t.Errorf("%s %d deep: %+v, %v", key, deep, a, err)
			}
		}
	}
	for _, more := range []string{"", "["} { // objects in lists, of which two levels are passed-1 or one more
		text := `{"_label_cost":0,"a":[1],"p":[1],"c":{"_multi":[{"f":` + more + strings.Repeat(`[{"f":`, passed/2-1) +
			"[null]" + strings.Repeat("}]", passed/2-1) + strings.Repeat("]", len(more)) + `}]}}`
		r := openText(t, text, Options{Format: Dsjson})
		_, err := readAll(t, r)
		if a := r.Account(); err != nil || (a.Malformed > 0) != (more != "") {
			t.Errorf("objects in lists, and %q: %+v, %v", more, a, err)
		}
	}
}

// TestFeaturesOfJSON: an object or a list of features of any depth, sorted, with distinct names; null has none.
func TestFeaturesOfJSON(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "null": "", "{}": "", "[]": "", `{"b":1,"a":{"c":[true,"x"]}}`: "a.c.0 a.c.1 b",
		`[{"b":1},{"b":2,"a":3},4]`: "2 a b b#2", `{"_text":"u v u","_x":1}`: "u u#2 v",
		"{": "error", "[1": "error", "7": "error",
	} {
		got, err := Features([]byte(text))
		var names []string
		for _, f := range got {
			names = append(names, f.Name)
		}
		if (err != nil) != (want == "error") || err == nil && strings.Join(names, " ") != want {
			t.Errorf("%s: %q, %v, want %q", text, names, err, want)
		}
	}
}
