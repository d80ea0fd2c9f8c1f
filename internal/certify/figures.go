package certify

import (
	"math"

	"hindsight/pkg/learner"
)

// Kinds of bounds, as in the JSON of [Certificate].
const (
	KindPlausibleSet  = "plausible_set"
	kindMeasured      = "measured"
	KindRealisedLoss  = "realised_loss"
	kindMeasuredDrift = "measured_drift"
	kindAPriori       = "a_priori"
)

// Kinds returns all of them, the sharpest first.
func Kinds() []string {
	return []string{KindPlausibleSet, kindMeasured, KindRealisedLoss, kindMeasuredDrift, kindAPriori}
}

// ClassRefuted says why bounds that need realizability are void.
const ClassRefuted = "class refuted"

// Figures are the numbers of a certificate without words, for metrics.
type Figures struct {
	T           int64
	Bounds      map[string]float64 // by kind, those that there are; +Inf: infinite, or void
	Exploration float64            // NaN-free: 0 for learners without
	Surviving   int                // functions of Functions
	Functions   int                // 0: no models are kept
	Refuted     bool               // the class is
}

// void names what voids the bound of a kind, "" if nothing does. A refuted class voids those
// that need the truth to be in it. The one by realised loss does not, and policies have no
// class of functions that could be refuted.
func (f *Figures) void(kind string) string {
	if f.Refuted && kind != KindRealisedLoss {
		return ClassRefuted
	}
	return ""
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
			kindMeasured: c.Measured + wait, kindMeasuredDrift: c.MeasuredDrift + wait, kindAPriori: c.APriori + wait}}, true
	case learner.Certified:
		c := l.Certificate()
		return figuresOf(&c, wait), true
	}
	return f, false
}

func figuresOf(c *learner.Certificate, wait float64) Figures {
	p := &c.Plausible
	f := Figures{T: c.Rounds + int64(wait), Exploration: c.Explored,
		Surviving: p.Surviving, Functions: p.Functions, Refuted: p.Refuted(),
		Bounds: map[string]float64{kindMeasuredDrift: c.MeasuredDrift() + wait, kindAPriori: c.APriori() + wait}}
	if c.Counted {
		f.Bounds[KindRealisedLoss] = c.Realised(learner.DefaultAlpha) + wait
	}
	if f.Functions > 0 {
		f.Bounds[KindPlausibleSet] = p.Bound + wait
	}
	for kind := range f.Bounds {
		if f.void(kind) != "" {
			f.Bounds[kind] = math.Inf(1)
		}
	}
	return f
}
