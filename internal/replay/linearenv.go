package replay

import (
	"hindsight/pkg/codec"
)

// LinearWorld is the environment linear:d,K: x is uniform in [−1,1]^d, the mean loss of
// action a is ½ + θ_a·x with θ_a normal and scaled to Σ|θ_aj| = ½, so that it is linear
// everywhere in [0,1]; losses are Bernoulli. With d = 0 it is bandit:K,m,o: no context,
// mean loss m of one action, o of the others.
type LinearWorld struct {
	name              string
	rounds            int
	actions, features []string
	means             []float64   // at x = 0
	theta             [][]float64 // by action
	contexts, losses  Stream
}

var _ Environment = (*LinearWorld)(nil)

// NewLinearWorld returns the environment linear:d,K of a seed.
func NewLinearWorld(seed uint64, rounds, d, k int) *LinearWorld {
	e := &LinearWorld{
		name: specification("linear", float64(d), float64(k)), rounds: rounds, actions: numbered("a", k), features: numbered("x", d),
		contexts: NewStream(seed, "linear contexts"), losses: NewStream(seed, "linear losses"),
	}
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
		e.theta = append(e.theta, theta)
		e.means = append(e.means, 0.5)
	}
	return e
}

// NewBandit returns the environment bandit:K,m,o of a seed.
func NewBandit(seed uint64, rounds, k int, best, other float64) *LinearWorld {
	e := &LinearWorld{
		name: specification("bandit", float64(k), best, other), rounds: rounds, actions: numbered("a", k),
		losses: NewStream(seed, "bandit losses"),
	}
	star := int(NewStream(seed, "bandit action").Uint64(0, 0) % uint64(k))
	for a := range k {
		e.theta = append(e.theta, nil)
		e.means = append(e.means, other)
		if a == star {
			e.means[a] = best
		}
	}
	return e
}

// Name implements [Environment].
func (e *LinearWorld) Name() string { return e.name }

// Len implements [Environment].
func (e *LinearWorld) Len() int { return e.rounds }

// Actions implements [Environment].
func (e *LinearWorld) Actions() []string { return e.actions }

// Columns implements [Environment].
func (e *LinearWorld) Columns() int { return len(e.features) + 1 }

// Context implements [Environment].
func (e *LinearWorld) Context(dst *codec.Context, t int) {
	*dst = codec.Context{Features: dst.Features[:0], Actions: appendActions(dst.Actions[:0], e.actions)}
	for i, name := range e.features {
		dst.Features = append(dst.Features, codec.Feature{Name: name, Kind: codec.Number, Value: e.x(t, i)})
	}
}

func (e *LinearWorld) x(t, i int) float64 {
	return float64(2*e.contexts.Uniform(uint64(t), uint64(i))) - 1
}

func (e *LinearWorld) truth(t, a int) float64 {
	s := e.means[a]
	for i, w := range e.theta[a] {
		s += float64(w * e.x(t, i))
	}
	return s
}

// Truth implements [Environment].
func (e *LinearWorld) Truth(dst []float64, t int) bool {
	for a := range dst {
		dst[a] = e.truth(t, a)
	}
	return true
}

// Loss implements [Environment].
func (e *LinearWorld) Loss(t, a int) float64 {
	if e.losses.Uniform(uint64(t), uint64(a)) < e.truth(t, a) {
		return 1
	}
	return 0
}
