package learner

import "math"

// maxNewton bounds the iterations of [Solve]; no input is known that needs more than 9.
const maxNewton = 64

// maxGamma bounds γ.
const maxGamma = 1e15

// clipGamma clips γ to [0, maxGamma]; NaN becomes 0.
func clipGamma(gamma float64) float64 {
	if !(gamma > 0) {
		return 0
	}
	return math.Min(gamma, maxGamma)
}

// Solve sets p to the law that DA-FA plays (paper, eq. objective), the argmin
// over the simplex of Σ p(a)·f̂(a) − (1/γ) Σ log p(a), and returns its scalar μ:
//
//	p(a) = 1/(μ + c_a),  c_a = γ·(f̂(a) − min f̂),  μ ∈ [1, K] with Σ_a p(a) = 1
//
// p has the floor 1/(K+γ), a smaller f̂ never has a smaller p, and Σ p(a)·(f̂(a) − min f̂) = (K − μ)/γ. len(p) =
// len(fhat) = K ≥ 1, f̂ finite, γ in [0, 1e15] (clipped). The sum of p is 1 within max(1e-14, K·2⁻⁵⁴); [Law] makes it
// exact.
func Solve(p, fhat []float64, gamma float64) (mu float64) {
	mu, _ = solve(p, fhat, gamma)
	return mu
}

// solve is Solve that also returns the number of Newton steps.
//
// It solves φ(μ) = 1/S(μ) = 1, S(μ) = Σ 1/(μ + c_a), by Newton's method: μ ← μ + S(S−1)/S₂, S₂ = Σ 1/(μ+c_a)². φ is a
// harmonic mean of μ + c_a over K, hence concave: its tangent lies above it, and from the left the steps climb without
// passing the root. The start is left of the root by Jensen's inequality: S(μ) ≥ 1/μ + (K−1)/(μ+ḡ), ḡ the mean of c
// over the other K−1 actions, and the start is where that equals 1. At K = 2 it is the root.
func solve(p, fhat []float64, gamma float64) (mu float64, steps int) {
	p = p[:len(fhat)]
	if len(p) == 1 {
		p[0] = 1
		return 1, 0
	}
	gamma = clipGamma(gamma)
	low := fhat[0]
	for _, v := range fhat {
		if v < low {
			low = v
		}
	}
	// p holds 1/(μ + c_a) after each pass, so c is computed anew from f̂ rather
	// than kept: one multiplication beside a division.
	sum := 0.0
	for _, v := range fhat {
		sum += float64(gamma * (v - low))
	}
	k := float64(len(p))
	mu = start(k, sum/(k-1))
	tolerance := math.Max(1e-14, k*0x1p-54)
	for ; ; steps++ {
		s, s2 := 0.0, 0.0
		for a, v := range fhat {
			w := 1 / (mu + float64(gamma*(v-low)))
			p[a] = w
			s += w
			s2 += float64(w * w)
		}
		excess := s - 1
		if math.Abs(excess) <= tolerance || steps == maxNewton {
			return mu, steps
		}
		mu += float64(s*excess) / s2
	}
}

// start returns the positive root of μ² − (K−ḡ)μ − ḡ = 0, in the form that does not cancel.
func start(k, g float64) float64 {
	b := k - g
	root := math.Sqrt(float64(b*b) + float64(4*g))
	if b >= 0 {
		return (b + root) / 2
	}
	return 2 * g / (root - b)
}

// Law turns probabilities into the law that is drawn from and logged: it cumulates p in action order, rounds each bound
// to a multiple of 2⁻⁵³, and sets dst to the widths of the half-open intervals between bounds. The last action with p >
// 0 ends at 1, so the widths sum to exactly 1, each is exactly the probability of its draw, and an action with p = 0
// has width 0. Widths differ from p by at most the error of Σp plus K·2⁻⁵². dst may be p.
func Law(dst, p []float64) {
	dst = dst[:len(p)]
	last := len(p) - 1
	for last > 0 && !(p[last] > 0) {
		last--
	}
	const one = 1 << 53
	sum, bound := 0.0, uint64(0)
	for a, v := range p {
		sum += v
		next := uint64(one)
		if a < last && sum < 1 {
			x := sum * one
			next = uint64(x)
			if x-float64(next) >= 0.5 {
				next++
			}
		}
		dst[a] = float64(next-bound) * 0x1p-53
		bound = next
	}
}

// Draw returns the action whose interval holds u·2⁻⁵³, for a law of [Law] and
// u < 2⁵³. It never returns an action of width 0.
func Draw(law []float64, u uint64) int {
	last := 0
	for a, v := range law {
		w := uint64(v * 0x1p53)
		if u < w {
			return a
		}
		u -= w
		if w > 0 {
			last = a
		}
	}
	return last
}
