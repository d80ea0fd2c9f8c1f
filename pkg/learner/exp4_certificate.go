package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

// PolicyCertificate holds the regret bounds of an [EXP4] against the best policy of its class. Each bounds an
// expectation; the package comment has the proofs. Rounds that another law played are none of its rounds.
type PolicyCertificate struct {
	Rounds, Learned, Imputed, Skipped int64

	// Measured is ΣL − min_i Ĉ_i + skipped rounds: what was lost, less the estimate of
	// what the best policy would have lost. It holds for any η and any weighting.
	Measured float64
	// MeasuredDrift is log N/η and, of each round, its variance and the drift between
	// the law it was drawn from and the law of when it was learned, as measured.
	MeasuredDrift float64
	// APriori bounds the same from K, σ and η alone; +Inf for plain importance weighting,
	// whose variance nothing bounds.
	APriori float64
}

// policyTally holds the sums of a [PolicyCertificate].
type policyTally struct {
	counts   Certificate // fates and σ; no more of it is used
	loss     float64     // Σ L
	measured float64     // Σ of measured terms
	apriori  float64     // Σ of their bounds
	actions  float64     // max K_s + max σ_s
}

// add adds the terms of a round that is learned now, with rate η and the law q of the weights of now. A round cannot
// lose more than 1, and neither can its variance term add more (package comment).
func (t *policyTally) add(e *EXP4, r *Round, eta float64) {
	variance, drift := 0.0, 0.0
	for a, then := range r.Propensities {
		now := e.q[a]
		d := e.denominator(then, now, eta)
		variance += float64(then*now) / float64(d*d)
		drift += float64(then * math.Max(0, 1-now/d))
	}
	t.loss += r.Loss
	t.measured += math.Min(1, float64(eta*variance)/2) + math.Min(1, drift)

	k, sigma := float64(len(r.Propensities)), float64(max(0, r.N-1-r.LearnedThrough))
	t.actions = math.Max(t.actions, k+float64(t.counts.MaxSigma))
	reach := float64(eta * sigma)
	if e.eta == 0 {
		// The rate when it was decided, at most: no round since then spent more than actions.
		before := math.Max(e.spent-float64(sigma*t.actions), 1)
		then := math.Max(eta, math.Sqrt(e.breadth/before))
		turn := e.breadth
		if e.logPrior != nil {
			turn++
		}
		reach = float64(then*sigma) + float64(turn*oracle.Log(then/eta)) + float64(eta*k)/2
	}
	t.apriori += math.Min(1, float64(eta*k)/2) + math.Min(1, reach)
}

// PolicyCertificate returns the bounds after the rounds so far.
func (e *EXP4) PolicyCertificate() PolicyCertificate {
	t, c := &e.tally, &e.tally.counts
	out := PolicyCertificate{Rounds: c.Rounds, Learned: c.Learned, Imputed: c.Imputed, Skipped: c.Skipped}
	// What was learned of rounds that another law played moves the weights, and no sum
	// here has it: it can hide a regret of 1 and a variance of 1 each.
	charged := float64(c.Skipped) + float64(2*(e.learned-c.Learned))
	if e.learned == 0 {
		out.Measured, out.MeasuredDrift, out.APriori = charged, charged, charged
		return out
	}
	least := math.Inf(1)
	for _, v := range e.losses {
		least = math.Min(least, v)
	}
	out.Measured = t.loss - least + charged
	out.MeasuredDrift = e.breadth/e.Eta() + t.measured + charged
	out.APriori = e.breadth/e.Eta() + t.apriori + charged
	if e.plain {
		out.APriori = math.Inf(1)
	}
	return out
}
