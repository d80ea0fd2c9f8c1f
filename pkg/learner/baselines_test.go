package learner_test

import (
	"math"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// stub predicts fixed losses and learns nothing.
type stub struct {
	oracle.Regressor
	fhat []float64
}

func (s stub) Predict(dst []float64, _ *oracle.Input) { copy(dst, s.fhat) }
func (s stub) Regret() float64                        { return 1 }
func (s stub) Update(*oracle.Input, int, float64)     {}
func (s stub) OrderFree() bool                        { return true }

// TestLawsByHand: each learner's law on the predictions (.5, .2, .2, .8).
func TestLawsByHand(t *testing.T) {
	reg := stub{fhat: []float64{0.5, 0.2, 0.2, 0.8}}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
	for _, c := range []struct {
		name  string
		l     learner.Learner
		law   [4]float64
		gamma float64
	}{
		{"uniform", learner.NewUniform(), [4]float64{0.25, 0.25, 0.25, 0.25}, 0},
		{"fixed", learner.NewFixed("c"), [4]float64{0, 0, 1, 0}, 0},
		{"fixed, not eligible", learner.NewFixed("z"), [4]float64{0.25, 0.25, 0.25, 0.25}, 0},
		{"greedy: the first of equal ones", learner.NewGreedy(reg), [4]float64{0, 1, 0, 0}, 0},
		{"egreedy", must(learner.NewEpsilonGreedy(reg, 0.2)), [4]float64{0.05, 0.85, 0.05, 0.05}, 0},
		// μ solves 2/μ + 1/(μ+3) + 1/(μ+6) = 1 at γ = 10
		{"dafa", learner.NewDAFA(reg, learner.Fixed{G: 10}), [4]float64{1 / (dafaMu + 3), 1 / dafaMu, 1 / dafaMu,
			1 / (dafaMu + 6)}, 10},
	} {
		law, gamma := c.l.Propensities(nil, x)
		for a, p := range law {
			if math.Abs(p-c.law[a]) > 1e-12 {
				t.Errorf("%s: law %v, want %v", c.name, law, c.law)
				break
			}
		}
		if gamma != c.gamma {
			t.Errorf("%s: γ = %v, want %v", c.name, gamma, c.gamma)
		}
	}
	for _, bad := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := learner.NewEpsilonGreedy(reg, bad); err == nil {
			t.Errorf("epsilon %v: accepted", bad)
		}
	}
	for _, good := range []float64{0, 1} {
		if _, err := learner.NewEpsilonGreedy(reg, good); err != nil {
			t.Error(err)
		}
	}
	if learner.NewGreedy(reg).NeedsFIFO() || learner.NewDAFA(reg, learner.Fixed{G: 1}).NeedsFIFO() ||
		!learner.NewDAFA(newLinear(), learner.Fixed{G: 1}).NeedsFIFO() {
		t.Error("NeedsFIFO")
	}
	law, _ := learner.NewDAFA(reg, learner.Fixed{G: 10}).Propensities(nil, x)
	l := learner.NewDAFA(reg, learner.Fixed{G: 10})
	l.Learn(&learner.Round{Input: x, Propensities: law, Gamma: 10, N: 1, Fate: learner.Observed})
	if want := (0.3*law[0] + 0.6*law[3]); math.Abs(l.Certificate().Explored-want) > 1e-12 {
		t.Errorf("exploration cost %v, want Σp(f̂−min f̂) = %v", l.Certificate().Explored, want)
	}
}

// dafaMu is the root of 2/μ + 1/(μ+3) + 1/(μ+6) = 1, by bisection.
var dafaMu = func() float64 {
	low, high := 1.0, 4.0
	for range 100 {
		mid := (low + high) / 2
		if 2/mid+1/(mid+3)+1/(mid+6) > 1 {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}()
