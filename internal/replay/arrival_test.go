package replay

import (
	"math"
	"testing"

	"hindsight/internal/testkit/daily"
	"hindsight/internal/world"
)

// TestArrivalOrder holds what the package comment of learner says of feedback in the
// order of arrival: under delays that do not look at losses the mean regret is at most
// the mean of each bound of a run, for DA-FA over a finite class and for EXP4-DALE, and
// it is no worse than in FIFO order within noise, while fewer rounds are unknown to
// later decisions.
func TestArrivalOrder(t *testing.T) {
	seeds, rounds := many(4, 60), 2000
	if testing.Short() {
		seeds, rounds = 2, 500
	}
	for i, delays := range []string{"exp:50", "lognormal:20,1.5", "head:500,300"} {
		for k, l := range []string{"dafa", "exp4dale"} {
			if !testing.Short() && !daily.Turn(t, i+k, 2) {
				continue
			}
			var regret, slack [2]float64
			var square float64
			var known [2]int64
			for s := range uint64(seeds) {
				env := OfWorld(world.NewSigmoid(s, rounds, world.SigmoidOptions{Functions: 20}))
				var of [2]float64
				for i, arrival := range []bool{false, true} {
					r, res := regretOf(t, env, l, delays, arrival, s)
					of[i] = r
					regret[i] += r / float64(seeds)
					known[i] += res.Delays.Released.D
					slack[i] += (*res.Certificate.MeasuredDrift.Value - r) / float64(seeds)
					if b := res.Certificate.APriori.Value; *b < *res.Certificate.MeasuredDrift.Value {
						t.Errorf("%s, %s: a priori %v is below the measured drift %v", l, delays, *b,
							*res.Certificate.MeasuredDrift.Value)
					}
				}
				square += (of[1] - of[0]) * (of[1] - of[0])
			}
			mean := regret[1] - regret[0]
			se := math.Sqrt(math.Max(0, square/float64(seeds)-mean*mean) / float64(seeds-1))
			t.Logf("%s, %s: regret FIFO %.1f, arrival %.1f (%+.1f ± %.1f); over it, measured drift by %.0f and "+
				"%.0f; D %d and %d", l, delays, regret[0], regret[1], mean, se, slack[0], slack[1], known[0], known[1])
			if slack[0] < 0 || slack[1] < 0 {
				t.Errorf("%s, %s: the measured drift is below the regret", l, delays)
			}
			if !testing.Short() && mean > 2*se+1 {
				t.Errorf("%s, %s: arrival regrets %.1f ± %.1f more than FIFO", l, delays, mean, se)
			}
			if known[1] > known[0] {
				t.Errorf("%s, %s: D is %d in the order of arrival, %d in FIFO order", l, delays, known[1], known[0])
			}
		}
	}
}
