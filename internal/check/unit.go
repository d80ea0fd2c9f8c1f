package check

import (
	"slices"

	"hindsight/pkg/codec"
)

// ofUnit is the name of the last draw of a unit among the ids of rounds: no id begins so.
func ofUnit(unit string) string { return "\x00" + unit }

// checkUnit checks that a decision is of the unit that its context names, that a repeat is what the draw of its unit
// is, which holds, and that no draw is made while an earlier one holds.
func (c *checker) checkUnit(where string, d *round, was *line) {
	if d.Unit != "" {
		was.clock = max(was.clock, d.Time)
	}
	draws := d.Unit != "" && d.First.N == 0 && d.Mode != codec.External
	first := was.draws[d.Unit]
	if draws {
		was.draws[d.Unit] = d
	}
	e := c.epochs[d.Epoch]
	if e == nil || e.rules == nil {
		return
	}
	var x codec.Context
	if codec.ParseContext(&x, d.Context) != nil {
		return // said elsewhere
	}
	unit := x.Unit
	if e.rules.Sticky == 0 {
		unit = ""
	}
	if d.Unit != unit {
		c.fail("%s: round %d is of unit %q, its context of %q", where, d.N, d.Unit, unit)
	}
	if d.Unit == "" || d.Mode == codec.External {
		if d.First.N > 0 {
			c.fail("%s: round %d repeats %+v, and is of no unit", where, d.N, d.First)
		}
		return
	}
	switch holds := first != nil && was.clock-first.Time < e.rules.Sticky && c.holds(first, d); {
	case draws && holds:
		c.fail("%s: round %d is drawn anew for unit %q, whose draw in round %d holds", where, d.N, d.Unit, first.N)
	case d.First.N > 0 && !holds:
		c.fail("%s: round %d repeats %+v for unit %q, whose last draw does not hold: %+v", where, d.N, d.First,
			d.Unit, first)
	case d.First.N > 0 && (d.First != codec.RoundRef{Partition: d.Partition, N: first.N} || d.Action != first.Action ||
		d.Gamma != first.Gamma || !slices.Equal(d.Propensities, first.Propensities) ||
		!slices.Equal(d.Would, first.Would)):
		c.fail("%s: round %d is %+v, and the draw of unit %q is %+v", where, d.N, d.Decision, d.Unit, first.Decision)
	}
}

// holds reports whether the last draw of a unit, which is in time, holds for a decision: it is of the same learner and
// mode, and for the same actions.
func (c *checker) holds(first, d *round) bool {
	since := d.Epoch
	if e := c.epochs[d.Epoch]; e.rec.Continues > 0 {
		since = e.rec.Continues
	}
	return first.Epoch >= since && first.Mode == d.Mode && slices.Equal(first.Actions, d.Actions)
}
