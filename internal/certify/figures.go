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

// What voids bounds.
const (
	ClassRefuted = "class refuted"           // that need a truth in the class
	delaysLook   = "delays depend on losses" // that need feedback whose order does not
)

// Theorems that an a-priori bound is by: the least that holds is taken.
const (
	byStability = "stability"  // the drift is bounded by the oracle's stability
	byAdditive  = "additive"   // theorem 3: delays are blind to losses that have not come
	byAnyDelay  = "any delays" // theorem 1
)

// Figures are the numbers of a certificate without words, for metrics.
type Figures struct {
	T           int64
	Bounds      map[string]float64 // by kind, those that there are; +Inf: infinite, or void
	Exploration float64            // NaN-free: 0 for learners without
	Surviving   int                // functions of Functions
	Functions   int                // 0: no models are kept
	Refuted     bool               // the class is

	by    string       // the theorem of the a-priori bound
	at    learner.Free // of byAdditive
	looks bool         // feedback is in an order that depends on losses
}

// void names what voids the bound of a kind, "" if nothing does. A refuted class voids those
// that need the truth to be in it. The one by realised loss does not, and policies have no
// class of functions that could be refuted. In the order of arrival delays that depend on losses void
// all but the plausible set, which takes rounds in the order of decisions, and the a-priori bound for any delays.
func (f *Figures) void(kind string) string {
	switch {
	case kind == KindRealisedLoss:
	case f.Refuted:
		return ClassRefuted
	case f.looks && kind != KindPlausibleSet && !(kind == kindAPriori && f.by == byAnyDelay):
		return delaysLook
	}
	return ""
}

// bound returns that of a kind, judged against the number T of rounds.
func (f *Figures) bound(kind string, t int64) *Bound {
	b := NewBound(f.Bounds[kind], t)
	b.Void = f.void(kind)
	return b
}

// Measure returns the figures of a learner; ok is false if it has none.
func Measure(l learner.Learner, o *Options) (f Figures, ok bool) {
	switch l := l.(type) {
	case interface {
		PolicyCertificate() learner.PolicyCertificate
	}:
		c := l.PolicyCertificate()
		return figuresOfPolicies(&c, o), true
	case learner.Certified:
		c := certificateOf(l, o)
		return figuresOf(&c, o), true
	}
	return f, false
}

func figuresOf(c *learner.Certificate, o *Options) Figures {
	p, wait := &c.Plausible, float64(o.Outstanding)
	f := Figures{T: c.Rounds + o.Outstanding, Exploration: c.Explored,
		Surviving: p.Surviving, Functions: p.Functions, Refuted: p.Refuted(), looks: o.Arrival && o.looks(),
		Bounds: map[string]float64{kindMeasuredDrift: c.MeasuredDrift() + wait}}
	f.Bounds[kindAPriori] = f.aPriori(c, o) + wait
	if c.Counted {
		f.Bounds[KindRealisedLoss] = c.Realised(learner.DefaultAlpha) + wait
	}
	if f.Functions > 0 {
		f.Bounds[KindPlausibleSet] = p.Bound + wait - float64(p.Ahead)
	}
	f.empty()
	return f
}

// figuresOfPolicies are those of policies, whose bounds hold in the order of arrival while delays do not depend
// on losses.
func figuresOfPolicies(c *learner.PolicyCertificate, o *Options) Figures {
	wait := float64(o.Outstanding)
	f := Figures{T: c.Rounds + o.Outstanding, looks: o.Arrival && o.looks(), Bounds: map[string]float64{
		kindMeasured: c.Measured + wait, kindMeasuredDrift: c.MeasuredDrift + wait, kindAPriori: c.APriori + wait}}
	f.empty()
	return f
}

// empty leaves void bounds without a value.
func (f *Figures) empty() {
	for kind := range f.Bounds {
		if f.void(kind) != "" {
			f.Bounds[kind] = math.Inf(1)
		}
	}
}

// aPriori returns the least of the bounds that hold, and says by which theorem it does. Theorem 1 counts what was
// outstanding in the order of decisions, which in that of arrival is known of one partition, by its models.
func (f *Figures) aPriori(c *learner.Certificate, o *Options) (least float64) {
	least, f.by = c.APriori(), byStability
	if additive, at := c.Additive(); additive < least && !o.looks() {
		least, f.by, f.at = additive, byAdditive, at
	}
	any := c.AnyDelay()
	if known := !o.Arrival || c.Slowed && f.Functions > 0; known && (any < least || f.looks) {
		least, f.by = any, byAnyDelay
	}
	return least
}
