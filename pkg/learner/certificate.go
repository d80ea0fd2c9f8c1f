package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

// Certificate holds the sums from which the regret certificates of a run are computed when asked (docs/algorithms.md,
// sections 3.1 and 5). A learner adds each feedback in the order of the log.
type Certificate struct {
	Rounds   int64 // feedbacks seen, withdrawn ones left out
	Learned  int64 // observed + imputed
	Imputed  int64
	Skipped  int64   // charged 1 each
	Barrier  float64 // Σ min(1, (K_t−1)/γ_t) over learned rounds
	MaxGamma float64 // max γ_t over learned rounds with K_t > 1
	Regret   float64 // R_T(O), the oracle's regret
	Bounded  bool    // Regret is a theorem's bound, not only a measured figure
	Drift    float64 // Σ p_t·g_t − min_a g_t(a) over learned rounds
	Explored float64 // Σ (K−μ_t)/γ_t: the exploration cost by the model's own belief
	SumSigma float64 // Σ σ_t, σ_t = (t−1) − τ(t)
	SumSqSig float64 // Σ σ_t²
	MaxSigma int64
	Beta     float64 // stability constant of the oracle; 0: none is proved

	Potential  Potential // of the oracle
	Slowed     bool      // its η follows what is outstanding
	Linear     Determinant
	Plausible  Plausible // by the surviving models of a finite class; zero: none are kept
	Lost       float64   // ΣL of learned rounds, where the oracle knows it
	Counted    bool      // it does
	Priced     bool      // its law charges for costs: what it says is of loss + Σ λ·cost/budget, and no more
	Eliminates bool      // plays only what a surviving model thinks best: bounds hold while the truth survives
}

// MeasuredDrift returns Σ(K_t−1)/γ_t + max γ·R_T/4 + drift + skipped: in
// expectation it bounds the regret (docs/algorithms.md, 3.1, 5.2).
func (c Certificate) MeasuredDrift() float64 {
	return c.Barrier + float64(c.MaxGamma*c.Regret)/4 + c.Drift + float64(c.Skipped)
}

// APriori returns the same bound with the drift replaced by 2√(Σσ_t²·β); +Inf
// where no stability constant is proved for the oracle (docs/algorithms.md, 5.3).
func (c Certificate) APriori() float64 {
	if c.Beta <= 0 {
		return math.Inf(1)
	}
	return c.Barrier + float64(c.MaxGamma*c.Regret)/4 + float64(2*math.Sqrt(float64(c.SumSqSig*c.Beta))) +
		float64(c.Skipped)
}

// count adds a round's fate and its σ, and reports whether it is learned.
func (c *Certificate) count(r *Round) bool {
	switch r.Fate {
	case Observed, Imputed, Skipped:
	default:
		return false
	}
	c.Rounds++
	sigma := max(0, r.N-1-r.LearnedThrough) // less only when feedback that was learned is lost with its log's tail
	c.MaxSigma = max(c.MaxSigma, sigma)
	c.SumSigma += float64(sigma)
	c.SumSqSig += float64(float64(sigma) * float64(sigma))
	if r.Fate == Skipped {
		c.Skipped++
		return false
	}
	c.Learned++
	if r.Fate == Imputed {
		c.Imputed++
	}
	return true
}

// addLaw adds the terms of a learned round that depend on its law alone. A round's regret is at most 1 and no term of
// its bound is negative, so no more than 1 of the barrier term is charged.
func (c *Certificate) addLaw(r *Round) {
	if len(r.Propensities) < 2 {
		return
	}
	if !(r.Gamma > 0) {
		c.Barrier++
		return
	}
	k, top := 0, 0.0 // actions played: all, unless some are eliminated
	for _, p := range r.Propensities {
		if p > 0 {
			k++
		}
		top = max(top, p)
	}
	c.Barrier += math.Min(1, float64(k-1)/r.Gamma)
	c.MaxGamma = math.Max(c.MaxGamma, r.Gamma)
	// μ = 1/max p, because the smallest c_a is 0.
	c.Explored += (float64(k) - 1/top) / r.Gamma
}

// realisedRates is how many rates 1, ½, ¼, … [Certificate.Realised] tries.
const realisedRates = 16

// Realised returns a bound on the regret of the rounds so far that with probability at least
// 1−alpha holds at all times at once, for oracles that know what was lost; +Inf for others:
//
//	Σ p_s·f⋆(x_s,·) ≤ min_j (λ_j·ΣL + log(16/α)) / (1 − e^{−λ_j}) + skipped + imputed,  λ_j = 2^{−j}
//
// It takes the best policy to lose nothing, and the truth to be anything: f⋆ is what losses
// mean, given the past. Where the best loses much it is loose (package comment).
func (c Certificate) Realised(alpha float64) float64 {
	if !c.Counted {
		return math.Inf(1)
	}
	least, price := math.Inf(1), oracle.Log(realisedRates/alpha)
	rate := 1.0
	for range realisedRates {
		least = math.Min(least, (float64(rate*c.Lost)+price)/(1-oracle.Exp(-rate)))
		rate /= 2
	}
	return least + float64(c.Skipped+c.Imputed)
}
