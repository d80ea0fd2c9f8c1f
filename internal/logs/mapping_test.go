package logs

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseMapping(t *testing.T) {
	want := Mapping{Time: "at", OutcomeTime: "back", Action: "who", Reward: "paid", ID: "id",
		Features: []string{"x", "y:text"}, FeaturePrefix: "f_"}
	for _, text := range []string{
		"time-column: at\noutcome_time_column: back\naction-column: who\nreward-column: paid\nid-column: " +
			"id\nfeatures: [x, 'y:text']\nfeature-prefix: f_\n",
		"{time_column: at, outcome-time-column: back, action-column: who, reward-column: paid, id-column: id, " +
			"features: 'x, y:text', feature_prefix: f_}",
	} {
		if got, err := ParseMapping("m.yaml", []byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":            "m.yaml:1:1: the mapping is empty; for example",
		"# nothing\n": "m.yaml:1:1: ",
		"- a\n":       "m.yaml:1:1: expected keys",
		"time-column: " +
			"at\naction: who\n": `m.yaml:2:1: unknown key "action"; the keys are time-column, outcome-time-column,`,
		"time-column: a\ntime_column: b\n": "m.yaml:2:1: time_column is there twice",
		"time-column: [a]\n":               "m.yaml:1:14: time-column: expected the name of a column",
		"time-column:\naction-column: x\n": "m.yaml:1:13: time-column: expected the name of a column",
		"time-column: ''\n":                "m.yaml:1:14: time-column: expected the name of a column",
		"action-column: x\nfeatures: {}\n": "m.yaml:2:11: features: expected a list",
		"features:\n- a\n- [b]\n":          "m.yaml:3:3: features: expected the name of a column",
		"time-column: a\n\tb: c\n":         "m.yaml:2:1: not YAML: ",
		"time-column: \"a\nid-column: b\n": "m.yaml:",
		"action-column: x\n---\n{}\n":      "m.yaml:2:1: a second document starts here",
	} {
		if _, err := ParseMapping("m.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	m := Mapping{Time: "a", Reward: "r", Features: []string{"x"}}
	m.Override(Mapping{OutcomeTime: "b", Loss: "l"})
	if !reflect.DeepEqual(m, Mapping{Time: "a", OutcomeTime: "b", Loss: "l", Features: []string{"x"}}) {
		t.Errorf("flags over a file: %+v", m)
	}
	if m.Override(Mapping{ID: "i"}); m.Loss != "l" || m.ID != "i" {
		t.Errorf("flags without a loss: %+v", m)
	}
	if m.Override(Mapping{Outcomes: []string{"o"}, Features: []string{"y"}}); m.value() != "" || len(m.Outcomes) != 1 ||
		!reflect.DeepEqual(m.Features, []string{"y"}) {
		t.Errorf("flags of named outcomes: %+v", m)
	}
	m.Features = []string{"x", "y:text", "z:number", "w:ngrams"}
	keys, long := m.Keys(nil)
	_, other := m.Keys(func(name string) bool { return name == "x" })
	if strings.Join(keys, " ") != "x y z w" || !long("w") || long("x") || !other("w") || !other("x") || other("y") {
		t.Errorf("keys %q, long %t %t, %t %t %t", keys, long("w"), long("x"), other("w"), other("x"), other("y"))
	}
	if (&Mapping{FeaturePrefix: "x"}).IsZero() || (&Mapping{Features: []string{"x"}}).IsZero() ||
		!(&Mapping{}).IsZero() {
		t.Error("IsZero")
	}
	if !(&Mapping{Features: m.Features}).OnlyFeatures() || m.OnlyFeatures() || (&Mapping{}).OnlyFeatures() {
		t.Error("OnlyFeatures")
	}
}

func FuzzParseMapping(f *testing.F) {
	f.Add("time-column: at\nfeatures: [x, 'y:text']\n")
	f.Add("{features: 'x, y', id_column: 3}")
	f.Add("a: &x [*x]")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseMapping("m", []byte(text)); err != nil && !strings.HasPrefix(err.Error(), "m:") {
			t.Fatalf("%q: no place in %v", text, err)
		}
	})
}
