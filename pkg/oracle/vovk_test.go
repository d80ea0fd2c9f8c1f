package oracle

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestVovkByHand: of one function the substitution is that function; of 0 and 1 with equal
// weights it is ½; of 0 and ½, η = 2: g(0) = −½·log((1 + e^−½)/2), g(1) = −½·log((e^−2 + e^−½)/2).
func TestVovkByHand(t *testing.T) {
	x := &Input{Actions: named("a")}
	for _, c := range []struct {
		f    table
		want float64
	}{
		{table{{0.3}}, 0.3},
		{table{{0}, {1}}, 0.5},
		{table{{0}, {0.5}}, 0.5 - 0.25*math.Log((1+math.Exp(-0.5))/(math.Exp(-2)+math.Exp(-0.5)))},
	} {
		h := newHedge(c.f, HedgeOptions{Vovk: true, Unproved: true})
		if p := predictions(h, x); math.Abs(p[0]-c.want) > 1e-14 {
			t.Errorf("%v: %v, want %v", c.f, p[0], c.want)
		}
	}
	h := newHedge(table{{0}, {1}}, HedgeOptions{Vovk: true, Unproved: true})
	if r := h.Regret(); !near(r, math.Log(2)/2) || h.Proved() || h.Beta() != 0 {
		t.Errorf("regret %v, proved %v, β %v", r, h.Proved(), h.Beta())
	}
}

// TestVovkMixes: the prediction loses no more than the mix loss, whatever the weights,
// the functions and the outcome in [0,1]; the mean does lose more, so the test can fail.
func TestVovkMixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		unit := rapid.Float64Range(0, 1)
		f, prior := make(table, n), make([]float64, n)
		for i := range f {
			f[i], prior[i] = []float64{unit.Draw(t, "f")}, rapid.Float64Range(1e-3, 1).Draw(t, "w")
		}
		y := unit.Draw(t, "y")
		o := HedgeOptions{Vovk: true, Unproved: true, Prior: prior,
			Eta: rapid.SampledFrom([]float64{0.1, 0.5, 1, 2}).Draw(t, "eta")}
		x := &Input{Actions: named("a")}
		h := newHedge(f, o)
		p := predictions(h, x)[0]
		s := 0.0
		for i, w := range h.AppendWeights(nil) {
			s += w * math.Exp(-o.Eta*(f[i][0]-y)*(f[i][0]-y))
		}
		mix := -math.Log(s) / o.Eta
		if e := (p - y) * (p - y); e > mix+1e-12 {
			t.Fatalf("p = %v loses %v at y = %v, more than the mix loss %v", p, e, y, mix)
		}
	})
	// Of 0 and 1 with weights .1 and .9 the mean loses .81 at y = 0, and the mix loss at
	// η = 2 is −½·log(.1 + .9e^−2) = .75.
	f := table{{0}, {1}}
	mean := newHedge(f, HedgeOptions{Eta: 2, Unproved: true, Prior: []float64{0.1, 0.9}})
	if p, mix := predictions(mean, &Input{Actions: named("a")})[0], -math.Log(0.1+0.9*math.Exp(-2))/2; p*p <= mix+0.05 {
		t.Errorf("the mean %v does not lose more than the mix loss %v: the test shows nothing", p, mix)
	}
}

func TestVovkOptions(t *testing.T) {
	for _, o := range []HedgeOptions{{Vovk: true}, {Vovk: true, Eta: 0.5}, {Vovk: true, Eta: 2.1, Unproved: true}} {
		if _, err := NewHedge(table{{0}}, o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}
