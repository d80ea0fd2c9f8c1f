package world

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/internal/random"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
	"hindsight/pkg/oracle/oracletest"
)

// TestLinearWorld holds the environments to their definitions.
func TestLinearWorld(t *testing.T) {
	e := newLinear(3, 500, []float64{4, 6})
	f := make([]float64, 6)
	low, high := 1.0, 0.0
	for round := range 500 {
		e.Truth(f, round)
		for _, v := range f {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	if low < 0 || high > 1 || low > .3 || high < .7 {
		t.Errorf("means from %v to %v", low, high)
	}
	for a := range 6 {
		sum := 0.0
		for j := range 4 {
			e.value = func(_, i int) float64 { return unless(i == j) }
			sum += math.Abs(e.mean(0, a) - .5)
		}
		if math.Abs(sum-.5) > 1e-12 {
			t.Errorf("action %d: Σ|θ| = %v", a, sum)
		}
	}
	b := newBandit(1, 10, []float64{5, .4, .5})
	f = f[:5]
	b.Truth(f, 0)
	best := 0
	for _, v := range f {
		if v == .4 {
			best++
		} else if v != .5 {
			t.Errorf("means %v", f)
		}
	}
	if best != 1 || len(b.Features) != 0 || len(e.Features) != 4 {
		t.Errorf("means %v, features %v and %v", f, b.Features, e.Features)
	}
}

// TestUnstableContract: unstable as it is, the oracle keeps the contract of all oracles.
func TestUnstableContract(t *testing.T) {
	fresh := func() oracle.Regressor {
		reg, err := newUnstable(5, 400, nil).Oracle()
		if err != nil {
			t.Fatal(err)
		}
		return reg
	}
	oracletest.Test(t, fresh, oracletest.Options{Input: func(rng *rand.Rand) *oracle.Input {
		return &oracle.Input{Features: []oracle.Feature{{Name: "t", Kind: oracle.Number,
			Value: float64(rng.IntN(400))}}, Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	}})
}

// TestUnstableClass holds the class to its definition: f_t is the truth at x_t, f⋆
// everywhere, and everything else is a fair coin.
func TestUnstableClass(t *testing.T) {
	e := newUnstable(5, 300, nil)
	class, f := unstableClass{&unstable{300, random.New(5, "unstable")}}, make([]float64, 301)
	heads, n := 0.0, 0.0
	truth := make([]float64, 2)
	for round := range 300 {
		e.Truth(truth, round)
		if truth[0]+truth[1] != 1 {
			t.Fatalf("losses %v", truth)
		}
		for a := range truth {
			class.Eval(f, inputOfWorld(e, round), a)
			if f[round] != truth[a] || f[300] != truth[a] || e.Loss(round, a) != truth[a] {
				t.Fatalf("round %d: f_t %v, f⋆ %v, truth %v", round, f[round], f[300], truth[a])
			}
			for _, v := range f {
				heads += v - 0.5
				n++
			}
		}
	}
	if math.Abs(heads) > 4*math.Sqrt(n)/2 {
		t.Errorf("%v more heads than tails in %v", heads, n)
	}
}

// TestHypercubeOracle holds the oracle of the environment to the enumerated class.
func TestHypercubeOracle(t *testing.T) {
	e := newHypercube(2, 4000, []float64{6, .2})
	reg, err := e.Oracle()
	if err != nil || !e.OrderFree {
		t.Fatal(err)
	}
	slow, err := oracle.NewHedge(cube(0.2), oracle.HedgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]float64, 2), make([]float64, 2)
	for round := range 400 {
		x := inputOfWorld(e, round)
		reg.Predict(got, x)
		slow.Predict(want, x)
		for a := range got {
			if math.Abs(got[a]-want[a]) > 1e-12 {
				t.Fatalf("round %d: %v, enumerated %v", round, got, want)
			}
		}
		a := round % 2
		reg.Update(x, a, e.Loss(round, a))
		slow.Update(x, a, e.Loss(round, a))
	}
	if math.Abs(reg.Regret()-2*6*math.Ln2) > 1e-12 {
		t.Errorf("R = %v, want 2·log 64", reg.Regret())
	}
}

// cube is the class of a hypercube of 6 contexts, enumerated.
type cube float64

func (cube) Size() int { return 64 }

func (eps cube) Eval(dst []float64, x *oracle.Input, action int) {
	at := indexIn(x, "x", 6)
	for i := range dst {
		dst[i] = 0.5
		if i>>at&1 == action {
			dst[i] = 0.5 - float64(eps)
		}
	}
}

// inputOfWorld is the context of a round as a learner sees it.
func inputOfWorld(e *World, round int) *oracle.Input {
	var c codec.Context
	e.Context(&c, round)
	x := &oracle.Input{}
	for _, v := range c.Features {
		x.Features = append(x.Features, oracle.Feature{Name: v.Name, Kind: oracle.FeatureKind(v.Kind), Value: v.Value})
	}
	for _, a := range c.Actions {
		x.Actions = append(x.Actions, oracle.Action{Name: a.Name})
	}
	return x
}
