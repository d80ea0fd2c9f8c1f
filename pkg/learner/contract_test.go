package learner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/learner/learnertest"
	"hindsight/pkg/oracle"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sigmoidClass returns size random logistic functions of d features; function 0
// is the truth of the simulations.
func sigmoidClass(rng *rand.Rand, size, k, d int) (class *oracle.LogisticClass, actions []oracle.Action) {
	var features, names []string
	for j := range d {
		features = append(features, fmt.Sprint("x", j))
	}
	for a := range k {
		names = append(names, string(rune('a'+a)))
		actions = append(actions, oracle.Action{Name: names[a]})
	}
	w := make([][][]float64, size)
	for i := range w {
		for range k {
			row := make([]float64, d+1)
			for j := range row {
				row[j] = 1.5 * rng.NormFloat64()
			}
			w[i] = append(w[i], row)
		}
	}
	return must(oracle.NewLogisticClass(features, names, w)), actions
}

func newHedge(o oracle.HedgeOptions) *oracle.Hedge {
	c, _ := sigmoidClass(rand.New(rand.NewPCG(1, 1)), 20, 5, 4)
	return must(oracle.NewHedge(c, o))
}

func newLinear() *oracle.Linear { return must(oracle.NewLinear(oracle.LinearOptions{Beta: 0.5})) }

func TestContract(t *testing.T) {
	for name, fresh := range map[string]func() learner.Learner{
		"dafa hedge": func() learner.Learner {
			return learner.NewDAFA(newHedge(oracle.HedgeOptions{}), learner.Anytime{C: learner.Balanced})
		},
		"dafa paper": func() learner.Learner {
			return learner.NewDAFA(newHedge(oracle.HedgeOptions{Eta: oracle.PaperEta}), learner.Paper{T: 200})
		},
		"dafa linear": func() learner.Learner { return learner.NewDAFA(newLinear(), learner.Root{C: learner.RootBalanced}) },
		"dafa theory": func() learner.Learner { return learner.NewDAFA(newLinear(), learner.Theory{C: learner.Cautious}) },
		"dafa fixed":  func() learner.Learner { return learner.NewDAFA(newLinear(), learner.Fixed{G: 0}) },
		"uniform":     func() learner.Learner { return learner.NewUniform() },
		"fixed":       func() learner.Learner { return learner.NewFixed("c") },
		"greedy":      func() learner.Learner { return learner.NewGreedy(newLinear()) },
		"egreedy":     func() learner.Learner { return must(learner.NewEpsilonGreedy(newLinear(), 0.05)) },
		"inversegap":  func() learner.Learner { return learner.NewInverseGap(newLinear(), learner.Root{C: 20}) },
	} {
		t.Run(name, func(t *testing.T) { learnertest.Test(t, fresh, learnertest.Options{}) })
	}
}
