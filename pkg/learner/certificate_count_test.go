package learner

import (
	"math"
	"testing"
)

// TestCertificateFormulas works both bounds by hand: the barrier 10, 8·3/4, the drift 5 or 2√(18·2), 7 skipped.
func TestCertificateFormulas(t *testing.T) {
	c := Certificate{Barrier: 10, MaxGamma: 8, Regret: 3, Drift: 5, Skipped: 7, SumSqSig: 18, Beta: 2}
	if got := c.MeasuredDrift(); got != 28 {
		t.Errorf("measured drift %v, want 28", got)
	}
	if got := c.APriori(); got != 35 {
		t.Errorf("a priori %v, want 35", got)
	}
	for _, beta := range []float64{0, -1} {
		if c.Beta = beta; !math.IsInf(c.APriori(), 1) {
			t.Errorf("a priori %v without a stability constant", c.APriori())
		}
	}
}

// TestCertificateCounts holds what a round of each fate adds.
func TestCertificateCounts(t *testing.T) {
	var c Certificate
	for _, r := range []struct {
		fate       Fate
		n, through int64
		learned    bool
	}{{Observed, 1, 0, true}, {Imputed, 5, 1, true}, {Skipped, 6, 4, false}, {Withdrawn, 7, 0, false},
		{Observed, 8, 9, true}} {
		if got := c.count(&Round{Fate: r.fate, N: r.n, LearnedThrough: r.through}); got != r.learned {
			t.Errorf("%+v: learned %v", r, got)
		}
	}
	want := Certificate{Rounds: 4, Learned: 3, Imputed: 1, Skipped: 1, SumSigma: 3 + 1, SumSqSig: 9 + 1, MaxSigma: 3}
	if c != want {
		t.Errorf("counted %+v, want %+v", c, want)
	}
}

// TestCertificateLaws holds what the law of a round adds: min(1, (K−1)/γ) over the actions that are played, and
// (K−1/max p)/γ.
func TestCertificateLaws(t *testing.T) {
	for _, x := range []struct {
		law   []float64
		gamma float64
		want  Certificate
	}{
		{[]float64{.5, .25, .25, 0}, 4, Certificate{Barrier: .5, MaxGamma: 4, Explored: .25}},
		{[]float64{.5, .25, .25, 0}, 1, Certificate{Barrier: 1, MaxGamma: 1, Explored: 1}},
		{[]float64{.25, .25, .25, .25}, 8, Certificate{Barrier: .375, MaxGamma: 8}},
		{[]float64{0, 1}, 2, Certificate{MaxGamma: 2}},
		{[]float64{.5, .5}, 0, Certificate{Barrier: 1}},
		{[]float64{.5, .5}, -1, Certificate{Barrier: 1}},
		{[]float64{.5, .5}, math.NaN(), Certificate{Barrier: 1}},
		{[]float64{1}, 4, Certificate{}},
		{[]float64{1}, 0, Certificate{}},
	} {
		var c Certificate
		c.addLaw(&Round{Propensities: x.law, Gamma: x.gamma})
		if c != x.want {
			t.Errorf("law %v, γ %v: %+v, want %+v", x.law, x.gamma, c, x.want)
		}
	}
}
