package model

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

func build(t *testing.T, text string) learner.Learner {
	t.Helper()
	l, err := mustParse(t, text).Build(map[string][]byte{"f.jsonl": []byte(linearText)})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return l
}

func colours() *oracle.Input {
	return &oracle.Input{
		Features: []oracle.Feature{{Name: "age", Kind: oracle.Number, Value: 0.5}},
		Actions:  []oracle.Action{{Name: "red"}, {Name: "green"}},
	}
}

// TestBuildFirstLaw holds the law and γ of each learner before it learned
// anything: they differ in all that the model file chooses.
func TestBuildFirstLaw(t *testing.T) {
	const hedge = "oracle: {kind: hedge, class: f.jsonl}\n"
	// The class has priors 2 and 1, so R = 2·log(3/1).
	regret := 2 * math.Log(3)
	for _, c := range []struct {
		text  string
		gamma float64
		red   float64 // propensity; -1: not checked
	}{
		{"learner: uniform", 0, 0.5},
		{"learner: {fixed: green}", 0, 0},
		{"learner: {egreedy: 0.5}", 0, 0.75},
		{"learner: greedy", 0, 1},
		{"learner: greedy\n" + hedge, 0, 1}, // f̂ = (2·½+¾)/3 < (2·½+1)/3
		{"", 20, 0.5},
		{"explore: cautious", 20 * 2 * math.Sqrt2 / 8, 0.5},
		{"explore: 3", 3, 0.5},
		{"explore: theory", 0, 0.5}, // nothing learned
		{hedge, 8 / math.Sqrt(regret), -1},
		{hedge + "explore: guaranteed", 4 / math.Sqrt(regret), -1},
		{hedge + "explore: theory", 2 * math.Sqrt2 / math.Sqrt(regret), -1},
		{hedge + "explore: {paper: 100}", math.Sqrt(200 / (36 * math.Log(3))), -1},
	} {
		law, gamma := build(t, c.text).Propensities(nil, colours())
		if math.Abs(gamma-c.gamma) > 1e-9*c.gamma {
			t.Errorf("%q: γ = %v, want %v", c.text, gamma, c.gamma)
		}
		if c.red >= 0 && math.Abs(law[0]-c.red) > 1e-12 {
			t.Errorf("%q: p(red) = %v, want %v", c.text, law[0], c.red)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	const hedge = "oracle: {kind: hedge, class: f.jsonl}"
	for _, c := range []struct{ text, file, want string }{
		{hedge, "", `model hindsight: oracle: class "f.jsonl": the file is not there`},
		{hedge, "{}", "model hindsight: oracle: f.jsonl:1: the first line is not a class header"},
		{hedge + "\nactions: [red, blue]", linearText, `class f.jsonl does not know the action "blue"`},
	} {
		files := map[string][]byte{}
		if c.file != "" {
			files["f.jsonl"] = []byte(c.file)
		}
		if _, err := mustParse(t, c.text).Build(files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestFiles(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil,
		"oracle: {kind: hedge, class: sub/f.jsonl}":                   {"sub/f.jsonl"},
		"oracle: {kind: hedge, class: sub/f.jsonl}\nlearner: uniform": nil,
	} {
		if got := mustParse(t, text).Files(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	got := mustParse(t, read(t, "full.yaml")).Rules()
	want := &loop.Rules{
		Actions: []string{"red", "green:2", "3"}, MaxActions: 5,
		Features: []loop.FeatureRule{{Name: "age", Kind: loop.NumberFeature}, {Name: "country", Kind: loop.TextFeature},
			{Name: "price", Kind: loop.NumberFeature, Bounded: true, Hi: 100}, {Name: "vip", Kind: loop.BoolFeature}},
		Range: loop.Range{Min: -1, Max: 3.5, Clip: true}, Reward: true,
		Window: loop.Window{Nanos: 36 * 3600 * 1e9}, Impute: true, DefaultLoss: 0.75, Outcomes: loop.Mean,
		Activation: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if r := Default().Rules(); r.Actions != nil || r.Features != nil {
		t.Errorf("the default model restricts actions or features: %+v", r)
	}
}

func TestEpoch(t *testing.T) {
	e, err := Epoch(&codec.Epoch{Epoch: 3, Model: Default().Canonical()}, nil)
	if err != nil || e.Number != 3 || e.Learner == nil || e.Rules.MaxActions != 1000 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := Epoch(&codec.Epoch{Epoch: 3, Model: []byte("windw: 1")}, nil); err == nil ||
		!strings.HasPrefix(err.Error(), "epoch 3:1:1: unknown key") {
		t.Errorf("a broken record: %v", err)
	}
	for _, c := range []struct {
		holdOut, cause string
		want           float64
	}{{"0", codec.PromotionCause(7), .25}, {"0.5", codec.PromotionCause(7), .5}, {"0.125", "", .125}} {
		m := mustParse(t, "hold_out: "+c.holdOut+"\ncandidates: [learner]\npromote: {of: learner, only: switch, "+
			"share: 0.75}")
		e, err := Epoch(&codec.Epoch{Epoch: 1, Model: m.Canonical(), Cause: c.cause}, nil)
		if err != nil || e.Rules.HoldOut != c.want {
			t.Errorf("%+v: %+v, %v", c, e.Rules, err)
		}
	}
}

// TestEpochOfClassListsItsActions: of other actions the class knows nothing, so a
// context that lists one must be refused.
func TestEpochOfClassListsItsActions(t *testing.T) {
	files := map[string][]byte{"f.jsonl": []byte(linearText)}
	for _, learner := range []string{"dafa", "greedy", "{egreedy: 0.1}"} {
		m := mustParse(t, "learner: "+learner+"\noracle: {kind: hedge, class: f.jsonl}\n")
		ep, err := Epoch(&codec.Epoch{Epoch: 1, Model: m.Canonical()}, files)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(ep.Rules.Actions, " "); got != "red green" {
			t.Errorf("learner %s: actions %q", learner, got)
		}
	}
	ep, err := Epoch(&codec.Epoch{Epoch: 1, Model: Default().Canonical()}, nil)
	if err != nil || ep.Rules.Actions != nil {
		t.Error(ep.Rules.Actions, err)
	}
}

// TestBoundsReachTheOracle holds that a number with bounds is scaled by them. A
// number without bounds that never varied reads 0, so that the law depends on it
// only with bounds.
func TestBoundsReachTheOracle(t *testing.T) {
	differs := func(features string) bool {
		l := build(t, "features: "+features)
		x := colours()
		for n := range int64(3) {
			l.Learn(&learner.Round{Input: x, Action: 0, Propensities: []float64{0.5, 0.5}, Gamma: 20, N: n + 1,
				LearnedThrough: n, Fate: learner.Observed, Loss: 1})
		}
		near, _ := l.Propensities(nil, x)
		x.Features[0].Value = 100
		far, _ := l.Propensities(nil, x)
		return near[0] != far[0]
	}
	if differs("{age: number}") {
		t.Error("a number that never varied has an effect")
	}
	if !differs("{age: {number: [0, 100]}}") {
		t.Error("the bounds have no effect")
	}
}

// TestElimination: it does not play what no function that survives thinks best.
func TestElimination(t *testing.T) {
	const class = `{"hindsight_class":1,"kind":"linear","features":["x"],"actions":["a","b"]}` + "\n" +
		`{"w":[[0,0],[1,0]]}`
	for kind, plays := range map[string]bool{"elimination": false, "dafa": true} {
		m := mustParse(t, "actions: [a, b]\noracle: {kind: hedge, class: f}\nlearner: "+kind)
		l, err := m.Build(map[string][]byte{"f": []byte(class)})
		if err != nil {
			t.Fatal(err)
		}
		law, _ := l.Propensities(nil, &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}})
		if (law[1] > 0) != plays {
			t.Errorf("%s has the law %v", kind, law)
		}
	}
}

// TestEpochOfPartitions: models in the order of arrival are certified where the order of decisions is known.
func TestEpochOfPartitions(t *testing.T) {
	const class = `{"hindsight_class":1,"kind":"linear","features":["x"],"actions":["a","b"]}` + "\n" +
		`{"w":[[0,1],[1,0]]}`
	for _, c := range []struct {
		order      string
		partitions int
		watched    bool
	}{{"fifo", 1, true}, {"fifo", 2, true}, {"arrival", 1, true}, {"arrival", 2, false}} {
		m := mustParse(t, "actions: [a, b]\noracle: {kind: hedge, class: f}\norder: "+c.order)
		e, err := Epoch(&codec.Epoch{Epoch: 1, Partitions: c.partitions, Model: m.Canonical()},
			map[string][]byte{"f": []byte(class)})
		if err != nil {
			t.Fatal(err)
		}
		if watched := e.Learner.(*learner.DAFA).Models() != nil; watched != c.watched {
			t.Errorf("%+v: %v", c, watched)
		}
	}
}
