package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/scan"
	"hindsight/pkg/codec"
)

func ccbSample(t testing.TB, name string) string {
	path := filepath.Join("../../../shared/data/ccb", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the data that this test needs is not there: %v", err)
	}
	return path
}

// TestSlotsDsjson holds that a line with several slots is read as an event a slot: over the actions that are left, with
// what they have in common, the slot's own, and what came of it.
func TestSlotsDsjson(t *testing.T) {
	const line = `{"EventId":"e","pdrop":0.5,"_outcomes":[{"_label_cost":-1,"_a":[1,0,2],"_p":[0.5,0.25,0.25],"_o":[{"v":1}]},` +
		`{"_label_cost":0,"_a":2,"_p":0.75,"_o":[]}],"_ba":[1,0],"c":{"x":7,"_multi":[{"_tag":"a","y":1},{"_tag":"b"},{}],` + `"_slots":[{"_id":"hero","size":2,"_z":1},{"_inc":[1,2],"size":3},{"_id":"third"}]}}`
	all, err := readAll(t, openText(t, line, Options{}))
	if err != nil || len(all) != 2 {
		t.Fatalf("%v: %d events", err, len(all))
	}
	number := func(name string, x float64) codec.Feature {
		return codec.Feature{Name: name, Kind: codec.Number, Value: x}
	}
	text := func(slot string) codec.Feature { return codec.Feature{Name: "slot", Kind: codec.Text, Text: slot} }
	for i, want := range []Record{
		{Kind: Event, Line: 1, ID: "e:hero", Features: []codec.Feature{number("x", 7), text("hero"),
			number("slot.size", 2)},
			Actions:  []codec.Action{{Name: "a", Features: []codec.Feature{number("y", 1)}}, {Name: "b"}, {Name: "3"}},
			Baseline: []int{1}, Action: "b", Chosen: 1, Propensity: .5, Propensities: []float64{.25, .5, .25},
			Outcome: codec.Reward, Value: 1, Weight: 2},
		{Kind: Event, Line: 1, ID: "e:2", Features: []codec.Feature{number("x", 7), text("2"), number("slot.size", 3)},
			Actions: []codec.Action{{Name: "3"}}, Action: "3", Propensity: .75,
			Propensities: []float64{.75}, Outcome: codec.Reward, Weight: 2, Flags: Defaulted},
	} {
		got := all[i]
		want.File, want.Time, want.OutcomeTime = got.File, scan.NoTime, scan.NoTime
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("slot %d is\n%+v, want\n%+v", i, got, want)
		}
	}
}

// TestSlotsMalformed holds what is refused of lines with slots, and that the lines behind are read.
func TestSlotsMalformed(t *testing.T) {
	const context = `"c":{"_multi":[{},{},{}],"_slots":[{},{}]}`
	const good = `{"_outcomes":[{"_label_cost":1,"_a":[0],"_p":[0.5]},{"_label_cost":1,"_a":[1],"_p":[0.5]}],` +
		context + "}\n"
	for outcomes, want := range map[string]string{
		`[{"_a":[0],"_p":[0.5]},{"_a":[0],"_p":[0.5]}]`: "slot 2: an action of a slot is none that the " +
			"slots before",
		`[{"_a":[0,1,3],"_p":[0.5,0.25,0.25]}]`:                   "slot 1: an action of a slot is none",
		`[{"_a":[9],"_p":[0.5]}]`:                                 "slot 1: an action of a slot is none",
		`[{"_a":[-1],"_p":[0.5]}]`:                                "slot 1: an action of a slot is none",
		`[{"_a":[0,1],"_p":[0.5]}]`:                               "slot 1: a and p differ in length",
		`[{"_a":[0],"_p":[0]}]`:                                   "slot 1: the probability of the action played",
		`[{"_a":[0],"_p":[1.5]}]`:                                 "slot 1: the probability of the action played",
		`[{"_a":[0]}]`:                                            "slot 1: the probability of the action played",
		`[{"_a":[0],"_p":[1],"_label_cost":1e999}]`:               "number",
		`[{"_a":[0]},{"_a":[0]},{"_a":[0]}]`:                      "more _outcomes than _slots",
		`[{"_a":[0],"_p":[0.5]},{"_a":[1],"_p":[0.5]}],"pdrop":1`: "pdrop",
		`[{"_a":[0],"_p":[0.5]}`:                                  "",
	} {
		r := openText(t, `{"_outcomes":`+outcomes+`,`+context+"}\n"+good, Options{})
		all, err := readAll(t, r)
		a := r.Account()
		if err != nil || a.Malformed != 1 || len(all) < 2 || !strings.Contains(a.Shown[0].Error(), want) {
			t.Errorf("%s: %v, %d events, %q; want %q", outcomes, err, len(all), a.Errors(), want)
		}
	}
}

