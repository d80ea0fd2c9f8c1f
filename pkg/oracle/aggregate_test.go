package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func newAggregate(o AggregateOptions) *Aggregate {
	a, err := NewAggregate(o)
	if err != nil {
		panic(err)
	}
	return a
}

// TestGoldenAggregate pins predictions and state of a fixed run, dense and sparse, with
// and without random features.
func TestGoldenAggregate(t *testing.T) {
	out := ""
	for _, categories := range []int{2, 40} {
		for _, m := range []int{0, 32} {
			o := newAggregate(AggregateOptions{Beta: 0.5, Fourier: m, Columns: 9, Seed: 3})
			rng := rand.New(rand.NewPCG(7, 7))
			var d digest
			for range 600 {
				x := &Input{Actions: named("a", "b", "c")}
				for j := range 6 {
					x.Features = append(x.Features, num(fmt.Sprint("x", j), rng.Float64()*3))
				}
				x.Features = append(x.Features, text("c", fmt.Sprint(rng.IntN(categories))))
				d.add(predictions(o, x)...)
				o.Update(x, rng.IntN(3), rng.Float64())
			}
			d.add(o.Regret())
			b, _ := o.AppendBinary(nil)
			d.b = append(d.b, b...)
			out += fmt.Sprintf("categories=%d fourier=%d %v\n", categories, m, &d)
		}
	}
	golden(t, "aggregate.golden", out)
}

var _ = math.Abs
