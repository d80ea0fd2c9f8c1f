package learner_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// exp4World is a game with oblivious losses and delays: four policies, two actions,
// the losses of a block of contexts are what an adversary would choose.
type exp4World struct {
	rounds int
	delay  func(t int, loss float64, rng *rand.Rand) int
	fifo   bool
	forge  float64 // factor on the propensities that the learner is told; 1: honest
}

// play returns the regret against the best policy and the three bounds.
func (w exp4World) play(o learner.EXP4Options, seed uint64) (regret float64, c learner.PolicyCertificate) {
	rng := rand.New(rand.NewPCG(seed, 11))
	bit := func(i int) policy {
		return policy(func(x *oracle.Input) int { return int(x.Vector[i]) })
	}
	e := newEXP4(o, constant(0), constant(1), bit(0), bit(1))
	at := make([][]learner.Round, w.rounds+1)
	var total [4]float64
	var loss [2]float64
	arrives, learned := 0, int64(0)
	for t := range w.rounds {
		if t%20 == 0 {
			loss[0] = float64(rng.IntN(2))
			loss[1] = 1 - loss[0]
		}
		x := &oracle.Input{Vector: []float64{float64(rng.IntN(2)), loss[0]}, Actions: actions(2)}
		if rng.IntN(4) == 0 {
			x.Vector[1] = 1 - loss[0]
		}
		law, _ := e.Propensities(nil, x)
		regret += law[0]*loss[0] + law[1]*loss[1]
		for i, a := range []int{0, 1, int(x.Vector[0]), int(x.Vector[1])} {
			total[i] += loss[a]
		}
		a := learner.Draw(law, rng.Uint64()>>11)
		told := append([]float64(nil), law...)
		for i := range told {
			told[i] *= w.forge
		}
		due := min(t+w.delay(t, loss[a], rng), w.rounds)
		if w.fifo {
			due = max(due, arrives)
			arrives = due
		}
		at[due] = append(at[due], learner.Round{Input: x, Action: a, Propensities: told, LearnedThrough: learned,
			Fate: learner.Observed, Loss: loss[a]})
		for _, r := range at[t] {
			learned++
			r.N = learned
			e.Learn(&r)
		}
	}
	for _, r := range at[w.rounds] {
		learned++
		r.N = learned
		e.Learn(&r)
	}
	return regret - min(total[0], total[1], total[2], total[3]), e.PolicyCertificate()
}

// TestEXP4Bounds holds that the mean regret is at most the mean of each bound, for
// all forms, delays that look at losses in FIFO order, and oblivious ones out of order.
// Told half of the propensities, the learner's measured bound must fail.
func TestEXP4Bounds(t *testing.T) {
	seeds := 60
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds = 1000
	} else if testing.Short() {
		seeds = 20
	}
	worlds := map[string]exp4World{
		"none":    {400, func(int, float64, *rand.Rand) int { return 0 }, false, 1},
		"reorder": {400, func(_ int, _ float64, rng *rand.Rand) int { return rng.IntN(60) }, false, 1},
		"burst":   {400, func(t int, _ float64, _ *rand.Rand) int { return 99 - t%100 }, true, 1},
		"by loss": {400, func(_ int, loss float64, _ *rand.Rand) int { return int(50 * loss) }, true, 1},
	}
	eta := learner.EXP4Eta(4, 2, 400, 10_000)
	for name, w := range worlds {
		for form, o := range map[string]learner.EXP4Options{"known": {Eta: eta}, "adaptive": {},
			"plain": {Eta: eta, Plain: true}} {
			slack, honest := make([]float64, 3), true
			squares := make([]float64, 3)
			for s := range seeds {
				regret, c := w.play(o, uint64(s))
				for i, b := range []float64{c.Measured, c.MeasuredDrift, c.APriori} {
					slack[i] += b - regret
					squares[i] += (b - regret) * (b - regret)
				}
			}
			for i, what := range []string{"measured", "measured drift", "a priori"} {
				mean := slack[i] / float64(seeds)
				se := math.Sqrt(math.Max(0, squares[i]/float64(seeds)-mean*mean) / float64(seeds))
				if mean < -2*se {
					t.Errorf("%s, %s: %s is below the regret by %v ± %v", name, form, what, -mean, se)
					honest = false
				}
			}
			t.Logf("%s, %s: over the regret by %.1f (measured), %.1f (drift), %.1f (a priori): %v", name, form,
				slack[0]/float64(seeds), slack[1]/float64(seeds), slack[2]/float64(seeds), honest)
		}
	}
	w := worlds["none"]
	w.forge = 0.5
	slack := 0.0
	for s := range seeds {
		regret, c := w.play(learner.EXP4Options{Eta: eta, Plain: true}, uint64(s)) // the max would hide it
		slack += c.Measured - regret
	}
	if slack >= 0 {
		t.Errorf("told half the propensities the measured bound still holds, by %v", slack/float64(seeds))
	}
}
