package replay

import (
	"os"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/model"
)

// BenchmarkBacktest plays pendigits without delay with the linear oracle and with the
// aggregate, on one core (-cpu 1); the base of the ratios is the linear oracle with β = 0 in
// the same run.
func BenchmarkBacktest(b *testing.B) {
	const file = "../../../shared/data/multiclass/pendigits.csv"
	if _, err := os.Stat(file); err != nil {
		b.Skip("the data set pendigits is not beside the project")
	}
	env, err := openLog(file, logs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := delay.Parse("none", delay.Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	rounds := env
	base := 0.0
	for _, c := range []struct {
		name, oracle string
		beta         float64
	}{{"linear/beta=0", model.Linear, 0}, {"linear/beta=half", model.Linear, .5}, {"auto", model.Auto, .5}} {
		b.Run(c.name, func(b *testing.B) {
			m, _ := ModelFor(env, "replay", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
			if m.Oracle, err = model.ParseOracle(c.oracle); err != nil {
				b.Fatal(err)
			}
			m.Oracle.Beta = model.Number{Value: c.beta}
			m.Resolve(env.Columns, len(env.Actions))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				t := &Trial{Rounds: rounds, Delays: d, Model: m, Label: "dafa", Seed: 1}
				if _, err := t.Run(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
				n += rounds.Len()
			}
			speed := float64(n) / b.Elapsed().Seconds()
			b.ReportMetric(speed, "rounds/s")
			if c.beta == 0 {
				base = speed
			}
			b.ReportMetric(base/speed, "x-beta0")
		})
	}
}
