package paper

import (
	"math"
	"math/rand/v2"

	"hindsight/pkg/learner"
)

// slack is by how much inequalities of theorem 3 hold, by the instances that were enumerated:
//
//	0  (i): E[q_I(f)] / (q_S(f)·e^{−ηX(f)}) − 1, the least over f
//	1  (ii): E[log W_S − log W_I] + log Σ q_S·e^{−cX}
//	2  Lemma 1: bound less regret
type slack [3][]float64

// enumerate tries random instances of up to six functions and six missing Bernoulli losses, over all 2^6 of which
// expectations are summed. drop leaves out e^{−ηX}, e^{−cX} or the last term of Lemma 1.
func enumerate(instances int, seed uint64, drop [3]bool) slack {
	var s slack
	for k := range instances {
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		s.missing(rng, k%3, drop)
		s.lemma(rng, k%2 == 0, drop[2])
	}
	return s
}

// weightsOf draws weights that may lie far apart.
func weightsOf(rng *rand.Rand, n int) []float64 {
	q, sum := make([]float64, n), 0.0
	for i := range q {
		q[i] = math.Exp(3 * rng.NormFloat64())
		sum += q[i]
	}
	for i := range q {
		q[i] /= sum
	}
	return q
}

// missing checks (i) and (ii) on functions that are far from the truth, near it, or certain.
func (s *slack) missing(rng *rand.Rand, mode int, drop [3]bool) {
	n, m, eta := 2+rng.IntN(5), 1+rng.IntN(6), .02+1.93*rng.Float64()
	f, x := make([][]float64, n), make([]float64, n) // f[0] is the truth
	for i := range f {
		f[i] = make([]float64, m)
		for j := range f[i] {
			switch {
			case mode == 1 && i > 0:
				f[i][j] = math.Max(0, math.Min(1, f[0][j]+.1*rng.NormFloat64()))
			case mode == 2:
				f[i][j] = float64(rng.IntN(3)) / 2
			default:
				f[i][j] = rng.Float64()
			}
			x[i] += (f[i][j] - f[0][j]) * (f[i][j] - f[0][j])
		}
	}
	q := weightsOf(rng, n)
	after, fall, w := make([]float64, n), 0.0, make([]float64, n)
	for losses := range 1 << m {
		p := 1.0
		copy(w, q)
		for j := range m {
			y := float64(losses >> j & 1)
			p *= f[0][j]*y + (1-f[0][j])*(1-y)
			for i := range w {
				w[i] *= math.Exp(-eta * ((f[i][j]-y)*(f[i][j]-y) - (f[0][j]-y)*(f[0][j]-y)))
			}
		}
		sum := 0.0
		for _, v := range w {
			sum += v
		}
		for i, v := range w {
			after[i] += p * v / sum
		}
		fall -= p * math.Log(sum)
	}
	c, left, ratio := eta*(1-eta/2), 0.0, math.Inf(1)
	for i, v := range q {
		least := v * math.Exp(-eta*x[i])
		if drop[0] {
			least = v
		}
		if least > 1e-12 {
			ratio = math.Min(ratio, after[i]/least-1)
		}
		if drop[1] {
			left += v * math.Exp(-2*c*x[i])
		} else {
			left += v * math.Exp(-c*x[i])
		}
	}
	s[0], s[1] = append(s[0], ratio), append(s[1], fall+math.Log(left))
}

// lemma checks Lemma 1 on one round, for a set of functions that is drawn.
func (s *slack) lemma(rng *rand.Rand, certain, drop bool) {
	n, k, gamma := 2+rng.IntN(5), 2+rng.IntN(6), math.Pow(10, -1+4*rng.Float64())
	f, mean, law := make([][]float64, n), make([]float64, k), make([]float64, k)
	q := weightsOf(rng, n)
	for i := range f {
		f[i] = make([]float64, k)
		for a := range f[i] {
			if f[i][a] = rng.Float64(); certain {
				f[i][a] = math.Round(f[i][a])
			}
			mean[a] += q[i] * f[i][a]
		}
	}
	learner.Solve(law, mean, gamma)
	regret, low := 0.0, 1.0
	for a, p := range law {
		regret, low = regret+p*f[0][a], math.Min(low, f[0][a])
	}
	bound := float64(k-1) / gamma
	for i := range f {
		if rng.IntN(2) == 0 {
			if !drop {
				bound += 2 * q[i]
			}
			continue
		}
		for a, p := range law {
			bound += gamma / 4 * q[i] * p * (f[i][a] - f[0][a]) * (f[i][a] - f[0][a])
		}
	}
	s[2] = append(s[2], bound-(regret-low))
}
