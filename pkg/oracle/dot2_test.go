package oracle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Two products at once are those of dot to the bit, whatever the length, the sizes of the
// numbers and where the vectors begin.
func TestTwoProductsAreThoseOfDot(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	vector := func(n int) []float64 {
		x := make([]float64, n+1)
		for i := range x {
			x[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(80)-40)
			if rng.IntN(50) == 0 {
				x[i] = []float64{0, math.Copysign(0, -1), 0x1p-1070, 1e300, math.Inf(-1)}[rng.IntN(5)]
			}
		}
		return x[rng.IntN(2):][:n]
	}
	for n := range 200 {
		for range 10 {
			p, q, y := vector(n), vector(n), vector(n)
			s, u := dot2(p, q, y)
			for _, c := range [][2]float64{{s, dot(p, y)}, {u, dot(q, y)}} {
				if got, want := c[0], c[1]; math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
					t.Fatalf("n = %d: %v, not %v", n, got, want)
				}
			}
		}
	}
}

func BenchmarkTwoProducts(b *testing.B) {
	x := make([]float64, 3*153)
	for i := range x {
		x[i] = float64(i)
	}
	p, q, y := x[:153], x[153:306], x[306:]
	sum := 0.0
	var one, two time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range 1000 {
			sum += dot(p, y) + dot(q, y)
		}
		between := time.Now()
		for range 1000 {
			s, t := dot2(p, q, y)
			sum += s + t
		}
		one, two = one+between.Sub(start), two+time.Since(between)
	}
	b.ReportMetric(one.Seconds()/two.Seconds(), "x-dot")
	_ = sum
}
