package replay

import (
	"os"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/model"
)

// BenchmarkBacktest plays pendigits without delay with the linear learner, on one
// core; the floor is one pass over the bytes of its contexts' features per round:
// parsing them, which every round needs at least once to decide.
func BenchmarkBacktest(b *testing.B) {
	const file = "../../../shared/data/multiclass/pendigits.csv"
	if _, err := os.Stat(file); err != nil {
		b.Skip("the data set pendigits is not beside the project")
	}
	env, err := OpenMulticlass(file)
	if err != nil {
		b.Fatal(err)
	}
	d, err := ParseDelays("none", 1)
	if err != nil {
		b.Fatal(err)
	}
	rounds := EncodeRounds(env)
	for _, beta := range []float64{0, .5} {
		b.Run("beta="+formatBeta(beta), func(b *testing.B) {
			m, _ := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
			m.Oracle.Beta = model.Number{Value: beta}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				t := &Trial{Rounds: rounds, Delays: d, Model: m, Label: "dafa", Seed: 1}
				if _, err := t.Run(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
				n += rounds.Len()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rounds/s")
		})
	}
}

func formatBeta(beta float64) string {
	if beta == 0 {
		return "0"
	}
	return "half"
}