// TestNamespaceScale holds that the scale of a namespace is not lost for features without a value.
func TestNamespaceScale(t *testing.T) {
	all, err := readAll(t, openText(t, "1:0:0.5 |topics:0.25 sport x=y n:2 |u a\n", Options{Format: CB}))
	if err != nil || len(all) != 1 {
		t.Fatalf("%v: %d events", err, len(all))
	}
	const want = "[{topics.sport 1 0.25 } {topics.x=y 1 0.25 } {topics.n 1 0.5 } {u.a 3 1 }]"
	if got := fmt.Sprint(all[0].Features); got != want {
		t.Error(got)
	}
}

// TestSlotsText holds that the text of --ccb_explore_adf is read as dsjson is.
func TestSlotsText(t *testing.T) {
	const log = "ccb shared |u x:7\nccb action |a y:1\nccb action |a z\nccb action |\nccb slot " +
		"1:-1:0.5,0:0.25,2:0.25 |s size:2\nccb slot 2:0.5:0.75 1,2 'tag |s size:3\nccb slot |s\n\nccb shared |\nccb " +
		"action |\nccb slot 0:1:1 |\n"
	all, err := readAll(t, openText(t, log, Options{}))
	if err != nil || len(all) != 3 {
		t.Fatalf("%v: %d events", err, len(all))
	}
	text := func(f *codec.Feature) string {
		if f.Kind == codec.Text {
			return f.Text
		}
		return fmt.Sprint(f.Value)
	}
	for i, want := range []string{
		"12 loss -1 0.5 [0.25 0.5 0.25] [{u.x 7} {slot 1} {slot.s.size 2}]",
		"13 loss 0.5 0.75 [0.75] [{u.x 7} {slot 2} {slot.s.size 3}]", "91 loss 1 1 [1] [{slot 1}]",
	} {
		r := &all[i]
		var features []string
		for _, f := range r.Features {
			features = append(features, "{"+f.Name+" "+text(&f)+"}")
		}
		if got := fmt.Sprint(r.Line, r.Action, " ", r.Outcome, r.Value, r.Propensity, r.Propensities,
			features); got != want {
			t.Errorf("slot %d is %s, want %s", i, got, want)
		}
	}
	for text, want := range map[string]string{
		"ccb action |\nccb slot 0:1:1 |\nccb action |\n": "expected ccb shared",
		"ccb action |\nccb slot 0:1 |\n":                 "expected a label",
		"ccb action |\nccb slot 0:x:1 |\n":               "expected a label",
		"ccb action |\nccb slot 0:1:1,1:x |\n":           "expected a label",
		"ccb action |\nccb slot 0:1:1 a |\n":             "expected a label",
		"ccb action |\nccb slot 5:1:1 |\n":               "slot 1: an action of a slot is none",
		"ccb shared |\nccb slot 5:1:1 |\n":               "without actions or without slots",
		"ccb action |\nshared |\n":                       "expected ccb shared",
	} {
		r := openText(t, text+"\nccb action |\nccb slot 0:1:1 |\n", Options{})
		all, err := readAll(t, r)
		if a := r.Account(); err != nil || a.Malformed != 1 || len(all) != 1 || !strings.Contains(a.Shown[0].Error(),
			want) {
			t.Errorf("%q: %v, %d events, %q; want %q", text, err, len(all), a.Errors(), want)
		}
	}
	var bad *scan.LineError
	if _, err := readAll(t, openText(t, "ccb action |\nccb slot 5:1:1 |\n", Options{Strict: true})); !errors.As(err,
		&bad) {
		t.Errorf("strict: %v", err)
	}
}

// TestSlotsSamples holds that the published samples are read whole.
func TestSlotsSamples(t *testing.T) {
	for file, want := range map[string]string{
		"ccb_data.json":           "read 66: 66 events, 0 duplicates, 0 dangling, 0 skipped, 0 malformed",
		"ccb_reuse_medium.dsjson": "read 12: 12 events, 0 duplicates, 0 dangling, 0 skipped, 0 malformed",
		"ccb_simple.json":         "read 2: 2 events, 0 duplicates, 0 dangling, 0 skipped, 0 malformed",
		"ccb_simple_pdrop.json":   "read 2: 2 events, 0 duplicates, 0 dangling, 0 skipped, 0 malformed",
		"ccb_test.dat":            "read 72: 45 events, 0 duplicates, 0 dangling, 27 skipped, 0 malformed",
	} {
		r, err := Open(ccbSample(t, file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, r); err != nil || r.Account().Summary() != want {
			t.Errorf("%s: %v, %s, %q", file, err, r.Account().Summary(), r.Account().Errors())
		}
	}
}
