package oracle

import (
	"math/rand/v2"
	"testing"
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
