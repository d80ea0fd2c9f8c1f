package learner

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"
)

const prec = 256

func bigFloat(v float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(v) }

// bigSolve solves Σ 1/(μ+c_a) = 1 with 256 bits: bisection on [1, K] down to
// where Newton on φ = 1/S converges, from the left, to the last bit.
func bigSolve(fhat []float64, gamma float64) (p []*big.Float, mu *big.Float) {
	k := len(fhat)
	low := fhat[0]
	for _, v := range fhat {
		low = math.Min(low, v)
	}
	c := make([]*big.Float, k)
	for a, v := range fhat {
		c[a] = bigFloat(v)
		c[a].Sub(c[a], bigFloat(low))
		c[a].Mul(c[a], bigFloat(gamma))
	}
	p = make([]*big.Float, k)
	one := bigFloat(1)
	mu = bigFloat(1)
	for range 200 {
		s, s2 := bigFloat(0), bigFloat(0)
		for a := range c {
			w := new(big.Float).SetPrec(prec).Add(mu, c[a])
			w.Quo(one, w)
			p[a] = w
			s.Add(s, w)
			s2.Add(s2, new(big.Float).SetPrec(prec).Mul(w, w))
		}
		e := new(big.Float).SetPrec(prec).Sub(s, one)
		if e.Sign() == 0 || e.MantExp(nil) < -200 {
			break
		}
		e.Mul(e, s)
		e.Quo(e, s2)
		mu.Add(mu, e)
	}
	return p, mu
}

// predictions of several shapes: random, few values, all equal, one best, one
// worst, extremely close.
func shape(rng *rand.Rand, k int) []float64 {
	f := make([]float64, k)
	kind := rng.IntN(6)
	for a := range f {
		switch kind {
		case 0:
			f[a] = rng.Float64()
		case 1:
			f[a] = float64(rng.IntN(3)) / 2
		case 2:
			f[a] = 0.25
		case 3:
			f[a] = 1
		case 4:
			f[a] = 0.5 + 1e-12*rng.Float64()
		case 5:
			f[a] = math.Sqrt(rng.Float64()) * 1e-6
		}
	}
	if kind == 3 {
		f[rng.IntN(k)] = 0
	}
	return f
}

// TestSolveReference: equal to the 256-bit reference to 1e-12, iteration cap
// never near.
func TestSolveReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	cases := 400
	if os.Getenv("HINDSIGHT_LONG") != "" {
		cases = 20_000
	} else if testing.Short() {
		cases = 40
	}
	worst, most := 0.0, 0
	check := func(k int, gamma float64) {
		f := shape(rng, k)
		p := make([]float64, k)
		mu, steps := solve(p, f, gamma)
		most = max(most, steps)
		want, wantMu := bigSolve(f, gamma)
		for a := range p {
			d, _ := new(big.Float).Sub(bigFloat(p[a]), want[a]).Float64()
			worst = math.Max(worst, math.Abs(d))
		}
		m, _ := wantMu.Float64()
		if math.Abs(mu-m) > 1e-9*m || math.Abs(mu-m) > 1e-6 {
			t.Errorf("K=%d γ=%v: μ = %v, want %v", k, gamma, mu, m)
		}
	}
	for range cases {
		check(1+rng.IntN(60), math.Pow(10, 14*rng.Float64()-2))
	}
	check(10_000, 1e12)
	check(10_000, 100)
	check(3_000, 1e6)
	check(1_000, 0)
	t.Logf("worst error %.2e, at most %d Newton steps", worst, most)
	if worst > 1e-12 {
		t.Errorf("p is off by %v", worst)
	}
	if most > 12 {
		t.Errorf("%d Newton steps", most)
	}
}

