package replay

import (
	"math"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// Hypercube is the environment hypercube:n,eps of ALGORITHMS.md, section 6 (paper,
// lem:fa-full-info-lb): n contexts that come at random, two actions, and a class of 2ⁿ
// functions, one for each choice of a best action in every context: f(x, best) = ½ − ε,
// f(x, other) = ½. f⋆ is one of them by the seed, losses are Bernoulli. Of Ω(√(nT)) regret
// none is saved by any learner at the paper's ε = √(n/(100·T)).
type Hypercube struct {
	name                   string
	rounds, n              int
	eps                    float64
	actions                []string
	contexts, star, losses Stream
}

var _ Environment = (*Hypercube)(nil)

// NewHypercube returns the environment of a seed; eps = 0 stands for the paper's.
func NewHypercube(seed uint64, rounds, n int, eps float64) *Hypercube {
	e := &Hypercube{name: specification("hypercube", float64(n), eps), rounds: rounds, n: n, eps: eps, actions: numbered("a", 2),
		contexts: NewStream(seed, "hypercube contexts"), star: NewStream(seed, "hypercube function"), losses: NewStream(seed, "hypercube losses")}
	if eps == 0 {
		e.eps = min(0.5, math.Sqrt(float64(n)/(100*float64(max(rounds, 1)))))
	}
	return e
}

// Name implements [Environment].
func (e *Hypercube) Name() string { return e.name }

// Len implements [Environment].
func (e *Hypercube) Len() int { return e.rounds }

// Actions implements [Environment].
func (e *Hypercube) Actions() []string { return e.actions }

// Columns implements [Environment]: contexts are a number to the eye, but only equal or
// not.
func (e *Hypercube) Columns() int { return 2 }

func (e *Hypercube) x(t int) int { return int(e.contexts.Uint64(uint64(t), 0) % uint64(e.n)) }

// Context implements [Environment].
func (e *Hypercube) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], e.actions)}
	dst.Features = append(dst.Features, codec.Feature{Name: "x", Kind: codec.Number, Value: float64(e.x(t))})
}

// mean returns f⋆(x, a).
func (e *Hypercube) mean(x, a int) float64 {
	if int(e.star.Uint64(uint64(x), 0)>>63) == a {
		return 0.5 - e.eps
	}
	return 0.5
}

// Truth implements [Environment].
func (e *Hypercube) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = e.mean(e.x(t), a)
	}
	return true
}

// Loss implements [Environment].
func (e *Hypercube) Loss(t, a int) float64 {
	return unless(e.losses.Uniform(uint64(t), uint64(a)) < e.mean(e.x(t), a))
}

// Oracle returns Hedge-Vovk over the 2ⁿ functions, as one small Hedge a context; it is
// order-free.
func (e *Hypercube) Oracle() (reg oracle.Regressor, orderFree bool, err error) {
	factors := make([]oracle.Class, e.n)
	for i := range factors {
		factors[i] = edge(e.eps)
	}
	reg, err = oracle.NewFactored(func(x *oracle.Input) int { return cubeContext(x, e.n) }, factors, oracle.HedgeOptions{})
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
