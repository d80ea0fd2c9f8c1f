package world

import (
	"hindsight/internal/model"
	"hindsight/internal/random"
)

// newNeedle returns the environment needle:s,n,o of docs/algorithms.md, section 6, of a seed: no context, K = |F| = 10.
// Action 0 has mean loss s; action j ≥ 1 has mean n under f_j, the needle, and o under every other function. f_0 has no
// needle; f⋆ is one of f_1 … f_9 by the seed. A learner that never leaves action 0 for n < s < o never learns which
// function is true. Losses are Bernoulli; all means are in [0,1].
func newNeedle(seed uint64, rounds int, args []float64) *World {
	const needleActions = 10
	e := newWorld(rounds, needleActions, "needle", args...)
	e.drawn(seed, "needle losses")
	e.Class = &model.ClassFile{Kind: model.LinearClass, Features: []string{}, Actions: e.Actions}
	var means []float64 // under f⋆
	star := 1 + int(random.New(seed, "needle function").Uint64(0, 0)%(needleActions-1))
	for j := range needleActions {
		f := model.Function{Prior: 1}
		for a := range needleActions {
			mean := args[2]
			switch {
			case a == 0:
				mean = args[0]
			case a == j:
				mean = args[1]
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
