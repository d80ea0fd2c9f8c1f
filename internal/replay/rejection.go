package replay

import (
	"errors"
	"fmt"
	"math"

	"hindsight/internal/dataset"
	"hindsight/internal/ope"
	"hindsight/internal/random"
)

// Replay is what a log with propensities says of a learner that was replayed on it: its mean loss in [0,1] over the
// policies that it had from row to row, unbiased except for the rows that it met: it learned from those alone.
//
// A row whose recorded action the learner drew is accepted with probability min(1, c/p) and weighs 1/min(p, c). Where a
// row stands for s events, since others were dropped, p is the propensity over s: the probability that this action was
// played and is in the log. With the smallest p as c that is rejection sampling: all weights are equal, and what the
// learner met is what it would have met live, in fewer rounds (Li, Chu, Langford, Wang, 2011, Unbiased Offline
// Evaluation, for uniform p). With c = 1 every match counts: more rounds, but contexts and actions that the logging
// policy preferred, or that were dropped less, are over-represented in what it learned from.
type Replay struct {
	Accept float64      `json:"accept"` // c
	Rounds int64        `json:"rounds"` // accepted, with an outcome
	ESS    ope.Figure   `json:"ess"`
	IPS    ope.Estimate `json:"ips"`   // Σ w·l / n over rows with an outcome, which stand for n events
	SNIPS  ope.Estimate `json:"snips"` // Σ w·l / Σ w
}

// replaySums are running sums over the rows of a log that have an outcome; s is how many
// events a row stands for. Errors are of units: all rows of one are one term.
type replaySums struct {
	units, events, squares float64 // Σ1, Σs, Σs²
	swl                    float64 // Σ s·w·l of those accepted
	ope.Weighted                   // rows accepted
	byUnit                 ope.Weighted
	of                     []replayUnit // the last is of a row without a unit
}

// replayUnit are the sums of one unit: Σs, and of its rows accepted.
type replayUnit struct {
	events float64
	sums   ope.UnitSums
}

// unit returns the sums of the unit of a row.
func (r *replaySums) unit(log *dataset.Table, row int) *replayUnit {
	if r.of == nil {
		r.of = make([]replayUnit, log.Units+1)
	}
	if log.Unit != nil && log.Unit[row] >= 0 {
		return &r.of[log.Unit[row]]
	}
	last := &r.of[log.Units]
	*last = replayUnit{}
	return last
}

// row counts a row that has an outcome.
func (r *replaySums) row(u *replayUnit, s float64) {
	if u.events == 0 {
		r.units++
	}
	r.events += s
	r.squares += s * (s + 2*u.events)
	r.swl += s * u.sums[1]
	u.events += s
}

// accept counts it if it is accepted.
func (r *replaySums) accept(u *replayUnit, weight, loss float64) {
	r.swl += u.events * weight * loss
	r.Add(weight, loss)
	r.byUnit.AddOf(&u.sums, weight, loss)
}

// result returns the estimates; those of no row are null. IPS is the ratio Σwl/Σs, whose terms are w·l − s·IPS.
func (r *replaySums) result(accept float64) *Replay {
	ips, u := r.WL/r.events, &r.byUnit
	square := max(0, u.WWLL-2*ips*r.swl+ips*ips*r.squares)
	se := math.Sqrt(square*r.units/(r.units-1)) / r.events
	return &Replay{Accept: accept, Rounds: r.N, ESS: ope.Figure(r.W * r.W / r.WW),
		IPS: ope.Normal("ips", ips, se), SNIPS: ope.Normal("snips", r.Mean(), u.Spread())}
}

// ErrNoPropensities is that of data on which no policy can be judged.
var ErrNoPropensities = errors.New("policies are judged on logs with propensities, and this data has none; name " +
	"their column: --propensity-column")

// Accepting returns the rounds of a log with propensities such that replay accepts rows by c: 1 all, 0 by the smallest
// propensity. Which ones is drawn from the seed. Other rounds are returned as they are, if c is 1.
func Accepting(r *Rounds, c float64, seed uint64) (*Rounds, error) {
	if !(c >= 0 && c <= 1) {
		return nil, fmt.Errorf("%v: expected a propensity in (0, 1], or 0 for the smallest of the log", c)
	}
	if c == 1 {
		return r, nil
	}
	if !r.HasPropensities() {
		return nil, ErrNoPropensities
	}
	log, err := r.Log.Accepting(c, random.New(seed, "accept"))
	out := *r
	out.Log, out.table = log, log
	return &out, err
}
