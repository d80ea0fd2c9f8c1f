package replay

import (
	"math"

	"hindsight/internal/ope"
)

// Digits writes a figure for people with four significant digits, or all before the
// point.
func Digits(x float64) string { return digits(x) }

// Short writes an error with two significant digits.
func Short(x float64) string { return short(x) }

// Count writes a whole number with commas.
func Count(n int64) string { return count(n) }

// Percent writes a share.
func Percent(x float64) string { return percent(x) }

// WithError writes a value with as many decimals as its standard error has.
func WithError(value, se float64) string { return withError(ope.Figure(value), ope.Figure(se)) }

// Groups collects the runs of the same learner and delays, which differ in their row
// orders, in the order in which each first comes.
func Groups(runs []Result) [][]*Result { return groups(runs) }

// Warning says that losses which came late differ from those in time, "" if they do not.
func (l *LateLosses) Warning() string { return l.warning() }

// Value returns what a learner lost a round: of a log with propensities the weighted mean
// (SNIPS), else the mean of what was played; NaN if nothing is known. se is the standard
// error of a weighted mean, else NaN.
func (r *Result) Value() (loss, se float64) {
	switch {
	case r.Replay != nil:
		return float64(r.Replay.SNIPS.Value), float64(r.Replay.SNIPS.SE)
	case r.MeanLoss != nil:
		return *r.MeanLoss, math.NaN()
	}
	return math.NaN(), math.NaN()
}
