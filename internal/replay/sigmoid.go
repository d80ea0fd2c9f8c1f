package replay

import (
	"slices"
	"strconv"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// SigmoidOptions are the parameters of [NewSigmoid]; 0 is the default.
type SigmoidOptions struct {
	Actions   int     // K, 5
	Functions int     // |F|, 100
	Features  int     // dimension of x, 5
	Scale     float64 // standard deviation of coefficients, 1.5
}

// Sigmoid is the environment of ALGORITHMS.md, section 6: x is uniform in
// [−1,1]^d, f_j(x,a) = σ(θ_ja·x + b_ja) with all coefficients N(0, Scale²), and
// losses are Bernoulli with mean f⋆ = f_0.
type Sigmoid struct {
	name              string
	rounds            int
	actions, features []string
	class             *model.ClassFile
	contexts, losses  Stream
}

var _ Environment = (*Sigmoid)(nil)

// NewSigmoid returns the environment of a seed.
func NewSigmoid(seed uint64, rounds int, o SigmoidOptions) *Sigmoid {
	k, n, d, scale := orElse(o.Actions, 5), orElse(o.Functions, 100), orElse(o.Features, 5), o.Scale
	if scale == 0 {
		scale = 1.5
	}
	e := &Sigmoid{
		name: "sigmoid", rounds: rounds, actions: numbered("a", k), features: numbered("x", d),
		contexts: NewStream(seed, "sigmoid contexts"), losses: NewStream(seed, "sigmoid losses"),
	}
	e.class = &model.ClassFile{Kind: model.LogisticClass, Features: e.features, Actions: e.actions}
	coefficients := NewStream(seed, "sigmoid coefficients")
	for j := range n {
		f := model.Function{Prior: 1, W: make([][]float64, k)}
		for a := range f.W {
			f.W[a] = make([]float64, d+1)
			for i := range f.W[a] {
				f.W[a][i] = float64(scale * coefficients.Normal(uint64(j), uint64(a*(d+1)+i)))
			}
		}
		e.class.Functions = append(e.class.Functions, f)
	}
	return e
}

// orElse returns n, or d if n is 0.
func orElse(n, d int) int {
	if n == 0 {
		return d
	}
	return n
}

// numbered returns prefix1, prefix2, ….
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + itoa(i+1)
	}
	return names
}

func itoa(n int) string { return strconv.Itoa(n) }

// Class returns the file of the class F, in which f⋆ is the first function.
func (e *Sigmoid) Class() []byte { return e.class.Append(nil) }

// Name implements [Environment].
func (e *Sigmoid) Name() string { return e.name }

// Len implements [Environment].
func (e *Sigmoid) Len() int { return e.rounds }

// Actions implements [Environment].
func (e *Sigmoid) Actions() []string { return e.actions }

// Columns implements [Environment].
func (e *Sigmoid) Columns() int { return len(e.features) + 1 }

// Context implements [Environment].
func (e *Sigmoid) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], e.actions)}
	for i, name := range e.features {
		dst.Features = append(dst.Features, codec.Feature{Name: name, Kind: codec.Number, Value: e.x(t, i)})
	}
}

func appendActions(dst []codec.Action, names []string) []codec.Action {
	dst = slices.Grow(dst, len(names))
	for _, name := range names {
		dst = append(dst, codec.Action{Name: name})
	}
	return dst
}

func (e *Sigmoid) x(t, i int) float64 {
	return float64(2*e.contexts.Uniform(uint64(t), uint64(i))) - 1
}

// truth returns f_0(x_t, a), summed left to right: the data of a seed must not
// change when an oracle's kernel sums in another order.
func (e *Sigmoid) truth(t, a int) float64 {
	w := e.class.Functions[0].W[a]
	s := 0.0
	for i := range e.features {
		s += float64(e.x(t, i) * w[i])
	}
	return oracle.Sigmoid(s + w[len(e.features)])
}

// Truth implements [Environment].
func (e *Sigmoid) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = e.truth(t, a)
	}
	return true
}

// Loss implements [Environment].
func (e *Sigmoid) Loss(t, a int) float64 {
	if e.losses.Uniform(uint64(t), uint64(a)) < e.truth(t, a) {
		return 1
	}
	return 0
}
