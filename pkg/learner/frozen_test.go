package learner_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/learner/learnertest"
	"hindsight/pkg/oracle"
)

// planes is the class of one function, linear in x0, x1 in [−1,1] with values in [0,1].
type planes [3][3]float64

func (planes) Size() int { return 1 }
func (c planes) Eval(dst []float64, x *oracle.Input, action int) {
	w := c[action]
	dst[0] = w[0] + w[1]*x.Features[0].Value + w[2]*x.Features[1].Value
}

// overPlanes are rounds whose losses are linear in two numbers.
func overPlanes(seed uint64) *delayed {
	rng := rand.New(rand.NewPCG(seed, 10))
	var c planes
	for a := range c {
		c[a] = [3]float64{.5, .5 * (rng.Float64() - .5), .5 * (rng.Float64() - .5)}
	}
	return &delayed{class: c, rng: rng, input: func(int) *oracle.Input {
		x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
		for _, name := range []string{"x0", "x1"} {
			x.Features = append(x.Features, oracle.Feature{Name: name, Kind: oracle.Number, Value: 2*rng.Float64() - 1})
		}
		return x
	}}
}

func certified() *learner.DAFA {
	return learner.NewDAFA(must(oracle.NewFrozen(oracle.FrozenOptions{Actions: []string{"a", "b", "c"},
		Features: []oracle.FeatureSpec{{Name: "x0", Lo: -1, Hi: 1}, {Name: "x1", Lo: -1, Hi: 1}}})),
		learner.Anytime{C: learner.Cautious})
}

func TestContractFrozen(t *testing.T) {
	learnertest.Test(t, func() learner.Learner {
		return learner.NewDAFA(must(oracle.NewFrozen(oracle.FrozenOptions{Actions: []string{"a", "b", "c", "d", "e"},
			Features: []oracle.FeatureSpec{{Name: "x0", Lo: -2, Hi: 2}}})), learner.Anytime{C: learner.Balanced})
	}, learnertest.Options{})
}

// TestCertifiedRidge holds the theorems on ridge regression (docs/algorithms.md, 3.5), in the mean: Σ E(f̂−f⋆)² of what
// is played, with the factor max σ + 1, under delays that are blind to missing losses, and the regret below both
// bounds, that for any delays under those that look at losses. On every path bad rounds are at most as many as Λ
// allows.
func TestCertifiedRidge(t *testing.T) {
	seeds, rounds := 60, 600
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, rounds = 1000, 1000
	}
	used, regrets := 0.0, [2]float64{}
	for seed := range seeds {
		e := overPlanes(uint64(seed))
		adversaries[seed%len(adversaries)](e)
		d := certified()
		fifo := seed%3 > 0
		f, hat, square := make([]float64, 1), make([]float64, 3), 0.0
		next := e.input
		e.input = func(t int) *oracle.Input {
			x := next(t)
			d.Oracle().Predict(hat, x)
			return x
		}
		var last []*round
		e.play(d, rounds, fifo, func(all, _ []*round) {
			last = all
			r := all[len(all)-1]
			for a, p := range r.Propensities {
				e.class.Eval(f, r.Input, a)
				square += p * (hat[a] - f[0]) * (hat[a] - f[0])
			}
		})
		c := d.Certificate()
		if !c.Bounded || c.Linear.LogDet == 0 || float64(c.Linear.Bad) > 8./7*float64(
			c.MaxSigma)*c.Linear.LogDet/math.Ln2 {
			t.Fatalf("seed %d: %+v", seed, c)
		}
		regret := 0.0
		for _, r := range last {
			if r.N > 0 {
				regret += r.regret
			}
		}
		bound, _ := c.Additive()
		looks := seed%len(adversaries) < 2
		if looks {
			if bound = c.AnyDelay(); !fifo { // it counts what is outstanding in the order of decisions
				continue
			}
		} else {
			used += square / (float64(c.MaxSigma+1) * c.Regret) / float64(seeds)
		}
		regrets[0], regrets[1] = regrets[0]+regret, regrets[1]+bound
	}
	t.Logf("used of the bound on Σ E(f̂−f⋆)²: %.3f; regret %.0f of %.0f", used, regrets[0]/float64(seeds),
		regrets[1]/float64(seeds))
	if used > 1 || regrets[0] > regrets[1] {
		t.Errorf("over the bounds: %v, %v", used, regrets)
	}
}

// TestRidgeByHand pins the bounds: K = 2, d = 3, λ = 3 or ½, b² = ½; of no round log T is that of 2.
func TestRidgeByHand(t *testing.T) {
	for _, x := range []struct {
		rounds, late              int64
		lambda, t, additive, root float64 // additive: the bound that no determinant is in; root: √λ·b
	}{{1000, 9, 3, 1000, 105 + 10*10*22.5, math.Sqrt(1.5)}, {1, 9e8, .5, 2, math.Inf(1), .5}} {
		c := learner.Certificate{Rounds: x.rounds, Barrier: 100, MaxGamma: 40, MaxSigma: x.late, Skipped: 5,
			Regret: 22.5, Linear: learner.Determinant{Lambda: x.lambda, Square: .5, LogDet: 12, Bad: 7}}
		wide := .5*math.Sqrt(12+2*math.Log(x.t)) + x.root
		want := min(x.additive, 105+10*2.89*wide*wide*12+8)
		if got, _ := c.Additive(); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%+v: additive %v, want %v", x, got, want)
		}
		wide = math.Sqrt(.5*(12+2*math.Log(x.t))) + x.root + math.Sqrt(float64(x.late))
		want = 105 + 10*2.89*wide*wide*12 + 8
		if got := c.AnyDelay(); math.Abs(got-want) > 1e-12*want {
			t.Errorf("%+v: any delays %v, want %v", x, got, want)
		}
	}
	c := learner.Certificate{MaxGamma: 40, Regret: 9, Linear: learner.Determinant{Lambda: 1, LogDet: 1e-3}}
	if got, _ := c.Additive(); math.Abs(got-10*2.89*.5*1e-3-1) > 1e-12 {
		t.Errorf("where β is ½, the least: %v", got)
	}
}

// TestBadRounds: a round of the learner's own is bad if the determinant has more than doubled since it was decided, by
// whatever loss it ends; one without a loss is not.
func TestBadRounds(t *testing.T) {
	for fate, want := range map[learner.Fate]int64{learner.Observed: 1, learner.Imputed: 1, learner.Skipped: 0,
		learner.Withdrawn: 0} {
		d := certified()
		x := overPlanes(1).input(0)
		for n := range int64(9) {
			law, gamma := d.Propensities(nil, x)
			r := &learner.Round{Input: x, Propensities: law, Gamma: gamma, N: n + 1, Decision: n + 1, LearnedThrough: n,
				Fate: learner.Observed}
			if n == 8 {
				r.LearnedThrough, r.Fate = 0, fate
			}
			d.Learn(r)
		}
		if _, _, _, bad := d.Oracle().(*oracle.Frozen).Determinant(); bad != want {
			t.Errorf("%v: %d rounds are bad, want %d", fate, bad, want)
		}
	}
}
