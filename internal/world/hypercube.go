package world

import (
	"math"

	"hindsight/internal/random"
	"hindsight/pkg/oracle"
)

// newHypercube returns the environment hypercube:n,eps of docs/algorithms.md, section 6 (paper, lem:fa-full-info-lb): n
// contexts that come at random, two actions, and a class of 2ⁿ functions, one for each choice of a best action in every
// context: f(x, best) = ½ − ε, f(x, other) = ½. f⋆ is one of them by the seed, losses are Bernoulli. Of Ω(√(nT)) regret
// none is saved by any learner at the paper's ε = √(n/(100·T)).
//
// eps = 0 stands for the paper's. Contexts are a number to the eye, but only equal or not. Its oracle is
// Hedge-Vovk over the 2ⁿ functions, as one small Hedge a context.
func newHypercube(seed uint64, rounds int, args []float64) *World {
	n, eps := int(args[0]), args[1]
	e := newWorld(rounds, 2, "hypercube", args...)
	e.Features = []string{"x"}
	if eps == 0 {
		eps = min(0.5, math.Sqrt(float64(n)/(100*float64(max(rounds, 1)))))
	}
	e.drawn(seed, "hypercube losses")
	contexts, star := random.New(seed, "hypercube contexts"), random.New(seed, "hypercube function")
	x := func(t int) uint64 { return contexts.Uint64(uint64(t), 0) % uint64(n) }
	e.value = func(t, _ int) float64 { return float64(x(t)) }
	e.mean = func(t, a int) float64 {
		if int(star.Uint64(x(t), 0)>>63) == a {
			return 0.5 - eps
		}
		return 0.5
	}
	e.OrderFree = true
	e.Oracle = func() (oracle.Regressor, error) {
		factors := make([]oracle.Class, n)
		for i := range factors {
			factors[i] = edge(eps)
		}
		return oracle.NewFactored(func(x *oracle.Input) int { return indexIn(x, "x", n) }, factors,
			oracle.HedgeOptions{})
	}
	return e
}

// indexIn returns the feature of x that is an index below n, 0 if it has none that is.
func indexIn(x *oracle.Input, name string, n int) int {
	for i := range x.Features {
		if f := &x.Features[i]; f.Name == name && f.Value >= 0 && f.Value < float64(n) {
			return int(f.Value)
		}
	}
	return 0
}

// edge is what the class says of one context: under function i action i is best.
type edge float64

func (edge) Size() int { return 2 }

func (eps edge) Eval(dst []float64, _ *oracle.Input, action int) {
	for i := range dst {
		dst[i] = 0.5
		if i == action {
			dst[i] = 0.5 - float64(eps)
		}
	}
}
