// Package certify says what is guaranteed of a learner's regret, under which assumptions,
// and whether they hold: for the summary of a run and for the page of a live system
// (docs/algorithms.md, section 5). Its types are the JSON of both.
package certify

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"hindsight/internal/latelosses"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Bound is a bound on regret. Vacuous: it is at least T, which bounds the regret of any policy. Value is nil where it
// is infinite, and where the bound is void: Void names what voids it.
type Bound struct {
	Value   *float64 `json:"value"`
	Vacuous bool     `json:"vacuous"`
	// class refuted: it needs a truth in the class; delays depend on losses: it needs that they do not
	Void string `json:"void,omitempty"`
}

// NewBound judges a bound against the number T of rounds.
func NewBound(x float64, rounds int64) *Bound {
	b := &Bound{Vacuous: !(x < float64(rounds))}
	if !math.IsInf(x, 0) && !math.IsNaN(x) {
		b.Value = &x
	}
	return b
}

// SetBound is a bound from the functions of a finite class that survive, of Functions so
// many. With probability at least 1−Alpha it holds at all times at once.
type SetBound struct {
	Bound
	Alpha     float64 `json:"alpha"`
	Surviving int     `json:"surviving"`
	Functions int     `json:"functions"`
	// MissingAtRandom is the bound where rounds skipped and imputed are not charged 1 each,
	// but what they cost by the functions; it takes silence not to depend on the loss.
	MissingAtRandom *float64 `json:"missing_at_random"`
}

// RiskBound is a bound that holds at all times at once with probability at least 1−Alpha.
type RiskBound struct {
	Bound
	Alpha float64 `json:"alpha"`
}

// Certificate holds what bounds the regret of the T rounds so far, withdrawn ones left out,
// by kind, the sharpest first; kinds that a learner does not have are nil.
type Certificate struct {
	T            int64     `json:"t,omitempty"`
	PlausibleSet *SetBound `json:"plausible_set,omitempty"` // with probability 1−α
	Measured     *Bound    `json:"measured,omitempty"`      // of policies: ΣL − min Ĉ, in expectation
	// with probability 1−α: what was lost, as if the best lost nothing
	RealisedLoss  *RiskBound `json:"realised_loss,omitempty"`
	MeasuredDrift *Bound     `json:"measured_drift,omitempty"` // in expectation
	APriori       *Bound     `json:"a_priori,omitempty"`       // in expectation
	// ExplorationCost is Σ(K−μ)/γ: what exploring cost so far by the model's own belief.
	ExplorationCost *float64 `json:"exploration_cost,omitempty"`
	// Drift is Σ p·g − min g, what the oracle moved while decisions waited for it cost: a
	// part of MeasuredDrift, 0 without delay.
	Drift *float64 `json:"drift,omitempty"`
	// Changes are those that the oracle noticed; nil if it watches for none. Other figures are
	// sums over the stretches between them, which are one more than changes.
	Changes     *oracle.Changes `json:"changes,omitempty"`
	Assumptions []Assumption    `json:"assumptions,omitempty"`
	// Notes say in sentences on what the bounds stand, and what does not hold.
	Notes []string `json:"notes,omitempty"`
}

// KindOfBound is a bound of a certificate with its kind.
type KindOfBound struct {
	Kind  string // as in JSON
	Holds string // how, in words
	*Bound
}

// Name returns the kind in words.
func (b *KindOfBound) Name() string { return strings.ReplaceAll(b.Kind, "_", " ") }

// Bounds returns the bounds that there are, the sharpest kind first.
func (c *Certificate) Bounds() (out []KindOfBound) {
	add := func(kind, holds string, b *Bound) {
		if b != nil {
			out = append(out, KindOfBound{kind, holds, b})
		}
	}
	if p := c.PlausibleSet; p != nil {
		add(KindPlausibleSet, fmt.Sprintf("with probability %v, while the truth is in the class", 1-p.Alpha), &p.Bound)
	}
	add(kindMeasured, "in expectation, against the best policy of the class", c.Measured)
	if r := c.RealisedLoss; r != nil {
		add(KindRealisedLoss, fmt.Sprintf("with probability %v, whatever the truth is", 1-r.Alpha), &r.Bound)
	}
	add(kindMeasuredDrift, "in expectation, with the drift that was measured", c.MeasuredDrift)
	priori := "in expectation, known before the run but for the delays"
	if slices.ContainsFunc(c.Assumptions, func(a Assumption) bool { return a.Name == blindDelays }) {
		priori += ", while these are blind to losses that have not come"
	}
	add(kindAPriori, priori, c.APriori)
	return out
}

