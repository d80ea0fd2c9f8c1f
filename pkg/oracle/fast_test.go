package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// TestAmend: an oracle that is fed provisional losses, which are amended later, predicts what one predicts that is fed
// the final ones.
func TestAmend(t *testing.T) {
	class := must(oracle.NewLogisticClass([]string{"x0", "x1"}, []string{"a", "b", "c", "d", "e"},
		func() (w [][][]float64) {
			rng := rand.New(rand.NewPCG(1, 2))
			for range 30 {
				var f [][]float64
				for range 5 {
					f = append(f, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
				}
				w = append(w, f)
			}
			return w
		}()))
	for name, c := range map[string]struct {
		fresh func() oracle.Amender
		most  float64
	}{
		"linear": {func() oracle.Amender {
			return must(oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest, Beta: .5, MaxFeatures: 30}))
		}, 1e-9},
		"linear, random features": {func() oracle.Amender {
			return must(oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest, Fourier: 20, Columns: 40, Seed: 1,
				MaxFeatures: 30}))
		}, 1e-9},
		"linear, fading": {func() oracle.Amender {
			return must(oracle.NewLinear(oracle.LinearOptions{Version: oracle.Newest, Beta: .5, Forget: .99,
				MaxFeatures: 30}))
		}, 1e-9},
		"auto": {func() oracle.Amender {
			return must(oracle.NewAggregate(oracle.AggregateOptions{Version: oracle.Newest, Beta: .5, Columns: 40,
				Fourier: 20, MaxFeatures: 30}))
		}, .02},
		"diagonal": {func() oracle.Amender {
			return must(oracle.NewDiagonal(oracle.DiagonalOptions{Version: oracle.Newest, Beta: .5, MaxFeatures: 30}))
		}, .15},
		"hedge": {func() oracle.Amender { return must(oracle.NewHedge(class, oracle.HedgeOptions{})) }, 1e-9},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			final, fast := c.fresh(), c.fresh()
			type fed struct {
				x      *oracle.Input
				action int
				fed    oracle.Fed
				guess  float64
				loss   float64
			}
			var waits []fed
			at, off, bad := make([]float64, 99), make([]float64, 99), 0.0
			for i := range 4000 {
				x := oracletest.Input(rng)
				a := rng.IntN(len(x.Actions))
				loss := math.Mod(float64(len(x.Actions[a].Name))*.3+.5*rng.Float64(), 1)
				final.Update(x, a, loss)
				guess := loss
				if i%2 == 0 {
					guess = 1
				}
				fast.Update(x, a, guess)
				fast.Follow(final)
				if waits = append(waits, fed{x, a, fast.Mark(x, a), guess, loss}); i < 300 {
					continue
				}
				w := waits[0]
				fast.Amend(w.x, w.action, w.fed, w.guess, w.loss)
				waits = waits[1:]
			}
			for _, w := range waits {
				fast.Amend(w.x, w.action, w.fed, w.guess, w.loss)
			}
			fast.Follow(final)
			for range 100 {
				x := oracletest.Input(rng)
				final.Predict(at, x)
				fast.Predict(off, x)
				for a := range x.Actions {
					bad = max(bad, math.Abs(at[a]-off[a]))
				}
			}
			t.Logf("predictions differ by %.2g at most", bad)
			if !(bad <= c.most) {
				t.Errorf("predictions differ by %v, want at most %v", bad, c.most)
			}
		})
	}
}
