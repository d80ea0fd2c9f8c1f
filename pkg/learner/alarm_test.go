package learner_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/internal/testkit/daily"
	_ "hindsight/internal/testkit/roomy"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// misspecified says how the mean loss of a world departs from f⋆.
type misspecified func(f float64, x *oracle.Input) float64

func shifted(by float64) misspecified {
	return func(f float64, _ *oracle.Input) float64 { return math.Min(f+by, 1) }
}

// half shifts by that much where the first feature is positive, towards ½ past it.
func half(by float64) misspecified {
	return func(f float64, x *oracle.Input) float64 {
		if x.Features[0].Value <= 0 {
			return f
		}
		return math.Max(0, math.Min(f+by, 1))
	}
}

// sound runs DA-FA with the alarm for at most so many rounds without delay, and returns
// the round at which the alarm was raised, 0 if it was not.
func sound(seed uint64, rounds int, wrong misspecified) int64 {
	const size, k, dim = 100, 5, 5
	rng := rand.New(rand.NewPCG(seed, 21))
	class, actions := sigmoidClass(rng, size, k, dim)
	d := watched(must(oracle.NewHedge(class, oracle.HedgeOptions{})), learner.ModelsOptions{Alarm: true})
	x := &oracle.Input{Actions: actions, Features: make([]oracle.Feature, dim)}
	f := make([]float64, size)
	var law []float64
	var gamma float64
	for n := range int64(rounds) {
		for j := range x.Features {
			x.Features[j] = oracle.Feature{Name: "x" + string(rune('0'+j)), Kind: oracle.Number,
				Value: 2*rng.Float64() - 1}
		}
		law, gamma = d.Propensities(law[:0], x)
		r := learner.Round{Input: x, Action: learner.Draw(law, rng.Uint64()>>11), Propensities: law,
			Gamma: gamma, N: n + 1, LearnedThrough: n, Fate: learner.Observed}
		class.Eval(f, x, r.Action)
		if rng.Float64() < wrong(f[0], x) {
			r.Loss = 1
		}
		d.Learn(&r)
		if p := d.Certificate().Plausible; n%16 == 15 && p.Raised > 0 {
			return p.Raised
		}
	}
	return 0
}

// power returns how often the alarm was raised and the mean round at which.
func power(runs, rounds int, wrong misspecified) (share, at float64) {
	for seed := range uint64(runs) {
		if n := sound(seed, rounds, wrong); n > 0 {
			share++
			at += float64(n)
		}
	}
	return share / float64(runs), at / math.Max(share, 1)
}

// TestAlarm holds the level of the alarm and its power: at most α of the alarms are false
// where a function of the class is the truth; a uniform shift of .1, and one of .4 on half
// of the contexts, are found nearly always, one of .05 in the end. What the check of the level
// would say of a wrong world is what the others say.
func TestAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	runs := 40
	if os.Getenv("HINDSIGHT_LONG") != "" {
		runs = 1000
	}
	for i, c := range []struct {
		name        string
		rounds      int
		wrong       misspecified
		least, most float64
	}{
		{"the truth is in the class", 2000, shifted(0), 0, learner.DefaultAlpha},
		{"shift .1", 2000, shifted(.1), .95, 1},
		{"shift .05", 4000, shifted(.05), .5, 1},
		{"shift .4 on half of the contexts", 2000, half(.4), .9, 1},
	} {
		if !daily.Turn(t, i, 2) {
			continue
		}
		share, at := power(runs, c.rounds, c.wrong)
		room := 3 * math.Sqrt(.05*.95/float64(runs))
		t.Logf("%s: raised in %.3f of %d runs of %d rounds, on average at round %.0f", c.name, share, runs,
			c.rounds, at)
		if share > c.most+room || share < c.least-room {
			t.Errorf("%s: raised in %v of the runs, want %v to %v", c.name, share, c.least, c.most)
		}
	}
}
