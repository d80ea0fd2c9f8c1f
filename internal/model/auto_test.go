package model

import (
	"strings"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestResolveAuto: random features where K·(d+128)² ≤ 1e6, optimism where K·d² ≤ 1e5;
// what the model lists, or else its limits, stand for what is not known, but no number
// of columns is expected then.
func TestResolveAuto(t *testing.T) {
	for _, c := range []struct {
		text             string
		columns, actions int
		wantColumns, m   float64
		beta             float64
		canonical        string
	}{
		{"oracle: auto\nmax_actions: 10", 17, 10, 17, 128, .5, "{kind: auto, beta: 0.5, columns: 17, fourier: 128, " +
			"seed: 1}"},
		{"oracle: auto\nmax_actions: 10", 118, 2, 118, 128, .5,
			"{kind: auto, beta: 0.5, columns: 118, fourier: 128, seed: 1}"},
		{"oracle: auto", 189, 10, 189, 0, 0, ""}, // 10·317² > 1e6
		{"oracle: auto\nmax_actions: 10", 188, 10, 188, 128, 0, ""},
		{"oracle: auto\nmax_actions: 10", 1, 10, 1, 128, .5, ""},
		{"oracle: auto", 0, 0, 0, 0, 0, ""},     // 1000·385²: the limits stand
		{"oracle: auto", 17, 10, 17, 0, .5, ""}, // 1000 actions of 385 columns do not fit 1 GiB
		{"oracle: auto\nactions: [a, b]\nfeatures: {x: number}", 0, 0, 0, 128, .5, ""},
		{"oracle: {kind: auto, columns: 17, beta: 1, fourier: 7, seed: 3}\nmax_actions: 10", 189, 10, 17, 7, 1,
			"{kind: auto, beta: 1, columns: 17, fourier: 7, seed: 3}"},
	} {
		m := mustParseLogged(t, c.text)
		m.Resolve(c.columns, c.actions)
		o := m.Oracle
		if o.Columns != (Number{Value: c.wantColumns}) || o.Fourier != (Number{Value: c.m}) ||
			o.Beta != (Number{Value: c.beta}) {
			t.Errorf("%q, d = %d, K = %d: %+v", c.text, c.columns, c.actions, o)
		}
		if c.canonical != "" && !strings.Contains(string(m.Canonical()), "oracle: "+c.canonical+"\n") {
			t.Errorf("%q: canonical form\n%s", c.text, m.Canonical())
		}
		mustParseLogged(t, string(m.Canonical()))
	}
}

// TestSubstitution: vovk has eta 2 unless another is given, says that it is unproved, and
// leaves the canonical form of others as it was.
func TestSubstitution(t *testing.T) {
	m := mustParse(t, "oracle: {kind: hedge, class: f.jsonl, substitution: vovk, unproved: true}")
	if !m.Oracle.Vovk || m.Oracle.Eta != 2 {
		t.Errorf("%+v", m.Oracle)
	}
	if back := mustParse(t, string(m.Canonical())); back.Oracle != m.Oracle {
		t.Errorf("read back as %+v", back.Oracle)
	}
	if mean := mustParse(t, "oracle: {kind: hedge, class: f.jsonl, substitution: mean}"); strings.Contains(
		string(mean.Canonical()), "substitution") {
		t.Errorf("canonical form\n%s", mean.Canonical())
	}
	for _, text := range []string{"substitution: vovk", "substitution: vovk, eta: 0.5",
		"substitution: vovk, eta: 3, unproved: true"} {
		if _, err := Parse("m.yaml", []byte("oracle: {kind: hedge, class: f.jsonl, "+text+"}")); err == nil ||
			!strings.Contains(err.Error(), "substitution: vovk: it needs unproved: true") {
			t.Errorf("%s: %v", text, err)
		}
	}
	const vovk = "oracle: {kind: hedge, class: f.jsonl, substitution: vovk, unproved: true}"
	h := build(t, vovk).(*learner.DAFA).Oracle().(*oracle.Hedge)
	if h.Proved() || h.Regret() >= 2*0.6 { // log(3/1)/2
		t.Errorf("proved %v, regret %v", h.Proved(), h.Regret())
	}
}

// TestBuildAuto: the model file alone makes the oracle, and its memory is that of the
// oracle's own rule.
func TestBuildAuto(t *testing.T) {
	l := build(t, "oracle: {kind: auto, columns: 2, fourier: 16, seed: 9}\n"+
		"features: {age: {number: [0, 1]}}\nactions: [red, green]")
	o, ok := l.(*learner.DAFA).Oracle().(*oracle.Aggregate)
	if !ok {
		t.Fatalf("built %T", l)
	}
	x := colours()
	for range 5 {
		o.Update(x, 0, 1)
	}
	if w := o.AppendWeights(nil); len(w) != 3 {
		t.Errorf("weights %v, want three members", w)
	}
	m := mustParse(t, "oracle: auto\nactions: [a, b]\nmax_features: 16")
	if got, want := m.Memory(), int64(oracle.AggregateBytes(2, 17, 0, 0)); got != want {
		t.Errorf("memory %d, want %d", got, want)
	}
	if _, err := ParseOracle("hedge"); err == nil {
		t.Error("hedge by flag is accepted: it has no class")
	}
	if o, err := ParseOracle("linear"); err != nil || o != oracleOf(Linear) {
		t.Errorf("linear: %+v, %v", o, err)
	}
	for _, kind := range []string{Auto, Shared, Hybrid, Diagonal} {
		if o, err := ParseOracle(kind); err != nil || o.Kind != kind {
			t.Errorf("%s: %+v, %v", kind, o, err)
		}
	}
}
