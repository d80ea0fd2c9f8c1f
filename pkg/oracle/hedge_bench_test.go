package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// givenClass has one prediction a function, given beforehand.
type givenClass []float64

func (c givenClass) Size() int                                { return len(c) }
func (c givenClass) Eval(dst []float64, x *Input, action int) { copy(dst, c) }

// BenchmarkHedgeLarge times what learning does over 10,000 functions whose
// predictions are given: the pass over the log-weights and losses, beside a plain sum
// over the same bytes (three slices) with one running total and with four; and apart
// from it the normalising, which takes an exp a function.
func BenchmarkHedgeLarge(b *testing.B) {
	const size = 10_000
	rng := rand.New(rand.NewPCG(1, 1))
	c := make(givenClass, size)
	for i := range c {
		c[i] = rng.Float64()
	}
	h := newHedge(c, HedgeOptions{})
	x := &Input{Actions: named("a")}
	h.Update(x, 0, 0.5)
	same := [][]float64{h.f, h.loss, h.logWeight}
	total := 0.0
	b.ReportAllocs()
	for b.Loop() {
		hedgeStep(h.logWeight, h.loss, h.f, h.eta, 0.5)
	}
	step := least(func() { hedgeStep(h.logWeight, h.loss, h.f, h.eta, 0.5) })
	sum := least(func() {
		for _, s := range same {
			t := 0.0
			for _, v := range s {
				t += v
			}
			total += t
		}
	})
	wide := least(func() {
		for _, s := range same {
			total += sumWide(s)
		}
	})
	h.fed, h.loss, h.logWeight = 0, make([]float64, size), make([]float64, size)
	early := least(h.normalise) // all weights are at work: an exp each
	for range 500 {
		h.Update(x, 0, rng.Float64())
	}
	b.ReportMetric(step*1e9, "least-ns")
	b.ReportMetric(step/sum, "×sum")
	b.ReportMetric(step/wide, "×wide-sum")
	b.ReportMetric(early*1e9, "normalise-ns")
	b.ReportMetric(least(h.normalise)*1e9, "normalise-late-ns")
	if total == 0 {
		b.Error("the sums were not made") // and nothing may leave them out
	}
}

// lineup returns the names of k actions and an input that lists them, with d features.
func lineup(rng *rand.Rand, k, d int) (features, actions []string, x *Input) {
	x = &Input{}
	for a := range k {
		actions = append(actions, fmt.Sprint("a", a))
	}
	x.Actions = named(actions...)
	for j := range d {
		features = append(features, fmt.Sprint("x", j))
		x.Features = append(x.Features, num(features[j], rng.Float64()))
	}
	return features, actions, x
}

// BenchmarkHedgeDecide times the predictions of one decision over 10,000 functions whose
// predictions are given, as a table, and 10 actions. ×sum is beside a plain sum over
// the same bytes, that table and the weights, with one running total; ×wide-sum with
// four.
func BenchmarkHedgeDecide(b *testing.B) {
	const size, k = 10_000, 10
	rng := rand.New(rand.NewPCG(1, 1))
	_, actions, x := lineup(rng, k, 0)
	tables := make([]map[string][]float64, size)
	for i := range tables {
		row := make([]float64, k)
		for a := range row {
			row[a] = rng.Float64()
		}
		tables[i] = map[string][]float64{"": row}
	}
	c, err := NewTabularClass(nil, actions, tables)
	if err != nil {
		b.Fatal(err)
	}
	h := newHedge(c, HedgeOptions{})
	dst := make([]float64, k)
	b.ReportAllocs()
	for b.Loop() {
		h.Predict(dst, x)
	}
	total := 0.0
	decide, sum, wide := leastOf3(func() { h.Predict(dst, x) }, func() {
		t := 0.0
		for _, v := range c.loss {
			t += v
		}
		for _, v := range h.q {
			t += v
		}
		total += t
	}, func() { total += sumWide(c.loss) + sumWide(h.q) })
	b.ReportMetric(decide*1e9, "least-ns")
	b.ReportMetric(decide/sum, "×sum")
	b.ReportMetric(decide/wide, "×wide-sum")
	if total == 0 {
		b.Error("the sums were not made")
	}
}

// BenchmarkHedgeFly times the same over 1,000 linear and logistic functions of 16
// features that are evaluated as they are needed; ×bare is beside evaluating each once,
// without weights.
func BenchmarkHedgeFly(b *testing.B) {
	const size, k, d = 1_000, 10, 16
	rng := rand.New(rand.NewPCG(1, 1))
	features, actions, x := lineup(rng, k, d)
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
	linear, err := NewLinearClass(features, actions, w)
	if err != nil {
		b.Fatal(err)
	}
	logistic, err := NewLogisticClass(features, actions, w)
	if err != nil {
		b.Fatal(err)
	}
	z := make([]float64, d)
	for j := range z {
		z[j] = x.Features[j].Value
	}
	dst, f := make([]float64, k), make([]float64, size)
	for _, c := range []struct {
		name  string
		class Class
		w     []float64
		link  func(float64) float64
	}{{"linear", linear, linear.w, clip01}, {"logistic", logistic, logistic.w, Sigmoid}} {
		b.Run(c.name, func(b *testing.B) {
			h := newHedge(c.class, HedgeOptions{})
			b.ReportAllocs()
			for b.Loop() {
				h.Predict(dst, x)
			}
			decide, bare, _ := leastOf3(func() { h.Predict(dst, x) }, func() {
				for a := range k {
					for i := range f {
						row := c.w[(a*size+i)*(d+1) : (a*size+i+1)*(d+1)]
						f[i] = c.link(dot(z, row) + row[d])
					}
				}
			}, func() {})
			b.ReportMetric(decide*1e9, "least-ns")
			b.ReportMetric(decide/bare, "×bare")
		})
	}
}

// leastOf3 returns the seconds of one call of each, the least of many samples taken in
// turn, so that what else the machine does meets all three.
func leastOf3(f, g, h func()) (of, og, oh float64) {
	best := [3]time.Duration{time.Hour, time.Hour, time.Hour}
	for range 300 {
		for i, call := range []func(){f, g, h} {
			start := time.Now()
			call()
			best[i] = min(best[i], time.Since(start))
		}
	}
	return best[0].Seconds(), best[1].Seconds(), best[2].Seconds()
}

// sumWide is a plain sum with four running totals.
func sumWide(x []float64) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		s0, s1, s2, s3 = s0+x[0], s1+x[1], s2+x[2], s3+x[3]
	}
	for _, v := range x {
		s0 += v
	}
	return (s0 + s1) + (s2 + s3)
}