// Sharpest returns the bound of the sharpest kind that there is, whatever it says: kinds are chosen
// before the run, so that it holds as it says. ok is false if there are no bounds.
func (c *Certificate) Sharpest() (b KindOfBound, ok bool) {
	bounds := c.Bounds()
	if len(bounds) == 0 {
		return b, false
	}
	return bounds[0], true
}

// Options are what a learner does not know of its run.
type Options struct {
	Rounds      int64                    // released, withdrawn ones left out; 0: as many as the learner counted
	Outstanding int64                    // decided, but not released
	Decided     iter.Seq[*learner.Round] // of these, those that can be evaluated; nil, and the others: charged 1 each
	Arrival     bool                     // feedback is in the order of arrival
	Early       bool                     // that of rounds decided early is
	Late        *latelosses.Comparison   // nil: not measured here
}

// Of returns the certificate of a learner.
func Of(l learner.Learner, o Options) Certificate {
	c := of(l, &o)
	if changes, ok := learner.Changes(l); ok {
		c.change(changes)
	}
	return c
}

func of(l learner.Learner, o *Options) Certificate {
	switch l := l.(type) {
	case interface {
		PolicyCertificate() learner.PolicyCertificate
	}:
		return ofPolicies(l.PolicyCertificate(), o)
	case learner.Certified:
		evidence := 0.0
		if w, ok := l.(interface{ Models() *learner.Models }); ok && w.Models() != nil {
			evidence = w.Models().Evidence()
		}
		return ofRegression(certificateOf(l, o), evidence, o)
	}
	return Certificate{Notes: []string{"this learner has no certificate"}}
}

// certificateOf returns that of a learner, with the rounds that were decided and can be evaluated.
func certificateOf(l learner.Certified, o *Options) learner.Certificate {
	c := l.Certificate()
	if d, ok := l.(*learner.DAFA); ok && o.Decided != nil {
		c.Plausible = d.Decided(o.Decided)
	}
	return c
}

func ofRegression(c learner.Certificate, evidence float64, o *Options) Certificate {
	t, wait := o.total(c.Rounds), float64(o.Outstanding)
	f := figuresOf(&c, o)
	bound := func(kind string) *Bound { return f.bound(kind, t) }
	out := Certificate{T: t, MeasuredDrift: bound(kindMeasuredDrift), APriori: bound(kindAPriori),
		ExplorationCost: &c.Explored, Drift: &c.Drift}
	p := &c.Plausible
	if p.Functions > 0 {
		out.PlausibleSet = &SetBound{Bound: *bound(KindPlausibleSet),
			Alpha: p.Alpha, Surviving: p.Surviving, Functions: p.Functions}
		if out.PlausibleSet.Void == "" {
			out.PlausibleSet.MissingAtRandom = NewBound(p.Random+wait-float64(p.Ahead), t).Value
		}
	}
	linear := c.Linear.Lambda > 0
	if c.Counted {
		out.RealisedLoss = &RiskBound{*bound(KindRealisedLoss), learner.DefaultAlpha}
		out.note("the bound by realised loss stands whatever the truth is")
	}
	out.Assumptions = []Assumption{losses(), realizability(p, evidence, c.Bounded, linear), order(o, p),
		missing(c.Skipped), silence(c.Imputed, p.Functions > 0), late(o.Late)}
	switch {
	case f.void(kindAPriori) != "":
	case f.by == byAdditive:
		out.Assumptions = append(out.Assumptions, blind(o.Late))
		if linear {
			break
		}
		out.note("a priori: the additive bound, θ = %v, rounds decided with more than %d outstanding charged 1 each; "+
			"both are chosen from a grid by the delays seen: an estimate, unless delays are fixed beforehand",
			f.at.Theta, f.at.Late)
	case f.by == byAnyDelay:
		out.note("a priori: the bound for any delays, which may look at losses")
	}
	switch {
	case f.Refuted:
		out.note("the class is refuted at level %v: no function of it is the truth, and the bounds that need one are "+
			"void", p.Alpha)
	case f.looks && c.Bounded:
		out.note("delays depend on losses: " + latelosses.Arrival)
	case linear:
		out.note("measured drift and a priori hold in expectation if losses are linear in the features; rounds "+
			"decided with less than half the determinant, which a priori may charge 1 each: %d", c.Linear.Bad)
	case c.Bounded:
		out.note("measured drift and a priori hold in expectation if the class contains the truth (realizability)")
	default:
		out.note("no theorem: the oracle's regret %.4g is measured, not bounded", c.Regret)
	}
	out.notes(p, &c, o)
	return out
}

