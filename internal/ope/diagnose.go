package ope

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Evaluation is what a log says of a policy.
type Evaluation struct {
	Policy  string  `json:"policy"`
	Reward  string  `json:"reward,omitempty" csv:"-"` // the formula, where several are judged by
	Rows    int     `json:"rows"`
	Events  float64 `json:"events"`   // that the rows stand for
	Matched int     `json:"matched"`  // rows whose action the policy plays at all
	NonZero int     `json:"non_zero"` // of them, those whose outcome is not 0
	// (Σw)²/Σw², of rows that stand for several events (Σcw)²/Σ(cw)²; null if no row matches
	ESS          Figure    `json:"ess"`
	MaxWeight    Figure    `json:"max_weight"`
	MeanWeight   Figure    `json:"mean_weight"` // about 1 if propensities are right and support is complete
	MeanWeightSE Figure    `json:"mean_weight_se"`
	Overlap      float64   `json:"overlap"`      // mean min(w,1): 1 less the total variation between the policies
	Support      float64   `json:"support"`      // share of the policy's choices that the log played at all
	RewardModel  string    `json:"reward_model"` // q̂: the "mean" of each action, or a "ridge" regression on features
	Flags        []string  `json:"flags"`        // what speaks against believing the estimates, in words
	Estimates    Estimates `json:"estimates"`
	AnyTime      AnyTime   `json:"any_time"`           // of the mean
	Course       *Course   `json:"course,omitempty"`   // over the rows of the log
	Outcomes     []Outcome `json:"outcomes,omitempty"` // that the model names, and its budgets
}

// Thresholds of the flags.
const (
	minESS      = 100
	minESSShare = .01
	minUnits    = 40 // Angrist and Pischke 2009, section 8.2.3
	maxOff      = 3  // standard errors
	rounding    = 1e-9
	printed     = 1e-4 // how far a mean weight may be off because propensities were printed with six digits
)

// diagnose measures the weights and says what is wrong with them.
func (l *look) diagnose(o Options) *Evaluation {
	s := l.s
	n := float64(s.Len())
	e := &Evaluation{Rows: s.Len(), Flags: []string{}}
	for t := range s.all() {
		e.Events += s.events(t)
	}
	sum, square := 0.0, 0.0
	for t := range s.all() {
		w, c := l.w(t), l.c(t)
		if w > 0 {
			e.Matched++
			if s.Reward[t] != 0 {
				e.NonZero++
			}
		}
		sum += float64(c * w)
		square += float64(c * w * c * w)
		e.MaxWeight = max(e.MaxWeight, Figure(w))
		e.Overlap += c * min(w, 1) / n
	}
	mean := sum / n
	e.MeanWeight = Figure(mean)
	e.ESS = Figure(ratio(sum*sum, square))
	deviation := 0.0
	for t := range s.all() {
		d := float64(l.c(t) * (l.w(t) - mean))
		deviation += float64(d * d)
	}
	e.MeanWeightSE = Figure(math.Sqrt(ratio(deviation, n-1) / n))
	missing, actions := l.missing()
	e.Support = 1 - missing
	if e.Rows < o.MinRows {
		e.flag("few events: %d rows, fewer than %d", e.Rows, o.MinRows)
	}
	if s.Unit != nil && s.Units < minUnits {
		e.flag("few units: %d, fewer than %d: intervals by unit are too narrow", s.Units, minUnits)
	}
	e.flagSupport(missing, actions)
	e.flagWeights()
	if e.Matched > 0 && e.NonZero == 0 { // nothing was seen
		e.flag("all %d matched rows have the outcome 0: a standard error of 0 is no certainty", e.Matched)
	}
	return e
}

// missing returns the share of the policy's choices that are actions which the log never played, and how many
// these are.
func (l *look) missing() (share float64, actions int) {
	played := make([]bool, l.s.Actions)
	for t := range l.s.all() {
		played[l.s.Action[t]] = true
	}
	for a, mass := range l.mass {
		if !played[a] && mass > 0 {
			share += mass
			actions++
		}
	}
	return share, actions
}

func (e *Evaluation) flag(format string, args ...any) {
	e.Flags = append(e.Flags, fmt.Sprintf(format, args...))
}

func (e *Evaluation) flagSupport(share float64, actions int) {
	switch {
	case actions == 1:
		e.flag("support missing: the policy plays an action that the log never played, in %s of its choices; nothing "+
			"is known of it", percent(share))
	case actions > 1:
		e.flag("support missing: the policy plays %d actions that the log never played, in %s of its choices; "+
			"nothing is known of them", actions, percent(share))
	}
	if e.Matched == 0 {
		e.flag("no overlap: no row has an action that the policy plays; only DM is an estimate, and it is the reward " +
			"model's guess")
	}
}

func (e *Evaluation) flagWeights() {
	ess := float64(e.ESS)
	switch {
	case e.Matched == 0: // said
	case math.IsNaN(ess):
		e.flag("weights are so large that their effective sample size is no number: propensities as small as the " +
			"log's estimate nothing")
	case ess < minESS:
		e.flag("effective sample size %s is below %d (of %d rows): few rows carry the estimates", short(ess),
			minESS, e.Rows)
	case ess < minESSShare*float64(e.Rows):
		e.flag("effective sample size %s is below 1%% of %d rows: few rows carry the estimates", short(ess), e.Rows)
	}
	off, se := float64(e.MeanWeight)-1, float64(e.MeanWeightSE)
	if math.IsNaN(se) || math.Abs(off) <= max(printed, maxOff*se) {
		return
	}
	side := "above"
	if off < 0 {
		side = "below"
	}
	const why = "propensities are wrong, or the policy plays where the log does not"
	if se <= rounding {
		e.flag("mean weight %s is %s 1 in every row: %s", short(float64(e.MeanWeight)), side, why)
		return
	}
	e.flag("mean weight %s is %s standard errors %s 1: %s", short(off+1), short(math.Abs(off)/se), side, why)
}

// flagModel says which estimators are wrong about the policy that made the log, whose mean is known exactly.
func (e *Evaluation) flagModel(l *look, lambda lambdas) error {
	row := func(t int) terms { return l.logged(t, &lambda) }
	sum := l.sum(row)
	u, err := l.byUnit(row)
	if err != nil {
		return err
	}
	defer u.free()
	known := sum.wr / sum.c
	for i, m := range estimators() {
		if !m.cuts(1, lambda) {
			continue
		}
		off := m.less(func(r *terms) float64 { return r.wr })
		se := l.spreads([]estimator{off}, u, &sum)[0]
		if math.Abs(off.value(&sum)) > max(rounding, maxOff*se) {
			e.flag("%s contradicts what is known exactly: it gives the policy that made the log a mean of %s, which "+
				"was %s; do not believe it here",
				e.Estimates[i].Name, short(m.value(&sum)), short(known))
		}
	}
	return nil
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + "%" }

// SharedFlags are those that each of several policies has.
func SharedFlags(policies []*Evaluation) []string {
	if len(policies) < 2 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(policies[0].Flags), func(f string) bool {
		return slices.ContainsFunc(policies, func(p *Evaluation) bool { return !slices.Contains(p.Flags, f) })
	})
}
