package learner_test

import (
	"math"
	"slices"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/learner/learnertest"
	"hindsight/pkg/oracle"
)

func eliminating(h *oracle.Hedge) *learner.DAFA {
	d := watched(h, learner.ModelsOptions{})
	if err := d.Eliminate(); err != nil {
		panic(err)
	}
	return d
}

func TestContractEliminate(t *testing.T) {
	learnertest.Test(t, func() learner.Learner {
		return eliminating(newHedge(oracle.HedgeOptions{}))
	}, learnertest.Options{})
	if learner.NewDAFA(newHedge(oracle.HedgeOptions{}), learner.Fixed{}).Eliminate() == nil {
		t.Error("elimination without models")
	}
}

// TestEliminate holds that exactly what a surviving function thinks best is played, that
// the best action is among it while the truth survives, and that regret falls.
func TestEliminate(t *testing.T) {
	with, without := 0.0, 0.0
	for seed := range uint64(5) {
		w := newWorld(60 + seed)
		d := eliminating(must(oracle.NewHedge(w.class, oracle.HedgeOptions{})))
		zeros, values := 0, make([]float64, worldSize)
		for _, r := range w.run(d, 1500, waits["constant"], nil) {
			regret, _, _, _ := r.terms()
			with += regret
			if r.Propensities[slices.Index(r.truth, slices.Min(r.truth))] == 0 {
				t.Fatalf("seed %d, round %d: the best action is not played", seed, r.N)
			}
			if slices.Contains(r.Propensities, 0) {
				zeros++
			}
		}
		x := w.input()
		law, _ := d.Propensities(nil, x)
		best := map[int]bool{}
		for _, m := range must(d.Models().Append(nil, 0)) {
			at, low := 0, math.Inf(1)
			for a := range x.Actions {
				w.class.Eval(values, x, a)
				if v := values[m.Function]; v < low {
					at, low = a, v
				}
			}
			best[at] = true
		}
		for a, p := range law {
			if p > 0 != best[a] {
				t.Errorf("seed %d: law %v, of use are %v", seed, law, best)
			}
		}
		if zeros < 700 {
			t.Errorf("seed %d: some action was eliminated in %d of 1500 rounds only", seed, zeros)
		}
		w = newWorld(60 + seed)
		for _, r := range w.run(dafaOver(w, oracle.HedgeOptions{}, learner.Anytime{C: learner.Balanced}), 1500,
			waits["constant"], nil) {
			regret, _, _, _ := r.terms()
			without += regret
		}
		if c := d.Certificate(); !c.Eliminates || c.MeasuredDrift() > 1500 {
			t.Errorf("%+v", c)
		}
	}
	t.Logf("regret with elimination %.1f, without %.1f", with/5, without/5)
	if with > without/2 {
		t.Errorf("regret with elimination %v, without %v", with, without)
	}
}
