package replay

// NewLinearWorld returns the environment linear:d,K of a seed: x is uniform in [−1,1]^d, the mean loss of
// action a is ½ + θ_a·x with θ_a normal and scaled to Σ|θ_aj| = ½, so that it is linear
// everywhere in [0,1]; losses are Bernoulli.
func NewLinearWorld(seed uint64, rounds, d, k int) *World {
	e := newWorld(rounds, k, "linear", float64(d), float64(k))
	e.cube(d, seed, "linear contexts")
	e.drawn(seed, "linear losses")
	all := make([][]float64, 0, k) // θ
	coefficients := NewStream(seed, "linear coefficients")
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

// NewBandit returns the environment bandit:K,m,o of a seed: no context, mean loss m of one action, o of
// the others; losses are Bernoulli.
func NewBandit(seed uint64, rounds, k int, best, other float64) *World {
	e := newWorld(rounds, k, "bandit", float64(k), best, other)
	e.drawn(seed, "bandit losses")
	star := int(NewStream(seed, "bandit action").Uint64(0, 0) % uint64(k))
	e.mean = func(_, a int) float64 {
		if a == star {
			return best
		}
		return other
	}
	return e
}
