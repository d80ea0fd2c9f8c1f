package replay

import (
	"hindsight/internal/model"
	"hindsight/pkg/codec"
)

// needleActions is K = |F| of [Needle].
const needleActions = 10

// Needle is the environment needle:s,n,o of ALGORITHMS.md, section 6: no context,
// K = |F| = 10. Action 0 has mean loss s; action j ≥ 1 has mean n under f_j, the
// needle, and o under every other function. f_0 has no needle; f⋆ is one of
// f_1 … f_9 by the seed. Who never leaves action 0 for n < s < o never learns
// which function is true. Losses are Bernoulli.
type Needle struct {
	name    string
	rounds  int
	actions []string
	means   []float64 // under f⋆
	class   *model.ClassFile
	losses  Stream
}

var _ Environment = (*Needle)(nil)

// NewNeedle returns the environment of a seed; all means are in [0,1].
func NewNeedle(seed uint64, rounds int, safe, needle, other float64) *Needle {
	e := &Needle{name: specification("needle", safe, needle, other), rounds: rounds, actions: numbered("a", needleActions),
		losses: NewStream(seed, "needle losses")}
	e.class = &model.ClassFile{Kind: model.LinearClass, Features: []string{}, Actions: e.actions}
	star := 1 + int(NewStream(seed, "needle function").Uint64(0, 0)%(needleActions-1))
	for j := range needleActions {
		f := model.Function{Prior: 1}
		for a := range needleActions {
			mean := other
			switch {
			case a == 0:
				mean = safe
			case a == j:
				mean = needle
			}
			f.W = append(f.W, []float64{mean})
			if j == star {
				e.means = append(e.means, mean)
			}
		}
		e.class.Functions = append(e.class.Functions, f)
	}
	return e
}

// Class returns the file of the class F.
func (e *Needle) Class() []byte { return e.class.Append(nil) }

// Name implements [Environment].
func (e *Needle) Name() string { return e.name }

// Len implements [Environment].
func (e *Needle) Len() int { return e.rounds }

// Actions implements [Environment].
func (e *Needle) Actions() []string { return e.actions }

// Columns implements [Environment]: the constant alone.
func (e *Needle) Columns() int { return 1 }

// Context implements [Environment].
func (e *Needle) Context(dst *codec.Context, _ int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], e.actions)}
}

// Truth implements [Environment].
func (e *Needle) Truth(dst []float64, _ int) bool {
	copy(dst, e.means)
	return true
}

// Loss implements [Environment].
func (e *Needle) Loss(t, a int) float64 {
	if e.losses.Uniform(uint64(t), uint64(a)) < e.means[a] {
		return 1
	}
	return 0
}
