package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// mean is a mean with its standard error, null where that is not known.
type mean struct {
	Value ope.Figure `json:"value"`
	SE    ope.Figure `json:"se"`
}

// known reports whether there is a value.
func (m mean) known() bool { return !math.IsNaN(float64(m.Value)) }

// text writes the mean with its error, as far as they are known.
func (m mean) text() string {
	if !m.known() || math.IsNaN(float64(m.SE)) || m.SE == 0 {
		return words.Digits(float64(m.Value))
	}
	return words.WithError(m.Value, m.SE)
}

func (m mean) String() string { return typographic(m.text()) }

// meanOfEstimate returns an estimate as a mean; nil is not known.
func meanOfEstimate(e *replay.Estimate) mean {
	if e == nil {
		return mean{ope.Figure(nan), ope.Figure(nan)}
	}
	return mean{ope.Figure(e.Value), ope.Figure(orNaN(e.SE))}
}

// shown is a mean loss as what the data has.
func (m mean) shown(r *words.Rewards) mean {
	return mean{ope.Figure(r.Shown(float64(m.Value))), ope.Figure(r.Length(float64(m.SE)))}
}

// length is a mean difference of losses as one of what the data has.
func (m mean) length(r *words.Rewards) mean {
	return mean{ope.Figure(r.Length(float64(m.Value))), ope.Figure(r.Length(float64(m.SE)))}
}

// chance reports whether a difference is within twice its standard error.
func (m mean) chance() bool { return math.Abs(float64(m.Value)) <= 2*float64(m.SE) }

// group is one learner under one kind of delays: means over the row orders that were
// played, and standard errors of those means; of one row order that of a weighted mean.
type group struct {
	Learner  string     `json:"learner"`
	Delays   string     `json:"delays"`
	Orders   int        `json:"orders"`
	Rounds   int64      `json:"rounds"`
	Loss     mean       `json:"mean_loss"` // of a log with propensities weighted (SNIPS)
	Regret   mean       `json:"regret"`    // null where the truth is not known
	Matched  ope.Figure `json:"matched"`   // share of rounds in which the recorded action was drawn; null: no log
	Skipped  ope.Figure `json:"skipped"`   // share of waiting rounds (of a log: matched) without an outcome in time
	Raw      ope.Figure `json:"delay_raw"` // mean delay as outcomes came, in rounds
	Released ope.Figure `json:"delay_released"`
	Bound    ope.Figure `json:"bound"`       // of the sharpest kind on regret; null: none, vacuous, or void
	Void     string     `json:"void"`        // what voids a bound, class refuted; "": nothing
	Cost     mean       `json:"delays_cost"` // loss above that of the same learner without delay, paired by row order
	Speed    ope.Figure `json:"rounds_per_second"`

	state string // of a bound without a figure
}

// standing is how a judged policy stands.
type standing struct {
	Policy string     `json:"policy"`
	Plays  string     `json:"plays"`     // in words
	ESS    ope.Figure `json:"ess_share"` // of the rows
	// its DR estimate less that of the policy that made the log; null if that was not judged
	Lift ope.Figure `json:"dr_above_logging"`
}

// Summarise sets what is made of runs and policies.
func (r *Results) Summarise() {
	r.Summary, r.Standings = []group{}, []standing{}
	groups := groupsOf(r.Runs)
	for _, g := range groups {
		r.Summary = append(r.Summary, summary(g, groups))
	}
	for _, p := range r.Policies {
		s := standing{Policy: p.Policy, Plays: r.plays(specOf(p)), ESS: p.ESS / ope.Figure(max(p.Rows, 1)),
			Lift: ope.Figure(nan)}
		if logging := r.logging(p); logging != nil {
			s.Lift = ranking(p).Value - ranking(logging).Value
		}
		r.Standings = append(r.Standings, s)
	}
}

// summary summarises the runs of a group.
func summary(g []*replay.Result, all [][]*replay.Result) group {
	mean := func(of func(*replay.Result) float64) mean {
		values := make([]float64, len(g))
		for i, r := range g {
			values[i] = of(r)
		}
		return meanOf(values)
	}
	s := group{Learner: g[0].Learner, Delays: g[0].Delays.Spec, Orders: len(g), Rounds: g[0].Rounds, Loss: lossOf(g),
		Cost: costOf(g, undelayed(g, all))}
	s.Regret = mean(func(r *replay.Result) float64 { return orNaN(r.Regret) })
	s.Matched = mean(func(r *replay.Result) float64 {
		if r.Matched == nil {
			return nan
		}
		return float64(*r.Matched) / float64(max(r.Rounds, 1))
	}).Value
	s.Skipped = mean(func(r *replay.Result) float64 {
		return float64(r.Fates.Skipped) / float64(max(r.Waited(), 1))
	}).Value
	s.Raw = mean(func(r *replay.Result) float64 { return r.Delays.Raw.Mean }).Value
	s.Released = mean(func(r *replay.Result) float64 { return r.Delays.Released.Mean }).Value
	s.Speed = mean(func(r *replay.Result) float64 { return r.RoundsPerSecond }).Value
	bound, state := groupBound(g)
	s.Bound, s.state = ope.Figure(bound), state
	for _, r := range g {
		for _, x := range r.Certificate.Bounds() {
			s.Void = cmp.Or(s.Void, x.Void)
		}
	}
	return s
}

