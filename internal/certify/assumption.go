package certify

import (
	"fmt"

	"hindsight/internal/latelosses"
	"hindsight/pkg/learner"
)

// Assumption is one on which bounds stand, and its state.
type Assumption struct {
	Name   string `json:"assumption"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

// Names of assumptions.
const (
	Losses        = "losses in [0,1]"
	Realizability = "realizability"
	Order         = "order"
	atRandom      = "missing at random"
	Silence       = "no losses imputed"
	stillness     = "predictions go on to hold"
	blindDelays   = "delays are blind to losses that have not come"
	LateLosses    = "those that came late are like the others"
)

// States of assumptions.
const (
	Enforced   = "enforced"    // it cannot fail
	Holds      = "holds"       // counted: it did not fail
	NotRefuted = "not refuted" // tested, and the test has not spoken
	assumed    = "assumed"     // nothing here can test it
	Measured   = "measured"    // it is not needed: what it would give is measured
	NotNeeded  = "not needed"
	refuted    = "refuted" // bounds that need it do not hold
	Void       = "void"    // as refuted
)

func losses() Assumption {
	return Assumption{Losses, Enforced, "what is out of range is rejected, or clipped"}
}

func realizability(p *learner.Plausible, evidence float64, bounded, linear bool) Assumption {
	a := Assumption{Name: Realizability}
	switch {
	case p.Functions == 0 && !bounded:
		a.State, a.Detail = assumed, "that losses are linear in the features, as this oracle sees them; nothing "+
			"watches it, and no bound is proved"
	case linear:
		a.State, a.Detail = assumed, "that losses are linear in the features, with values in [0,1] wherever these lie "+
			"in their bounds; nothing watches it"
	case p.Functions == 0:
		a.State, a.Detail = assumed, "that a function of the class is the truth; nothing watches it"
	case p.Raised > 0:
		a.State, a.Detail = refuted, fmt.Sprintf("at level %v, by feedback %d", p.Alpha, p.Raised)
	case p.Refuted():
		a.State, a.Detail = refuted, fmt.Sprintf("at level %v: no function survives", p.Alpha)
	case !p.Alarm:
		a.State, a.Detail = assumed, fmt.Sprintf("the alarm is off; functions that survive at level %v: %d of %d",
			p.Alpha, p.Surviving, p.Functions)
	default:
		a.State = NotRefuted
		a.Detail = fmt.Sprintf("at level %v: evidence %.3g, the alarm is raised at %.4g; %d of %d functions survive",
			p.Alpha, evidence, 1/p.Alpha, p.Surviving, p.Functions)
	}
	return a
}

func order(o *Options, p *learner.Plausible) Assumption {
	const arrival = "feedback is in the order of arrival: the drift is measured, and delays must not depend on " +
		"losses or draws"
	switch {
	case o.Arrival && p.Functions > 0:
		return Assumption{Order, Measured, fmt.Sprintf(arrival+"; the plausible set takes rounds in the order of "+
			"decisions and asks for neither: rounds that came before their turn, charged 1 each until then: %d",
			p.Waiting)}
	case o.Arrival:
		return Assumption{Order, Measured, arrival + "; no plausible set is kept"}
	case o.Early:
		return Assumption{Order, Measured, "feedback of rounds decided while more than a third of the earlier ones " +
			"were outstanding is in the order of arrival: the drift is measured, and their delays must not depend on " +
			"losses or draws; other feedback is in the order of decisions"}
	}
	return Assumption{Order, Enforced, "FIFO: feedback is in the order of decisions; with several partitions " +
		"contexts must not react to draws of rounds still ahead"}
}

// policyOrder is order for policies, whose weights take feedback in any order.
func policyOrder(o *Options) Assumption {
	if o.Arrival {
		return Assumption{Order, assumed, "feedback is in the order of arrival: delays must not depend on losses or " +
			"draws"}
	}
	return Assumption{Order, Enforced, "FIFO: feedback is in the order of decisions, and delays may depend on losses " +
		"and draws"}
}

func missing(skipped int64) Assumption {
	if skipped == 0 {
		return Assumption{atRandom, Holds, "no round was skipped"}
	}
	return Assumption{atRandom, assumed, fmt.Sprintf("rounds skipped and charged 1 each: %d; whether they depend on "+
		"the loss is not known", skipped)}
}

func silence(imputed int64, set bool) Assumption {
	switch {
	case imputed == 0:
		return Assumption{Silence, Holds, "none was"}
	case set:
		return Assumption{Silence, Void, fmt.Sprintf("losses imputed: %d; in the plausible set each is charged 1 and "+
			"is no evidence, the other bounds are void if silence depends on the loss", imputed)}
	}
	return Assumption{Silence, Void,
		fmt.Sprintf("losses imputed: %d; the bounds are void if silence depends on the loss", imputed)}
}

func late(l *latelosses.Comparison) Assumption {
	switch {
	case l == nil:
		return Assumption{LateLosses, assumed, "not measured here: the joiner measures them"}
	case l.Late.N == 0:
		return Assumption{LateLosses, Holds, "none was late"}
	case l.Differ:
		return Assumption{LateLosses, refuted, lateText(l) + ": what is missing depends on the loss"}
	}
	return Assumption{LateLosses, NotRefuted, lateText(l)}
}

func lateText(l *latelosses.Comparison) string {
	if l.Outcome != "" {
		return "mean loss by " + l.Outcome + " alone " + l.Line(nil)
	}
	return "mean loss " + l.Line(nil)
}

// blind is what the additive bound needs of delays; the late-loss test is what there is to measure it.
func blind(l *latelosses.Comparison) Assumption {
	if l == nil || l.Late.N == 0 {
		return Assumption{blindDelays, assumed, "no loss came after its window, so nothing measures it"}
	}
	return Assumption{blindDelays, NotRefuted, "by the losses that came after the window: " + lateText(l)}
}
