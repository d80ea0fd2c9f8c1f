package learner_test

import (
	"bytes"
	"math"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestEXP4Borrows works a round that another law played: K is Σ Q̃(a)/Q(a), and the divisor Q(a) + ε, ε = η/2 or 0.
// Of a law that never plays some action, and of a round without a loss, nothing is learned.
func TestEXP4Borrows(t *testing.T) {
	x := &oracle.Input{Actions: actions(2)}
	for _, eta := range []float64{0, 0.5} {
		e := newEXP4(learner.EXP4Options{Eta: eta}, constant(0), constant(1))
		for n, r := range []learner.Round{{Propensities: []float64{1, 0}, Fate: learner.Observed, Loss: 1},
			{Propensities: []float64{0.25, 0.75}, Fate: learner.Skipped}} {
			r.Input, r.N, r.Borrowed = x, int64(n+1), true
			e.Learn(&r)
		}
		if c := e.AppendLosses(nil); c[0] != 0 || c[1] != 0 || e.Learned() != 0 {
			t.Errorf("Ĉ = %v after %d", c, e.Learned())
		}
		e.Learn(&learner.Round{Input: x, Propensities: []float64{0.25, 0.75}, N: 3, LearnedThrough: 1,
			Fate: learner.Observed, Loss: 0.5, Borrowed: true})
		divisor, spent := 0.25, 0.5/0.25+0.5/0.75+1
		if eta == 0 {
			divisor += math.Sqrt(math.Ln2/2) / 2 // in the first round K is the number of actions
			near(t, "η", e.Eta(), math.Sqrt(math.Ln2/spent))
		}
		near(t, "Ĉ", e.AppendLosses(nil)[0], 0.5/divisor)
		if c := e.AppendLosses(nil); c[1] != 0 || e.Learned() != 1 {
			t.Errorf("Ĉ = %v after %d", c, e.Learned())
		}
		p := e.PolicyCertificate() // it can hide a regret and a variance of 1
		near(t, "charged", p.Measured, 2)
		near(t, "charged beside the rate", p.MeasuredDrift, math.Ln2/e.Eta()+2)
	}
}

// TestEXP4Begins: before anything is learned rounds that were skipped are all that is charged.
func TestEXP4Begins(t *testing.T) {
	x := &oracle.Input{Actions: actions(2)}
	near(t, "η of 400 rounds", learner.EXP4Eta(4, 2, 400, 10_000), math.Sqrt(math.Log(4)/10_800))
	e := newEXP4(learner.EXP4Options{}, constant(0), constant(1))
	if p := e.PolicyCertificate(); p != (learner.PolicyCertificate{}) {
		t.Errorf("%+v", p)
	}
	e.Learn(&learner.Round{Input: x, Propensities: []float64{0.5, 0.5}, N: 1, Fate: learner.Skipped})
	want := learner.PolicyCertificate{Rounds: 1, Skipped: 1, Measured: 1, MeasuredDrift: 1, APriori: 1}
	if p := e.PolicyCertificate(); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
}

// TestEarlierLayout: what a program without models would have written here is read by one, and known to lack them.
func TestEarlierLayout(t *testing.T) {
	h := newHedge(oracle.HedgeOptions{})
	d := watched(h, learner.ModelsOptions{})
	plain := func() *learner.DAFA {
		return learner.NewDAFA(newHedge(oracle.HedgeOptions{}), learner.Anytime{C: learner.Balanced})
	}
	of := plain()
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a0"}, {Name: "a1"}}}
	for n := range int64(20) {
		r := &learner.Round{Input: x, Action: int(n % 2), Propensities: []float64{0.5, 0.5}, Gamma: 9, N: n + 1,
			LearnedThrough: n, Decision: n + 1, Fate: learner.Observed, Loss: float64(n%3) / 2}
		d.Learn(r)
		of.Learn(r)
	}
	before := []byte("before")
	earlier, err := d.AppendEarlier(before)
	want, wrong := of.AppendBinary([]byte("before"))
	if err != nil || wrong != nil || !bytes.Equal(earlier, want) {
		t.Errorf("%v, %v: it is not what a program without models writes", err, wrong)
	}
	earlier = earlier[len(before):]
	now := must(d.AppendBinary(nil))
	for name, c := range map[string]struct {
		l        *learner.DAFA
		snapshot []byte
		want     bool
	}{"earlier": {d, earlier, true}, "now": {d, now, false}, "one byte": {d, earlier[:1], false},
		"two bytes": {d, earlier[:2], true}, "nothing": {d, nil, false}, "without models": {of, earlier, false}} {
		if got := c.l.Lacks(c.snapshot); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	again := plain()
	if err := again.UnmarshalBinary(earlier); err != nil || again.Learned() != 20 {
		t.Errorf("%v after %d", err, again.Learned())
	}
}
