package world

import (
	"hindsight/internal/grammar"
	"hindsight/internal/random"
)

// newClose returns the environment close:r of docs/algorithms.md, section 6: that of [NewSigmoid] with its defaults,
// but the coefficients of function j are those of a common centre and r times standard normal ones, θ_ja = θ⁰_a +
// r·N(0, I). Centre and intercepts are N(0, 0.7²), and all functions share the intercepts: the smaller r, the nearer
// they are to each other.
func newClose(seed uint64, rounds int, args []float64) *World {
	const k, n, d, scale = 5, 100, 5, 0.7
	e := newSigmoid("close", seed, rounds, k, d)
	e.Name = grammar.Write("close", args...)
	centre, away := random.New(seed, "close centre"), random.New(seed, "close functions")
	for j := range n {
		e.function(k, d, func(i int, at uint64) float64 {
			w := float64(scale * centre.Normal(0, at))
			if i < d {
				w += float64(args[0] * away.Normal(uint64(j), at))
			}
			return w
		})
	}
	return e
}
