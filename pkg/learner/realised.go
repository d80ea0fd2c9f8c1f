package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

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
