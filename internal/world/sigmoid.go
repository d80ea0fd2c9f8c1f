package world

import (
	"cmp"

	"hindsight/internal/model"
	"hindsight/internal/random"
	"hindsight/pkg/oracle"
)

// SigmoidOptions are the parameters of [NewSigmoid]; 0 is the default.
type SigmoidOptions struct {
	Actions   int     // K, 5
	Functions int     // |F|, 100
	Features  int     // dimension of x, 5
	Scale     float64 // standard deviation of coefficients, 1.5
}

// NewSigmoid returns the environment of docs/algorithms.md, section 6, of a seed: x is uniform in
// [−1,1]^d, f_j(x,a) = σ(θ_ja·x + b_ja) with all coefficients N(0, Scale²), and
// losses are Bernoulli with mean f⋆ = f_0, the first function of the class.
func NewSigmoid(seed uint64, rounds int, o SigmoidOptions) *World {
	k, n, d, scale := cmp.Or(o.Actions, 5), cmp.Or(o.Functions, 100), cmp.Or(o.Features, 5), cmp.Or(o.Scale, 1.5)
	e := newSigmoid("sigmoid", seed, rounds, k, d)
	coefficients := random.New(seed, "sigmoid coefficients")
	for j := range n {
		e.function(k, d, func(_ int, at uint64) float64 { return float64(scale * coefficients.Normal(uint64(j), at)) })
	}
	return e
}

// function adds one to the class, of k actions and d features: w is coefficient i of an action, the last of them
// the intercept, and its place among those of all actions.
func (w *World) function(k, d int, coefficient func(i int, at uint64) float64) {
	f := model.Function{Prior: 1, W: make([][]float64, k)}
	for a := range f.W {
		for i := range d + 1 {
			f.W[a] = append(f.W[a], coefficient(i, uint64(a*(d+1)+i)))
		}
	}
	w.Class.Functions = append(w.Class.Functions, f)
}

// newSigmoid returns a world with a class of logistic functions that is still empty, whose streams begin
// with the word that kind is.
func newSigmoid(kind string, seed uint64, rounds, k, d int) *World {
	e := newWorld(rounds, k, kind)
	e.cube(d, seed, kind+" contexts")
	e.drawn(seed, kind+" losses")
	e.Class = &model.ClassFile{Kind: model.LogisticClass, Features: e.Features, Actions: e.Actions}
	// Summed left to right: the data of a seed must not change when an oracle's kernel sums in another order.
	e.mean = func(t, a int) float64 {
		w := e.Class.Functions[0].W[a]
		s := 0.0
		for i := range e.Features {
			s += float64(e.value(t, i) * w[i])
		}
		return oracle.Sigmoid(s + w[len(e.Features)])
	}
	return e
}
