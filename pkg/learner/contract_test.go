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
func sigmoidClass(rng *rand.Rand, size, k, d int) (class *oracle.LinearClass, actions []oracle.Action) {
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

func sigmoidPolicies() *learner.Argmin {
	c, _ := sigmoidClass(rand.New(rand.NewPCG(1, 1)), 20, 5, 4)
	return learner.NewArgmin(c)
}

// someLists are decision lists over what [oracletest.Input] makes.
func someLists() *learner.DecisionLists {
	return must(learner.NewDecisionLists([]string{"a", "b", "c", "d", "e"}, []learner.DecisionList{
		{{Then: "b"}},
		{{If: []learner.Condition{{Feature: "kind", Kind: oracle.Text, Text: "A"}}, Then: "c"}, {Then: "a"}},
		{{If: []learner.Condition{{Feature: "x0", Kind: oracle.Number, Lo: 0, Hi: 9},
			{Feature: "flag", Kind: oracle.Bool, Lo: 1, Hi: 1}}, Then: "d"}, {Then: "e"}},
	}))
}

func TestContract(t *testing.T) {
	for name, fresh := range map[string]func() learner.Learner{
		"dafa hedge": func() learner.Learner {
			return learner.NewDAFA(newHedge(oracle.HedgeOptions{}), learner.Anytime{C: learner.Balanced})
		},
		"dafa paper": func() learner.Learner {
			return learner.NewDAFA(newHedge(oracle.HedgeOptions{Eta: oracle.PaperEta}), learner.Paper{T: 200})
		},
		"dafa linear": func() learner.Learner {
			return learner.NewDAFA(newLinear(), learner.Root{C: learner.RootBalanced})
		},
		"dafa theory": func() learner.Learner {
			return learner.NewDAFA(newLinear(), learner.Theory{C: learner.Cautious})
		},
		"dafa fixed": func() learner.Learner { return learner.NewDAFA(newLinear(), learner.Fixed{G: 0}) },
		"dafa early": func() learner.Learner {
			d := learner.NewDAFA(newLinear(), learner.Root{C: learner.RootBalanced})
			d.Early(newLinear())
			return d
		},
		"uniform": func() learner.Learner { return learner.NewUniform() },
		"fixed":   func() learner.Learner { return learner.NewFixed("c") },
		"greedy":  func() learner.Learner { return learner.NewGreedy(newLinear()) },
		"egreedy": func() learner.Learner { return must(learner.NewEpsilonGreedy(newLinear(), 0.05)) },
		"exp4": func() learner.Learner {
			return must(learner.NewEXP4(sigmoidPolicies(), learner.EXP4Options{}))
		},
		"exp4 known": func() learner.Learner {
			return must(learner.NewEXP4(sigmoidPolicies(), learner.EXP4Options{Eta: 0.1}))
		},
		"exp4 plain": func() learner.Learner {
			return must(learner.NewEXP4(someLists(), learner.EXP4Options{Plain: true, Prior: []float64{1, 2, 3}}))
		},
		"dafa vovk": func() learner.Learner {
			return learner.NewDAFA(newHedge(oracle.HedgeOptions{Vovk: true, Unproved: true}),
				learner.Anytime{C: learner.Balanced})
		},
	} {
		t.Run(name, func(t *testing.T) { learnertest.Test(t, fresh, learnertest.Options{}) })
	}
	for name, reg := range map[string]func() oracle.Regressor{
		"auto": func() oracle.Regressor {
			return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: 0.5, Fourier: 4, MaxFeatures: 8}))
		},
		"random": func() oracle.Regressor {
			return must(oracle.NewLinear(oracle.LinearOptions{Beta: 0.5, Fourier: 4, Forget: 0.99}))
		},
		"auto 2": func() oracle.Regressor {
			return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: 0.5, Fourier: 4, MaxFeatures: 8, Version: 2}))
		},
		"hybrid": func() oracle.Regressor {
			return must(oracle.NewShared(oracle.SharedOptions{Hybrid: true, Hashed: 12}))
		},
	} {
		t.Run("dafa "+name, func(t *testing.T) {
			learnertest.Test(t, func() learner.Learner {
				return learner.NewDAFA(reg(), learner.Root{C: learner.RootBalanced})
			}, learnertest.Options{Rounds: 60})
		})
	}
}
