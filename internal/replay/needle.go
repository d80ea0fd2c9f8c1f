package replay

import "hindsight/internal/model"

// NewNeedle returns the environment needle:s,n,o of ALGORITHMS.md, section 6, of a seed: no context,
// K = |F| = 10. Action 0 has mean loss s; action j ≥ 1 has mean n under f_j, the
// needle, and o under every other function. f_0 has no needle; f⋆ is one of
// f_1 … f_9 by the seed. Who never leaves action 0 for n < s < o never learns
// which function is true. Losses are Bernoulli; all means are in [0,1].
func NewNeedle(seed uint64, rounds int, safe, needle, other float64) *World {
	const needleActions = 10
	e := newWorld(rounds, needleActions, "needle", safe, needle, other)
	e.drawn(seed, "needle losses")
	e.Class = &model.ClassFile{Kind: model.LinearClass, Features: []string{}, Actions: e.actions}
	var means []float64 // under f⋆
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
				means = append(means, mean)
			}
		}
		e.Class.Functions = append(e.Class.Functions, f)
	}
	e.mean = func(_, a int) float64 { return means[a] }
	return e
}
