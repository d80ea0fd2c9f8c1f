package model

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// TestBuildEXP4 holds that each option reaches the learner: the prior, a class file in
// place of policies, η for a known D, and the weighting.
func TestBuildEXP4(t *testing.T) {
	files := map[string][]byte{"p.jsonl": []byte(policyText), "c.jsonl": []byte(linearText)}
	for _, c := range []struct {
		text string
		red  float64
		eta  float64 // +Inf: adaptive, nothing learned
	}{
		// weights 2 : 1 of green and red
		{"learner: {kind: exp4dale, policies: p.jsonl}", 1.0 / 3, math.Inf(1)},
		// K = 2
		{"learner: {kind: exp4dale, policies: p.jsonl, d: 7, horizon: 10}", 1.0 / 3, math.Sqrt(math.Log(2) / (20 + 7))},
		{"learner: {kind: exp4dale, policies: c.jsonl}", 1, math.Inf(1)}, // at age ½: 2·½+…: both say red
		{"learner: exp4dale\noracle: {kind: hedge, class: c.jsonl}", 1, math.Inf(1)},
	} {
		l, err := mustParse(t, c.text).Build(files)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		law, _ := l.Propensities(nil, colours())
		eta := l.(*learner.EXP4).Eta()
		if math.Abs(law[0]-c.red) > 1e-12 || eta != c.eta && !(math.Abs(eta-c.eta) < 1e-12) {
			t.Errorf("%q: law %v, η %v, want %v, %v", c.text, law, eta, c.red, c.eta)
		}
	}
}

func TestBuildEXP4Errors(t *testing.T) {
	const text = "learner: {kind: exp4dale, policies: p.jsonl}"
	for _, c := range []struct{ text, file, want string }{
		{text, "", `model hindsight: learner: policies "p.jsonl": the file is not there`},
		{text, "nothing", "neither a policy file nor a class file: p.jsonl:1:1: expected an object {…}, found"},
		{text, `{"hindsight_class":1,"kind":"tree"}`, "p.jsonl:1: kind: expected linear"},
		{text, `{"hindsight_policies":1}`, "p.jsonl:1:1: actions: expected at least one name"},
		{text + "\nactions: [red, blue]", policyText, `p.jsonl does not know the action "blue"`},
	} {
		files := map[string][]byte{}
		if c.file != "" {
			files["p.jsonl"] = []byte(c.file)
		}
		if _, err := mustParse(t, c.text).Build(files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestEpochEXP4 holds that an epoch's rules know the actions of the policies, and that
// the file is one of the model's.
func TestEpochEXP4(t *testing.T) {
	m := mustParse(t, "learner: {kind: exp4dale, policies: p.jsonl}")
	if got := m.Files(); !reflect.DeepEqual(got, []string{"p.jsonl"}) {
		t.Errorf("files %v", got)
	}
	e, err := Epoch(&codec.Epoch{Epoch: 1, Model: m.Canonical()}, map[string][]byte{"p.jsonl": []byte(policyText)})
	if err != nil || !reflect.DeepEqual(e.Rules.Actions, []string{"red", "green"}) {
		t.Errorf("%+v, %v", e.Rules, err)
	}
}

// TestEXP4RoundTrip holds that the canonical form reads back, and flags what they write.
func TestEXP4RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Default()
		m.Learner = Learner{Kind: EXP4DALE, EXP4: exp4{Policies: names(20).Draw(t, "file"),
			Plain: rapid.Bool().Draw(t, "plain"), Delays: Number{Auto: true}}}
		if rapid.Bool().Draw(t, "known") {
			m.Learner.EXP4.Delays = Number{Value: float64(rapid.Int64Range(0, maxDelays).Draw(t, "D"))}
			m.Learner.EXP4.Horizon = rapid.Int64Range(1, maxHorizon).Draw(t, "T")
		}
		m.DefaultOrder()
		b := m.Canonical()
		got, err := Parse("m.yaml", b)
		if err != nil || !reflect.DeepEqual(got, m) || string(got.Canonical()) != string(b) {
			t.Fatalf("%s\nreads as %+v, %v", b, got, err)
		}
		l, err := ParseLearner(m.Learner.String())
		l.EXP4.Policies, l.EXP4.Horizon = m.Learner.EXP4.Policies, m.Learner.EXP4.Horizon
		if err != nil || l != m.Learner {
			t.Fatalf("%q reads as %+v, %v", m.Learner.String(), l, err)
		}
	})
}

// TestEXP4Text holds what each form of the learner means.
func TestEXP4Text(t *testing.T) {
	for _, c := range []struct {
		text string
		want func(m *Model)
	}{
		{"learner: {kind: exp4dale, policies: p.jsonl}\norder: arrival", func(m *Model) {
			m.Learner, m.Arrival = Learner{Kind: EXP4DALE, EXP4: exp4{Policies: "p.jsonl", Delays: Number{Auto: true}}},
				true
		}},
		{"learner: {kind: exp4dale, policies: p.jsonl, d: 100, horizon: 20, plain: true}", func(m *Model) {
			m.Learner = Learner{Kind: EXP4DALE, EXP4: exp4{Policies: "p.jsonl", Delays: Number{Value: 100}, Horizon: 20,
				Plain: true}}
		}},
		{"learner: exp4dale:plain\noracle: {kind: hedge, class: f.jsonl}", func(m *Model) {
			m.Learner, m.Oracle = Learner{Kind: EXP4DALE, EXP4: exp4{Policies: "f.jsonl", Delays: Number{Auto: true},
				Plain: true}}, Oracle{Kind: Hedge, Eta: 0.5, Class: "f.jsonl"}
		}},
	} {
		want := Default()
		c.want(want)
		want.DefaultOrder()
		if got := mustParse(t, c.text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\ngot  %+v\nwant %+v", c.text, got, want)
		}
	}
}

// TestEXP4TextErrors holds where and how wrong forms are refused, and oracles that no
// model file may name.
func TestEXP4TextErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"learner: exp4dale", `m.yaml:1:10: learner: exp4dale needs a policy file or a class file`},
		{"learner: exp4dale:maybe",
			`m.yaml:1:10: learner: learner exp4dale: "maybe" is neither plain nor a sum of delays`},
		{"learner: {kind: exp4dale}", `m.yaml:1:10: learner: exp4dale needs a policy file or a class file`},
		{"learner: {kind: dafa}", `m.yaml:1:17: learner.kind: expected exp4dale, found "dafa"`},
		{"learner: {kind: exp4dale, policies: p, eta: 1}", `m.yaml:1:40: learner: unknown key "eta"`},
		{"learner: {kind: exp4dale, policies: p, d: -1}",
			`m.yaml:1:43: learner.d: expected auto or a whole number in 0…`},
		{"learner: {kind: exp4dale, policies: p, d: 5}", `m.yaml:1:43: learner.d: with a known sum of delays`},
		{"learner: exp4dale:5", `m.yaml:1:10: learner.d: with a known sum of delays`},
		{"learner: {kind: exp4dale, policies: p, horizon: 5}",
			`m.yaml:1:49: learner.horizon: it has no effect with d: auto`},
		{"oracle: {kind: unstable}",
			`m.yaml:1:16: oracle.kind: unstable is the oracle of an environment, for backtests only`},
	} {
		if _, err := Parse("m.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\ngot  %v\nwant %s…", c.text, err, c.want)
		}
	}
}