// TestSolveProperties: floor, monotone, identity, uniform where it must be.
func TestSolveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		k := 1 + rng.IntN(200)
		gamma := math.Pow(10, rapid.Float64Range(-3, 12).Draw(t, "log10 gamma"))
		f := shape(rng, k)
		p := make([]float64, k)
		mu, steps := solve(p, f, gamma)
		if steps >= maxNewton {
			t.Fatalf("%d steps", steps)
		}
		sum, gap, low := 0.0, 0.0, f[0]
		for _, v := range f {
			low = math.Min(low, v)
		}
		for a, v := range p {
			sum += v
			gap += v * (f[a] - low)
			if v < (1-1e-12)/(float64(k)+gamma) {
				t.Fatalf("p[%d] = %v is under the floor", a, v)
			}
			for b := range p {
				if f[a] < f[b] && p[a] < p[b] {
					t.Fatalf("a smaller prediction has a smaller p: %v", p)
				}
				if f[a] == f[b] && p[a] != p[b] {
					t.Fatalf("equal predictions, other p: %v", p)
				}
			}
		}
		if math.Abs(sum-1) > math.Max(2e-14, float64(k)*0x1p-52) {
			t.Fatalf("sum %v", sum)
		}
		if !(mu >= 1-1e-12 && mu <= float64(k)*(1+1e-12)) {
			t.Fatalf("μ = %v", mu)
		}
		if want := (float64(k) - mu) / gamma; math.Abs(gap-want) > 1e-11*(1+float64(k)/gamma) {
			t.Fatalf("Σp(f̂−min) = %v, (K−μ)/γ = %v", gap, want)
		}
	})
	for k := 1; k < 50; k++ {
		p, f := make([]float64, k), make([]float64, k)
		for a := range f {
			f[a] = float64(a) / 50
		}
		if mu := Solve(p, f, 0); math.Abs(mu-float64(k)) > 1e-12*float64(k) || math.Abs(p[k-1]-1/float64(k)) > 1e-15 {
			t.Errorf("K=%d: γ=0 gives μ=%v p=%v", k, mu, p)
		}
	}
}

// TestSolveByHand: K = 2, f̂ = (0, 1), γ = 3: μ² − (2−3)μ − 3 = 0, hence
// μ = (−1+√13)/2.
func TestSolveByHand(t *testing.T) {
	p := make([]float64, 2)
	mu := Solve(p, []float64{0.2, 1.2}, 3)
	if want := (math.Sqrt(13) - 1) / 2; math.Abs(mu-want) > 1e-15 || math.Abs(p[0]-1/want) > 1e-15 {
		t.Errorf("μ = %v p = %v", mu, p)
	}
	// The start is the root at K = 2, and saves steps elsewhere.
	rng := rand.New(rand.NewPCG(2, 2))
	for _, c := range []struct{ k, most int }{{2, 0}, {10, 5}, {100, 6}, {1000, 7}} {
		for range 200 {
			f := shape(rng, c.k)
			gamma := math.Pow(10, 1+3*rng.Float64())
			if _, steps := solve(make([]float64, c.k), f, gamma); steps > c.most {
				t.Errorf("K=%d γ=%v: %d steps, at most %d expected", c.k, gamma, steps, c.most)
			}
		}
	}
	for _, g := range []float64{math.NaN(), -1} {
		if Solve(p, []float64{0, 1}, g); p[0] != 0.5 {
			t.Errorf("γ = %v: %v", g, p)
		}
	}
	if Solve(p, []float64{0, 1}, math.Inf(1)); !(p[0] > 1-1e-14 && p[1] > 0) {
		t.Errorf("γ = ∞: %v", p)
	}
}

// units returns the width in multiples of 2⁻⁵³, which it must be.
func units(t interface{ Fatalf(string, ...any) }, w float64) uint64 {
	u := w * 0x1p53
	if u != math.Trunc(u) || u < 0 {
		t.Fatalf("%v is no multiple of 2^-53", w)
	}
	return uint64(u)
}

func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		k := 1 + rng.IntN(300)
		p := make([]float64, k)
		Solve(p, shape(rng, k), math.Pow(10, rapid.Float64Range(0, 12).Draw(t, "log10 gamma")))
		if rapid.Bool().Draw(t, "zeros") {
			sum := 0.0
			for a := range p {
				if a > 0 && rng.IntN(2) == 0 {
					p[a] = 0
				}
				sum += p[a]
			}
			for a := range p {
				p[a] /= sum
			}
		}
		law := make([]float64, k)
		Law(law, p)
		total := uint64(0)
		for a, w := range law {
			total += units(t, w)
			if math.Abs(w-p[a]) > float64(k)*0x1p-52+2e-14 {
				t.Fatalf("width %v of p %v", w, p[a])
			}
			if p[a] == 0 && w != 0 {
				t.Fatalf("p = 0 has width %v", w)
			}
		}
		if total != 1<<53 {
			t.Fatalf("widths sum to %d/2^53", total)
		}
		// The bounds of the intervals are where the draw changes.
		at := uint64(0)
		for a, w := range law {
			n := units(t, w)
			if n == 0 {
				continue
			}
			if Draw(law, at) != a || Draw(law, at+n-1) != a {
				t.Fatalf("interval %d is not drawn at its ends", a)
			}
			at += n
		}
		Law(p, p)
		for a := range p {
			if p[a] != law[a] {
				t.Fatalf("in place: %v, want %v", p[a], law[a])
			}
		}
	})
	for _, c := range []struct{ p, want []float64 }{
		{[]float64{1}, []float64{1}},
		{[]float64{0, 1, 0}, []float64{0, 1, 0}},
		{[]float64{0.5, 0.5 - 1e-10, 0}, []float64{0.5, 0.5, 0}},
		{[]float64{0.5, 0.6, 0.1}, []float64{0.5, 0.5, 0}},
		{[]float64{0x1p-54, 1}, []float64{0x1p-53, 1 - 0x1p-53}},
		{[]float64{0x1p-55, 1}, []float64{0, 1}},
	} {
		got := make([]float64, len(c.p))
		if Law(got, c.p); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("Law(%v) = %v, want %v", c.p, got, c.want)
		}
	}
}

