package replay

import (
	"math"
	"testing"

	"hindsight/pkg/learner"
)

// TestInOrder holds that in the order of arrival, too, where delays depend on the losses, the
// plausible set is that of rounds in the order of decisions: it keeps the truth, covers the
// regret, and raises no alarm; and that its laws are those that were played.
func TestInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	for seed := range uint64(8) {
		env := environment(t, "sigmoid", seed, 800)
		tr := trialOf(t, env, "dafa", "200", "loss:0,100")
		tr.Model.Arrival = true
		tr.Seed, tr.Delays = seed, delays(t, "loss:0,100", seed)
		r, err := tr.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Certificate.PlausibleSet
		if p == nil || p.Vacuous || *r.Regret > *p.Value+1e-8 {
			t.Fatalf("seed %d: regret %v, %+v", seed, *r.Regret, p)
		}
		if r.Certificate.Assumptions[1].State != "not refuted" {
			t.Errorf("seed %d: %+v", seed, r.Certificate.Assumptions[1])
		}
		l, err := tr.Model.Build(tr.Files)
		if err != nil {
			t.Fatal(err)
		}
		if l.(*learner.DAFA).Models() == nil {
			t.Fatal("the learner keeps no models")
		}
	}
}

// TestInOrderIsFIFO holds that without delay the models beside the learner are those within.
func TestInOrderIsFIFO(t *testing.T) {
	bounds := [2]float64{}
	for i, arrival := range []bool{false, true} {
		tr := trialOf(t, environment(t, "close:0.3", 3, 500), "dafa", "200", "none")
		tr.Model.Arrival = arrival
		r, err := tr.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		bounds[i] = *r.Certificate.PlausibleSet.Value
	}
	if math.Abs(bounds[0]-bounds[1]) > 1e-9 {
		t.Errorf("bounds %v", bounds)
	}
}