// looks reports whether delays depend on losses, as far as is known.
func (o *Options) looks() bool { return o.Late != nil && o.Late.Differ }

// total returns T.
func (o *Options) total(counted int64) int64 {
	if o.Rounds > 0 {
		counted = o.Rounds
	}
	return counted + o.Outstanding
}

// notes adds what is amiss.
func (c *Certificate) notes(p *learner.Plausible, s *learner.Certificate, o *Options) {
	if s.Eliminates {
		c.note("actions that no surviving function thinks best are never played: all bounds hold only while the " +
			"truth survives, and what is given up is not seen in them")
	}
	if s.Priced {
		c.note("the law charges for costs at the prices of the budgets: drift and exploration are those of loss + " +
			"price × cost, no more, and say nothing of the budgets")
	}
	if s.Skipped > 0 {
		c.note("conditional on outcomes missing at random (rounds skipped and charged 1 each: %d)", s.Skipped)
	}
	if s.Imputed > 0 {
		text := "void if silence depends on the loss (losses imputed: %d)"
		if p.Functions > 0 {
			text = "measured drift and a priori are void if silence depends on the loss (losses imputed: %d; in the " +
				"plausible set each is charged 1 and is no evidence)"
		}
		c.note(text, s.Imputed)
	}
	switch {
	case p.Ahead > 0:
		c.note("rounds decided and not yet released: %d, charged 1 each; in the plausible set %d of them cost what "+
			"its functions say", o.Outstanding, p.Ahead)
	case o.Outstanding > 0:
		c.note("rounds decided and not yet released are charged 1 each: %d", o.Outstanding)
	}
}

// change adds what the oracle noticed.
func (c *Certificate) change(changes oracle.Changes) {
	c.Changes = &changes
	a := Assumption{stillness, NotRefuted, "what is played does not lose more than predicted"}
	if text := c.Changed(); text != "" {
		a.State, a.Detail = refuted, text
		c.note("figures are sums over the stretches between alarms (%d), and compare with one best function for all "+
			"rounds, which then does not exist", changes.Count+1)
	} else {
		changes.Last = []oracle.Change{}
	}
	a.Detail += fmt.Sprintf("; between two changes a false alarm has probability at most %v, if the expected loss of "+
		"what is played is at most the predicted", oracle.ChangeAlarms)
	c.Assumptions = append(c.Assumptions, a)
}

// Changed says how often regressions were started anew, and when; "" if never.
func (c *Certificate) Changed() string {
	if c.Changes == nil || c.Changes.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("what was played lost more than predicted, and regressions were started anew (%d); the last "+
		"after learned rounds", c.Changes.Count)
	for _, x := range c.Changes.Last[max(0, len(c.Changes.Last)-4):] {
		of := ""
		if x.Outcome != "" {
			of = x.Outcome + " of "
		}
		text += fmt.Sprintf(" %d (%s%s)", x.Example, of, cmp.Or(x.Action, "all actions"))
	}
	return text
}

func ofPolicies(c learner.PolicyCertificate, o *Options) Certificate {
	t, f := o.total(c.Rounds), figuresOfPolicies(&c, o)
	bound := func(kind string) *Bound { return f.bound(kind, t) }
	out := Certificate{T: t, Measured: bound(kindMeasured), MeasuredDrift: bound(kindMeasuredDrift),
		APriori: bound(kindAPriori)}
	if f.looks {
		out.note("delays depend on losses: with order: arrival all bounds are void; use order: fifo, whose bounds " +
			"allow it")
	}
	out.Assumptions = []Assumption{losses(), {Name: Realizability, State: NotNeeded,
		Detail: "regret is against the best policy of the class"},
		policyOrder(o), missing(c.Skipped), silence(c.Imputed, false), late(o.Late)}
	out.note("in expectation, against the best policy of the class, for losses that do not depend on the draw of " +
		"their round")
	out.notes(&learner.Plausible{}, &learner.Certificate{Skipped: c.Skipped, Imputed: c.Imputed}, o)
	return out
}

func (c *Certificate) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}