// chiSquare returns the statistic of n draws from a law of k actions, u coming
// from [Uniform] at consecutive positions.
func chiSquare(law []float64, n int, draw func(u uint64) int) float64 {
	counts := make([]float64, len(law))
	for i := range n {
		counts[draw(Uniform([]byte("chi"), "m", 0, int64(i), "id"))]++
	}
	x2 := 0.0
	for a, c := range counts {
		e := law[a] * float64(n)
		x2 += (c - e) * (c - e) / e
	}
	return x2
}

// TestDrawFrequencies: chi-square of 9 degrees of freedom at 1e-4 is 33.7; a law
// that is off by 2 % of one action must fail.
func TestDrawFrequencies(t *testing.T) {
	p := make([]float64, 10)
	Solve(p, []float64{0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.15, 0.35, 0.6, 0.7}, 20)
	Law(p, p)
	const n, limit = 200_000, 33.7
	if x2 := chiSquare(p, n, func(u uint64) int { return Draw(p, u) }); x2 > limit {
		t.Errorf("chi-square %v", x2)
	}
	biased := append([]float64(nil), p...)
	biased[0] -= 0.02
	biased[4] += 0.02
	Law(biased, biased)
	if x2 := chiSquare(p, n, func(u uint64) int { return Draw(biased, u) }); x2 < limit {
		t.Errorf("chi-square %v of a biased draw: the check cannot fail", x2)
	}
}

// plainNewton is Newton's method on S(μ) = 1 itself, from μ = 1.
func plainNewton(p, fhat []float64, gamma float64) (mu float64, steps int) {
	low := fhat[0]
	for _, v := range fhat {
		low = math.Min(low, v)
	}
	tolerance := math.Max(1e-14, float64(len(p))*0x1p-54)
	for mu = 1; ; steps++ {
		s, s2 := 0.0, 0.0
		for a, v := range fhat {
			w := 1 / (mu + gamma*(v-low))
			p[a] = w
			s += w
			s2 += w * w
		}
		if math.Abs(s-1) <= tolerance || steps == maxNewton {
			return mu, steps
		}
		mu += (s - 1) / s2
	}
}

// BenchmarkSolve times the sampler and counts its Newton steps, beside plain
// Newton's. ×floor is relative to K divisions, one pass of the cheapest solver.
func BenchmarkSolve(b *testing.B) {
	for _, k := range []int{2, 10, 100, 1000} {
		rng := rand.New(rand.NewPCG(1, 1))
		f := make([][]float64, 64)
		for i := range f {
			f[i] = make([]float64, k)
			for a := range f[i] {
				f[i][a] = rng.Float64()
			}
		}
		p := make([]float64, k)
		run := func(name string, solve func(p, f []float64, gamma float64) (float64, int)) {
			b.Run(fmt.Sprintf("K=%d/%s", k, name), func(b *testing.B) {
				b.ReportAllocs()
				i, total, most := 0, 0, 0
				for b.Loop() {
					_, steps := solve(p, f[i&63], []float64{10, 100, 1000, 10_000}[i>>6&3])
					total += steps
					most = max(most, steps)
					i++
				}
				b.ReportMetric(float64(total)/float64(i), "steps")
				b.ReportMetric(float64(most), "max-steps")
			})
		}
		run("start=jensen", solve)
		run("start=plain", plainNewton)
		run("floor", func(p, f []float64, gamma float64) (float64, int) {
			for a, v := range f {
				p[a] = 1 / (1 + gamma*v)
			}
			return 0, 0
		})
	}
}
