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
		f := model.Function{Prior: 1, W: make([][]float64, k)}
		for a := range f.W {
			f.W[a] = make([]float64, d+1)
			for i := range f.W[a] {
				f.W[a][i] = float64(scale * coefficients.Normal(uint64(j), uint64(a*(d+1)+i)))
			}
		}
		e.Class.Functions = append(e.Class.Functions, f)
	}
	return e
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
