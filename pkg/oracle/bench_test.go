package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkRegress times the update of one regression by itself (packed
// Sherman–Morrison, z given), and the features' part of learning and predicting;
// floor is the sum of the packed matrix, one pass. least-ns is the least of
// several samples.
func BenchmarkRegress(b *testing.B) {
	for _, d := range []int{17, 129} {
		l := newLinear(LinearOptions{Beta: 0.5})
		x := &Input{Actions: named("a")}
		for j := range d - 1 {
			x.Features = append(x.Features, num(fmt.Sprint("x", j), 0))
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 500 {
			for j := range x.Features {
				x.Features[j].Value = rng.Float64()
			}
			l.Update(x, 0, rng.Float64())
		}
		a := &l.actions[0]
		sum := 0.0
		floor := least(func() {
			t := 0.0
			for _, v := range a.p {
				t += v
			}
			sum += t
		})
		for name, f := range map[string]func(){
			"update":         func() { l.regress(a, 0.5) },
			"learn-features": func() { l.learn(x, 0) },
			"fill":           func() { l.fill(x) },
		} {
			b.Run(fmt.Sprintf("d=%d/%s", d, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
				b.ReportMetric(least(f)*1e9, "least-ns")
				b.ReportMetric(least(f)/floor, "×floor")
			})
		}
	}
}

// least returns the seconds of one call of f, the least of several samples.
func least(f func()) float64 {
	best := time.Hour
	for range 15 {
		const calls = 500
		start := time.Now()
		for range calls {
			f()
		}
		best = min(best, time.Since(start)/calls)
	}
	return best.Seconds()
}

// BenchmarkHedge times a class of 100 logistic functions, K = 5, d = 5; floor is
// the sigmoids alone.
func BenchmarkHedge(b *testing.B) {
	const size, k, d = 100, 5, 5
	rng := rand.New(rand.NewPCG(1, 1))
	var features, actions []string
	for j := range d {
		features = append(features, fmt.Sprint("x", j))
	}
	for a := range k {
		actions = append(actions, fmt.Sprint("action", a))
	}
	w := make([][][]float64, size)
	for i := range w {
		for range k {
			row := make([]float64, d+1)
			for j := range row {
				row[j] = rng.Float64() - 0.5
			}
			w[i] = append(w[i], row)
		}
	}
	c, err := NewLogisticClass(features, actions, w)
	if err != nil {
		b.Fatal(err)
	}
	h := newHedge(c, HedgeOptions{})
	x := &Input{Actions: named(actions...)}
	for _, f := range features {
		x.Features = append(x.Features, num(f, rng.Float64()))
	}
	dst := make([]float64, k)
	b.Run("predict", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Predict(dst, x)
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Update(x, 0, 0.5)
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			for a := range dst {
				for i := range size {
					dst[a] = Sigmoid(float64(i) / 10)
				}
			}
		}
	})
}
