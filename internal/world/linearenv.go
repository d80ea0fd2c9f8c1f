package world

import (
	"hindsight/internal/random"
)

// newLinear returns the environment linear:d,K of a seed: x is uniform in [−1,1]^d, the mean loss of action a is ½ +
// θ_a·x with θ_a normal and scaled to Σ|θ_aj| = ½, so that it is linear everywhere in [0,1]; losses are Bernoulli.
func newLinear(seed uint64, rounds int, args []float64) *World {
	d, k := int(args[0]), int(args[1])
	e := newWorld(rounds, k, "linear", args...)
	e.cube(d, seed, "linear contexts")
	e.drawn(seed, "linear losses")
	all := make([][]float64, 0, k) // θ
	coefficients := random.New(seed, "linear coefficients")
	for a := range k {
		theta, sum := make([]float64, d), 0.0
		for j := range theta {
			theta[j] = coefficients.Normal(uint64(a), uint64(j))
			sum += max(theta[j], -theta[j])
		}
		for j := range theta {
			theta[j] /= 2 * sum
		}
		all = append(all, theta)
	}
	e.mean = func(t, a int) float64 {
		s := 0.5
		for i, w := range all[a] {
			s += float64(w * e.value(t, i))
		}
		return s
	}
	return e
}

// newBandit returns the environment bandit:K,m,o of a seed: no context, mean loss m of one action, o of
// the others; losses are Bernoulli.
func newBandit(seed uint64, rounds int, args []float64) *World {
	k := int(args[0])
	e := newWorld(rounds, k, "bandit", args...)
	e.drawn(seed, "bandit losses")
	star := int(random.New(seed, "bandit action").Uint64(0, 0) % uint64(k))
	e.mean = func(_, a int) float64 {
		if a == star {
			return args[1]
		}
		return args[2]
	}
	return e
}
