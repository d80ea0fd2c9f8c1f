package learner_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
)

// TestRealised holds the bound by what was lost at all times of runs with changing means, in
// all but few of them, that it is near when much is lost, and that the check fails when one
// in seven losses is left out.
func TestRealised(t *testing.T) {
	const runs, rounds, alpha = 400, 3000, 0.05
	broken := func(left float64) (n int) {
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 5))
			c := learner.Certificate{Counted: true}
			sum, bad := 0.0, false
			for s := range rounds {
				mean := .1 + .8*float64(s*int(seed+1)/97%2)*rng.Float64()
				sum += mean
				if rng.Float64() < mean && rng.Float64() >= left {
					c.Lost++
				}
				bad = bad || s%10 == 0 && sum > c.Realised(alpha)
			}
			if bad {
				n++
			}
			if b := c.Realised(alpha); seed == 0 && left == 0 {
				t.Logf("expected %.0f, realised %.0f, bound %.0f", sum, c.Lost, b)
				if b > 1.25*c.Lost+10 {
					t.Errorf("%v lost, bound %v", c.Lost, b)
				}
			}
		}
		return n
	}
	few := func(n int) bool { return float64(n) <= alpha*runs+3*math.Sqrt(alpha*(1-alpha)*runs) }
	if n := broken(0); !few(n) {
		t.Errorf("broken in %d of %d runs", n, runs)
	}
	if n := broken(.15); few(n) {
		t.Errorf("with losses left out broken in %d of %d runs: the check cannot fail", n, runs)
	}
	c := learner.Certificate{Counted: true, Skipped: 3, Imputed: 4}
	// Nothing was lost: the price alone, least at rate 1, and 7 rounds.
	if got, want := c.Realised(.05), math.Log(16/.05)/(1-math.Exp(-1))+7; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if !math.IsInf(learner.Certificate{}.Realised(.05), 1) {
		t.Error("a bound of what nobody counted")
	}
}
