package certify

import "hindsight/pkg/learner"

// Kinds of bounds, as in the JSON of [Certificate].
const (
	KindPlausibleSet  = "plausible_set"
	KindMeasured      = "measured"
	KindRealisedLoss  = "realised_loss"
	KindMeasuredDrift = "measured_drift"
	KindAPriori       = "a_priori"
)

// Kinds returns all of them, the sharpest first.
func Kinds() []string {
	return []string{KindPlausibleSet, KindMeasured, KindRealisedLoss, KindMeasuredDrift, KindAPriori}
}

// Figures are the numbers of a certificate without words, for metrics.
type Figures struct {
	T           int64
	Bounds      map[string]float64 // by kind, those that there are; may be infinite
	Exploration float64            // NaN-free: 0 for learners without
	Surviving   int                // functions of Functions
	Functions   int                // 0: no models are kept
	Refuted     bool               // the class is
}

// Measure returns the figures of a learner; ok is false if it has none.
func Measure(l learner.Learner, outstanding int64) (f Figures, ok bool) {
	wait := float64(outstanding)
	switch l := l.(type) {
	case interface {
		PolicyCertificate() learner.PolicyCertificate
	}:
		c := l.PolicyCertificate()
		return Figures{T: c.Rounds + outstanding, Bounds: map[string]float64{
			KindMeasured: c.Measured + wait, KindMeasuredDrift: c.MeasuredDrift + wait, KindAPriori: c.APriori + wait}}, true
	case learner.Certified:
		c := l.Certificate()
		f = Figures{T: c.Rounds + outstanding, Exploration: c.Explored, Surviving: c.Plausible.Surviving, Functions: c.Plausible.Functions,
			Refuted: c.Plausible.Refuted(), Bounds: map[string]float64{KindMeasuredDrift: c.MeasuredDrift() + wait, KindAPriori: c.APriori() + wait}}
		if c.Counted {
			f.Bounds[KindRealisedLoss] = c.Realised(learner.DefaultAlpha) + wait
		}
		if f.Functions > 0 {
			f.Bounds[KindPlausibleSet] = c.Plausible.Bound + wait
		}
		return f, true
	}
	return f, false
}