func orNaN(x *float64) float64 {
	if x == nil {
		return nan
	}
	return *x
}

// meanOf is the mean of values with its standard error, NaN where one is; of one value there is no error.
func meanOf(values []float64) mean {
	e := replay.NewEstimate(values)
	return meanOfEstimate(&e)
}

// lossOf is what a group lost a round: the error is over row orders, or of a weighted mean.
func lossOf(g []*replay.Result) mean {
	values := make([]float64, len(g))
	for i, r := range g {
		values[i], _ = r.Value()
	}
	m := meanOf(values)
	if len(g) == 1 {
		_, se := g[0].Value()
		m.SE = ope.Figure(se)
	}
	return m
}

// undelayed returns the group of the same learner without delays, nil if there is no other.
func undelayed(g []*replay.Result, all [][]*replay.Result) []*replay.Result {
	for _, none := range all {
		if none[0].Learner == g[0].Learner && none[0].Delays.Spec == "none" && none[0] != g[0] {
			return none
		}
	}
	return nil
}

// costOf is what delays cost a group, paired by row order; of one order the error is that of two weighted means.
func costOf(g, none []*replay.Result) mean {
	without := map[int]*replay.Result{} // an interrupted backtest has some orders of the one and of the other
	for _, r := range none {
		without[r.Order] = r
	}
	var diffs []float64
	se := nan
	for _, r := range g {
		if pair := without[r.Order]; pair != nil {
			x, xe := r.Value()
			y, ye := pair.Value()
			diffs, se = append(diffs, x-y), math.Hypot(xe, ye)
		}
	}
	if len(diffs) == 0 {
		return mean{ope.Figure(nan), ope.Figure(nan)}
	}
	m := meanOf(diffs)
	if len(diffs) == 1 {
		m.SE = ope.Figure(se)
	}
	return m
}

// plays says in words what a policy does that is named as --policy names it.
func (r *Results) plays(spec string) string {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "logging":
		return "the actions of the log"
	case "uniform":
		return "each eligible action with the same probability"
	case "baseline":
		return "the action that each event names as its baseline" + r.baselines()
	case "always":
		return "the action " + rest + ", if it is eligible"
	case "hash":
		return "one action for each value of " + rest + ", chosen by a hash: a stand-in for any fixed rule"
	case "eps":
		if e, of, ok := strings.Cut(rest, ","); ok {
			return "with probability " + e + " a uniformly random action, else: " + r.plays(of)
		}
	case "learner":
		return rest + ", which learns each row after it is judged on it"
	case "model":
		return "the learner of " + rest + ", which learns each row after it is judged on it"
	case "snapshot":
		return "the learner of the live system as it was at that moment; it learns no more"
	case "table":
		return "the probabilities saved in " + rest
	}
	return ""
}

// baselines says how many events name their baseline, if that is known.
func (r *Results) baselines() string {
	if r.Intake == nil || r.Intake.Events == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s of %s events do), else its first action", words.Count(r.Intake.Baselines),
		words.Count(r.Intake.Events))
}

// States of the bound of a group that has no figure.
const (
	noBound      = "none"
	voidBound    = "void"
	vacuousBound = "vacuous"
)

// groupBound returns the mean of the sharpest bounds of runs that differ in their row orders;
// state says what one of them is instead, "" if each is a figure.
func groupBound(g []*replay.Result) (mean float64, state string) {
	sum := 0.0
	for _, r := range g {
		switch b, ok := r.Certificate.Sharpest(); {
		case !ok:
			return math.NaN(), noBound
		case b.Void != "":
			state = voidBound
		case b.Vacuous:
			state = cmp.Or(state, vacuousBound)
		default:
			sum += *b.Value
		}
	}
	if state != "" {
		return math.NaN(), state
	}
	return sum / float64(len(g)), ""
}

// groupsOf collects the runs of the same learner and delays, which differ in their row
// orders, in the order in which each first comes.
func groupsOf(runs []replay.Result) [][]*replay.Result {
	var out [][]*replay.Result
	at := map[[2]string]int{}
	for i := range runs {
		r := &runs[i]
		key := [2]string{r.Learner, r.Delays.Spec}
		g, ok := at[key]
		if !ok {
			g = len(out)
			at[key] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], r)
	}
	return out
}
