package replay

import (
	"math"

	"hindsight/pkg/oracle"
)

// Hypercube is the environment hypercube:n,eps of ALGORITHMS.md, section 6 (paper,
// lem:fa-full-info-lb): n contexts that come at random, two actions, and a class of 2ⁿ
// functions, one for each choice of a best action in every context: f(x, best) = ½ − ε,
// f(x, other) = ½. f⋆ is one of them by the seed, losses are Bernoulli. Of Ω(√(nT)) regret
// none is saved by any learner at the paper's ε = √(n/(100·T)).
type Hypercube struct {
	World
	n   int
	eps float64
}

// NewHypercube returns the environment of a seed; eps = 0 stands for the paper's. Contexts are a number
// to the eye, but only equal or not.
func NewHypercube(seed uint64, rounds, n int, eps float64) *Hypercube {
	e := &Hypercube{n: n, eps: eps, World: World{name: specification("hypercube", float64(n), eps), rounds: rounds,
		actions: numbered("a", 2), features: []string{"x"}}}
	e.drawn(seed, "hypercube losses")
	contexts, star := NewStream(seed, "hypercube contexts"), NewStream(seed, "hypercube function")
	x := func(t int) uint64 { return contexts.Uint64(uint64(t), 0) % uint64(n) }
	e.value = func(t, _ int) float64 { return float64(x(t)) }
	e.mean = func(t, a int) float64 {
		if int(star.Uint64(x(t), 0)>>63) == a {
			return 0.5 - e.eps
		}
		return 0.5
	}
	if eps == 0 {
		e.eps = min(0.5, math.Sqrt(float64(n)/(100*float64(max(rounds, 1)))))
	}
	return e
}

// Oracle returns Hedge-Vovk over the 2ⁿ functions, as one small Hedge a context; it is
// order-free.
func (e *Hypercube) Oracle() (reg oracle.Regressor, orderFree bool, err error) {
	factors := make([]oracle.Class, e.n)
	for i := range factors {
		factors[i] = edge(e.eps)
	}
	reg, err = oracle.NewFactored(func(x *oracle.Input) int { return cubeContext(x, e.n) }, factors,
		oracle.HedgeOptions{})
	return reg, true, err
}

// cubeContext returns which of n contexts x is, 0 if none that is known.
func cubeContext(x *oracle.Input, n int) int {
	for i := range x.Features {
		if f := &x.Features[i]; f.Name == "x" && f.Value >= 0 && f.Value < float64(n) {
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
