package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestLinearForgetsAsCore2: a linear oracle that forgets is core 2 of the aggregate, whose
// matrix is held in another form, also where columns depend on each other.
func TestLinearForgetsAsCore2(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	l, o := newLinear(LinearOptions{Forget: aggregateRho}), newAggregate(AggregateOptions{})
	for n := range 3000 {
		x := &Input{Actions: named("a"), Features: []Feature{text("c", fmt.Sprint(rng.IntN(30))),
			num("x", rng.Float64())}}
		y := rng.Float64()
		l.Update(x, 0, y)
		o.Update(x, 0, y)
		for i, w := range o.fadings[0].plain.w {
			if math.Abs(w-l.actions[0].w[i]) > 1e-9 {
				t.Fatalf("example %d: w_%d = %v, of core 2 %v", n, i, l.actions[0].w[i], w)
			}
		}
	}
}

// TestLinearForgets: forgetting follows a world that turns round, and goes on being wrong
// where without it the error would end.
func TestLinearForgets(t *testing.T) {
	const d = 10
	rng := rand.New(rand.NewPCG(1, 1))
	forgets, keeps := newLinear(LinearOptions{Forget: aggregateRho}), newLinear(LinearOptions{})
	ask := func() *Input {
		x := &Input{Actions: named("a")}
		for j := range d {
			x.Features = append(x.Features, num(fmt.Sprint("x", j), 2*rng.Float64()-1))
		}
		return x
	}
	excess := [2]float64{}
	for n := range 15_000 {
		x := ask()
		mean := 0.5 + x.Features[0].Value/4
		for i, r := range []*Linear{forgets, keeps} {
			if e := predictions(r, x)[0] - mean; n >= 5000 {
				excess[i] += e * e / 10_000
			}
		}
		y := 0.0
		if rng.Float64() < mean {
			y = 1
		}
		forgets.Update(x, 0, y)
		keeps.Update(x, 0, y)
	}
	// As the package comment says: (d+1)·(1−ρ)/(1+ρ) = .011 times the noise, .23, for ever.
	if want := 0.23 * (d + 1) * (1 - aggregateRho) / (1 + aggregateRho); math.Abs(excess[0]-want) > want/3 ||
		excess[1] > want/5 {
		t.Errorf("excess square losses %v, want %v of the first and much less of the second", excess, want)
	}
	for range 2500 {
		x := ask()
		y := 0.5 - x.Features[0].Value/4
		forgets.Update(x, 0, y)
		keeps.Update(x, 0, y)
	}
	x := ask()
	x.Features[0].Value = 1
	if a, b := predictions(forgets, x)[0], predictions(keeps, x)[0]; math.Abs(a-0.25) > 0.05 || b < 0.4 {
		t.Errorf("after the world turned round: %v, without forgetting %v, want .25", a, b)
	}
}

// TestForgetOptions: wrong parameters are refused, and snapshots of oracles that forget
// otherwise.
func TestForgetOptions(t *testing.T) {
	for _, rho := range []float64{-1, 0.4, 1, 2, math.NaN()} {
		if _, err := NewLinear(LinearOptions{Forget: rho}); err == nil {
			t.Errorf("forget %v is accepted", rho)
		}
	}
	for _, a := range []float64{0, 0.9, 0.99} {
		b, _ := newLinear(LinearOptions{Forget: a}).AppendBinary(nil)
		for _, other := range []float64{0, 0.9, 0.99} {
			if err := newLinear(LinearOptions{Forget: other}).UnmarshalBinary(b); (err == nil) != (a == other) {
				t.Errorf("a snapshot with forget %v into one with %v: %v", a, other, err)
			}
		}
	}
}
