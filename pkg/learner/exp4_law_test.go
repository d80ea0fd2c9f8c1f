package learner_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestEXP4Law holds that the law is the sum of the weights of the policies that play
// each action, for any number of policies, and that a policy's weight is its prior times
// e^{−ηĈ}.
func TestEXP4Law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, k := rapid.IntRange(1, 41).Draw(t, "policies"), rapid.IntRange(1, 6).Draw(t, "actions")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		advice, prior := make(adviceGiven, n), make([]float64, n)
		for i := range prior {
			prior[i] = 0.1 + rng.Float64()
		}
		eta := rapid.SampledFrom([]float64{0, 0.1, 2}).Draw(t, "η")
		e := must(learner.NewEXP4(advice, learner.EXP4Options{Eta: eta, Prior: prior}))
		x := &oracle.Input{Actions: actions(k)}
		for round := range int64(12) {
			for i := range advice {
				advice[i] = int32(rng.IntN(k))
			}
			want, sum, rate := make([]float64, k), 0.0, e.Eta()
			if math.IsInf(rate, 1) {
				rate = 0
			}
			losses := e.AppendLosses(nil)
			least := losses[0]
			for _, v := range losses {
				least = min(least, v)
			}
			for i, a := range advice {
				w := prior[i] * math.Exp(-rate*(losses[i]-least))
				want[a] += w
				sum += w
			}
			law, _ := e.Propensities(nil, x)
			for a := range law {
				if math.Abs(law[a]-want[a]/sum) > 1e-11 {
					t.Fatalf("round %d: law %v, want %v of %v", round, law, want, sum)
				}
			}
			e.Learn(&learner.Round{Input: x, Action: learner.Draw(law, rng.Uint64()>>11), Propensities: law,
				N: round + 1, LearnedThrough: round, Fate: learner.Observed, Loss: rng.Float64()})
		}
	})
}
