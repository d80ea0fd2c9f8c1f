package model

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

const sharedModel = "name: ads\noracle: {kind: hedge, eta: 0.5, class: ads.class.jsonl}\n"

// TestSharedFile: the golden file of a class over features of actions is read, written again
// as it is, and played by the oracle of a model, live: an action that the class never saw is
// judged by its features.
func TestSharedFile(t *testing.T) {
	golden, err := os.ReadFile("testdata/shared.class.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseClass("ads.class.jsonl", golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Append(nil)); got != string(golden) {
		t.Errorf("written again:\n%s", got)
	}
	class, err := c.Class()
	if err != nil {
		t.Fatal(err)
	}
	red := oracle.Action{Name: "red", Features: []oracle.Feature{{Name: "price", Kind: oracle.Number, Value: 3}}}
	losses := make([]float64, 3)
	if class.Eval(losses, &oracle.Input{Vector: []float64{10}, Actions: []oracle.Action{red}}, 0); math.Abs(
		losses[0]-.5) > 1e-12 || losses[2] != .2 {
		t.Errorf("%v: not what docs/fit-a-class.md works by hand", losses)
	}
	page, err := os.ReadFile("../../docs/fit-a-class.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(golden, []byte("\n")) {
		if i != 2 && !bytes.Contains(page, line) {
			t.Errorf("docs/fit-a-class.md does not show line %d of the golden file", i+1)
		}
	}
	m, err := Parse("m.yaml", []byte(sharedModel))
	if err != nil {
		t.Fatal(err)
	}
	rec := &codec.Epoch{Epoch: 1, Partitions: 1, Model: m.Canonical()}
	ep, err := Epoch(rec, map[string][]byte{"ads.class.jsonl": golden})
	if err != nil {
		t.Fatal(err)
	}
	if ep.Rules.Actions != nil {
		t.Errorf("the class takes any action, and the epoch only %v", ep.Rules.Actions)
	}
	x := &oracle.Input{Features: []oracle.Feature{{Name: "hour", Kind: oracle.Number, Value: 10}},
		Actions: []oracle.Action{
			{Name: "cheap", Features: []oracle.Feature{{Name: "price", Kind: oracle.Number, Value: 1}}},
			{Name: "dear", Features: []oracle.Feature{{Name: "price", Kind: oracle.Number, Value: 9}}},
		}}
	if p, _ := ep.Learner.Propensities(nil, x); !(p[0] > p[1]) {
		t.Errorf("propensities %v: the class says that dear ones lose more", p)
	}
}

// TestSharedFileRefuses: what is wrong, in which line, and what to do.
func TestSharedFileRefuses(t *testing.T) {
	const head = `{"hindsight_class":1,"kind":"shared","features":["x"],"action_features":["p"]}`
	for text, want := range map[string]string{
		`{"hindsight_class":1,"kind":"shared","features":["x"],"action_features":["p"],"actions":["a"]}`: "f:1: " +
			"a shared class takes any action",
		`{"hindsight_class":1,"kind":"shared","features":["x"]}`: "f:1: action_features: expected at least one",
		`{"hindsight_class":1,"kind":"shared","features":[],"action_features":["p","p"]}`: `f:1: ` +
			`action_features[1]: "p" is there twice`,
		`{"hindsight_class":1,"kind":"linear","features":[],"actions":["a"],` +
			`"action_features":["p"]}`: "f:1: action_features are of a shared class",
		`{"hindsight_class":1,"kind":"both"}`: "linear | logistic " +
			"| tabular | mixed | shared",
		head + "\n" + `{"w":[[0,0],[0,0]]}`: "f:2: a function of a shared class has linear, logistic " +
			"or trees",
		head + "\n" + `{"linear":[[0,0]]}`:             "f:2: shared class: 1 rows where 2",
		head + "\n" + `{"trees":[{"leaves":[[0,1]]}]}`: "2 numbers where 1",
	} {
		if _, err := ParseClass("f", []byte(text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
	class := map[string][]byte{"c": []byte(head + "\n" + `{"linear":[[0,0],[0,0]]}` + "\n")}
	m, err := Parse("m.yaml", []byte("name: m\nlearner: {kind: exp4dale, policies: c}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Build(class); err == nil || !strings.Contains(err.Error(), "over features of actions") {
		t.Errorf("exp4dale over a shared class: %v", err)
	}
}
