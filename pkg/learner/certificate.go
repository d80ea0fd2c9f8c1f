package learner

import "math"

// Certificate holds the sums from which the regret certificates of a run are
// computed when asked (algorithms.md, sections 3.1 and 5). A learner adds each
// feedback in the order of the log.
type Certificate struct {
	Rounds   int64 // feedbacks seen, withdrawn ones left out
	Learned  int64 // observed + imputed
	Imputed  int64
	Skipped  int64   // charged 1 each
	Barrier  float64 // Σ (K_t−1)/γ_t over learned rounds
	MaxGamma float64 // max γ_t over learned rounds
	Regret   float64 // R_T(O), the oracle's regret
	Bounded  bool    // Regret is a theorem's bound, not only a measured figure
	Drift    float64 // Σ p_t·g_t − min_a g_t(a) over learned rounds
	Explored float64 // Σ (K−μ_t)/γ_t: the exploration cost by the model's own belief
	SumSigma float64 // Σ σ_t, σ_t = (t−1) − τ(t)
	SumSqSig float64 // Σ σ_t²
	MaxSigma int64
	Beta     float64 // stability constant of the oracle; 0: none is proved
}

// MeasuredDrift returns Σ(K_t−1)/γ_t + max γ·R_T/4 + drift + skipped: in
// expectation it bounds the regret (algorithms.md 3.1, 5.2).
func (c Certificate) MeasuredDrift() float64 {
	return c.Barrier + float64(c.MaxGamma*c.Regret)/4 + c.Drift + float64(c.Skipped)
}

// APriori returns the same bound with the drift replaced by 2√(Σσ_t²·β); +Inf
// where no stability constant is proved for the oracle (algorithms.md 5.3).
func (c Certificate) APriori() float64 {
	if c.Beta <= 0 {
		return math.Inf(1)
	}
	return c.Barrier + float64(c.MaxGamma*c.Regret)/4 + 2*math.Sqrt(float64(c.SumSqSig*c.Beta)) + float64(c.Skipped)
}
