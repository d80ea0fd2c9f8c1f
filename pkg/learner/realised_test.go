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
	// The least over the rates 1, ½, …, 2^−15, computed apart, and 7 rounds.
	for lost, want := range map[float64]float64{0: math.Log(16/.05) / (1 - math.Exp(-1)), 1: 10.707326159960353,
		1000: 1112.892543874764, 1e6: 1003433.9727785675, 1e12: 1000015447884.6854} {
		c := learner.Certificate{Counted: true, Skipped: 3, Imputed: 4, Lost: lost}
		if got := c.Realised(.05); math.Abs(got-want-7) > 1e-12*(want+7) {
			t.Errorf("%v lost: %v, want %v", lost, got, want+7)
		}
	}
	if !math.IsInf(learner.Certificate{}.Realised(.05), 1) {
		t.Error("a bound of what nobody counted")
	}
}
