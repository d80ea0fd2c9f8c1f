package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// unfused is the update with forgetting by its formulas, one pass over P each: P ← DPD,
// k = P·z, P −= k·kᵀ/(1+u). It is what fading is compared with, in bits nearly and in
// time.
type unfused struct{ w, p, s, k []float64 }

func newUnfused(d int, lambda float64) *unfused {
	var r ridge
	r.grow(d, lambda)
	return &unfused{r.w, r.p, make([]float64, d), make([]float64, d)}
}

func (f *unfused) learn(z []float64, y, rho, lambda float64) {
	for i := range f.s {
		f.s[i] = math.Min(1/math.Sqrt(rho), 1/math.Sqrt(lambda*f.p[packedLen(i)+i]))
	}
	at := 0
	for i, v := range f.s {
		for j := range i + 1 {
			f.p[at] *= float64(v * f.s[j])
			at++
		}
	}
	packedMul(f.k, f.p, z)
	u, e := dot(f.k, z), y-dot(f.w, z)
	axpy(f.w, e/(1+u), f.k)
	packedRankOne(f.p, 1/(1+u), f.k)
}

// full returns P of a fading regression.
func (f *fading) full(i, j int) float64 { return f.s[i] * f.at(i, j) * f.s[j] }

// TestFadingIsForgetting: one pass gives what three passes give, for all sizes, with
// columns that fall silent, and P_ii never exceeds 1/λ.
func TestFadingIsForgetting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []int{1, 2, 3, 4, 5, 8, 17} {
		for _, rho := range []float64{1, 0.998, 0.9} {
			const lambda = 1.5
			var f fading
			f.grow(d, lambda)
			slow, sc := newUnfused(d, lambda), &fadingScratch{}
			z := make([]float64, d)
			for n := range 3000 {
				for i := range z {
					z[i] = rng.NormFloat64()
					if i%3 == 2 && n > 300 {
						z[i] = 0 // wind-up, if nothing stopped it
					}
				}
				y := rng.Float64()
				if !f.learn(z, y, rho, lambda, sc) {
					t.Fatalf("d=%d ρ=%v: broken after %d", d, rho, n)
				}
				slow.learn(z, y, rho, lambda)
			}
			for i := range d {
				if math.Abs(f.w[i]-slow.w[i]) > 1e-9 {
					t.Errorf("d=%d ρ=%v: w_%d = %v, want %v", d, rho, i, f.w[i], slow.w[i])
				}
				if p := f.full(i, i); p > (1+1e-9)/lambda || (rho < 1 && i%3 == 2 && p < 0.9/lambda) {
					t.Errorf("d=%d ρ=%v: P_%d%d = %v, 1/λ = %v", d, rho, i, i, p, 1/lambda)
				}
				for j := range i + 1 {
					if got, want := f.full(i, j), slow.p[packedLen(i)+j]; math.Abs(got-want) > 1e-9 {
						t.Errorf("d=%d ρ=%v: P_%d%d = %v, want %v", d, rho, i, j, got, want)
					}
				}
			}
		}
	}
}

// TestFadingRescale: moving powers of two between S and p changes no bit of what is
// learned.
func TestFadingRescale(t *testing.T) {
	const d, lambda = 7, 1.0
	var a, b fading
	a.grow(d, lambda)
	b.grow(d, lambda)
	sc, z := &fadingScratch{}, make([]float64, d)
	rng := rand.New(rand.NewPCG(2, 2))
	top := 0.0
	for n := range 4000 {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		y := rng.Float64()
		a.learn(z, y, 0.9, lambda, sc)
		b.learn(z, y, 0.9, lambda, sc)
		if n%7 == 0 {
			was := slices.Clone(b.s)
			b.rescale()
			for i, want := range was {
				if want > 1 { // else it stays
					want /= maxScale
				}
				if b.s[i] != want {
					t.Fatalf("after %d: S_%d of %v becomes %v, want %v", n, i, was[i], b.s[i], want)
				}
			}
		}
		for i := range d {
			top = math.Max(top, a.s[i])
			if a.w[i] != b.w[i] {
				t.Fatalf("after %d: w_%d %v and %v", n, i, a.w[i], b.w[i])
			}
		}
	}
	if top > 2*maxScale || top < maxScale/2 {
		t.Errorf("S reached %v", top)
	}
}

// TestRidgeBeginsAgain: a regression that is reset is as one that begins, where its constant does.
func TestRidgeBeginsAgain(t *testing.T) {
	fresh, again := ridge{begin: .25, constant: 1}, ridge{begin: .25, constant: 1}
	fresh.grow(3, 2)
	again.grow(3, 2)
	for i := range again.w {
		again.w[i] = 7
	}
	for i := range again.p {
		again.p[i] = 7
	}
	if again.reset(2); !reflect.DeepEqual(again, fresh) || fresh.w[1] != .25 {
		t.Errorf("%+v, want %+v", again, fresh)
	}
}

// TestForgettingWalksWhereItMust: the walk down the diagonal is left out most of the time, and
// never where it would change a bit, with columns that fall silent for longer and longer.
func TestForgettingWalksWhereItMust(t *testing.T) {
	const d, lambda = 9, 1.5
	for _, rho := range []float64{0.998, 0.9} {
		var a, b fading
		sc, all := &fadingScratch{}, make([]float64, d)
		rng := rand.New(rand.NewPCG(3, 3))
		left := 0
		for n := range 20_000 {
			z := all[:min(4+n/3000, d)] // columns come
			a.grow(len(z), lambda)
			b.grow(len(z), lambda)
			if n == 18_500 {
				a.reset(lambda)
				b.reset(lambda)
			}
			for i := range z {
				z[i] = rng.NormFloat64()
				if i%3 == 2 && n%5000 < 1000*i/3 {
					z[i] = 0
				}
			}
			y, r := rng.Float64(), rho+float64((1-rho)*float64(n%2)) // now and then none
			a.learn(z, y, r, lambda, sc)
			b.high = 0
			b.learn(z, y, r, lambda, sc)
			if a.high != b.high && b.high > 0 {
				left++
			}
			for i := range z {
				if a.w[i] != b.w[i] || a.s[i] != b.s[i] {
					t.Fatalf("after %d: w_%d = %v and %v, s = %v and %v", n, i, a.w[i], b.w[i], a.s[i], b.s[i])
				}
			}
		}
		if left < 1000 {
			t.Errorf("ρ = %v: left out %d times of 20,000", rho, left)
		}
	}
}

// BenchmarkAggregate times the aggregate at K = 10, d = 17 with the constant. unfused is
// the update whose cores 2 and 3 pass over P three times; floor is the sum of the
// matrices of the three cores of one action.
func BenchmarkAggregate(b *testing.B) {
	const k, d = 10, 17
	o := newAggregate(AggregateOptions{Beta: 0.5, Columns: d, Fourier: 128})
	var xs [251]*Input // many contexts: one alone would drive matrices into subnormal numbers
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range xs {
		xs[i] = &Input{}
		for a := range k {
			xs[i].Actions = append(xs[i].Actions, Action{Name: fmt.Sprint("a", a)})
		}
		for j := range d - 1 {
			xs[i].Features = append(xs[i].Features, num(fmt.Sprint("x", j), rng.Float64()))
		}
	}
	n := 0
	next := func() (*Input, int) { n++; return xs[n%len(xs)], n % k }
	for range 5000 {
		x, a := next()
		o.Update(x, a, rng.Float64())
	}
	plain, random := newUnfused(d, o.lambda[1]), newUnfused(d+128, o.lambda[2])
	dst := make([]float64, k)
	sum := 0.0
	floor := least(func() {
		t := 0.0
		for _, p := range [][]float64{o.lin.actions[0].p, o.fadings[0].plain.p, o.fadings[0].random.p} {
			for _, v := range p {
				t += v
			}
		}
		sum += t
	})
	update := func() { x, a := next(); o.Update(x, a, 0.5) }
	threePasses := func() {
		x, a := next()
		i := o.lin.enter(x, a, 0.5)
		o.project()
		m := o.means(i, o.lin.prepareOne())
		_, u, _ := o.lin.regress(&o.lin.actions[i], 0.5)
		o.share(m, u, 0.5)
		plain.learn(o.lin.z, 0.5, aggregateRho, o.lambda[1])
		random.learn(o.phi, 0.5, aggregateRho, o.lambda[2])
	}
	for range 5000 { // the slow cores have a past too
		threePasses()
	}
	slow, fast := least(threePasses), least(update)
	for _, c := range []struct {
		name string
		f    func()
	}{{"decision", func() { x, _ := next(); o.Predict(dst, x) }}, {"update", update}, {"unfused", threePasses}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(least(c.f)/floor, "×floor")
			if c.name == "update" {
				b.ReportMetric(slow/fast, "unfused/update")
			}
		})
	}
}
