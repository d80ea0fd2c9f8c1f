package dataset

import (
	"fmt"
	"math"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/scan"
	"hindsight/internal/spill"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// finish sorts the rows, drops those that do not count, and decides what the log has.
func (l *eventLoader) finish() (*Table, error) {
	l.in.Unmatched = l.waits
	l.in.Forgotten = l.in.Forgotten || l.early.Forgot()
	keep := l.keep()
	if keep.n == 0 && l.schema != nil {
		return nil, l.in.noRows(l.schema.File)
	} else if keep.n == 0 {
		return nil, l.in.nothing(l.log.Name)
	}
	if l.arrange(keep); l.log.files.Err != nil {
		return nil, l.log.files.Err
	}
	b := l.log
	if keep.n < len(l.kept.flags.All) {
		l.again()
	}
	k := len(b.Actions)
	l.rows.largest = l.sets[1]
	if l.bare {
		l.rows.largest = k
	}
	if !l.inSets && (l.sets[1] == 0 || l.sets == [2]int{k, k}) {
		l.rows.slots = nil
	}
	l.in.Sets, l.in.Actions, l.in.Rows = l.rows.slots != nil, k, int64(keep.n)
	b.Columns = len(l.cols) + 1
	for _, c := range b.columns {
		if b.Arms && c.ngrams {
			b.Columns += oracle.TextStatistics
		}
	}
	if l.schema != nil {
		l.finishGrid()
	}
	if b.Kind == 0 {
		b.Kind = codec.Loss
	}
	if b.Scale = l.o.Range; b.Scale == (loop.Range{}) {
		b.Scale = b.valueRange()
		if math.IsInf(b.Scale.Max-b.Scale.Min, 1) {
			return nil, fmt.Errorf("%s: each %s lies in [%v, %v], which is too wide: correct them, or name a range by "+
				"--model FILE with, for example, %[2]s: {min: 0, max: 1, clip: true}", b.Name, b.Kind, b.Scale.Min,
				b.Scale.Max)
		}
	}
	return b, nil
}

// valueRange returns [0,1], or where that does not hold all values of rows from the least to the largest.
func (b *Table) valueRange() loop.Range {
	low, high := math.Inf(1), math.Inf(-1)
	for t, v := range b.Value {
		if b.files.Pass(t); !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	switch {
	case low >= 0 && high <= 1 || low > high:
		return loop.Range{Min: 0, Max: 1}
	case low == high:
		high = max(high+1, math.Nextafter(high, math.Inf(1)))
	}
	return loop.Range{Min: low, Max: high}
}

// again finds what the rows that are kept have, where others were dropped: actions, their features, columns.
func (l *eventLoader) again() {
	was := l.log.Actions
	l.log.Actions, l.rows.index, l.inSets, l.sets, l.bare = nil, map[string]int32{}, false, [2]int{}, false
	l.in.Featured, l.cols = false, map[string]struct{}{}
	for _, a := range l.o.Actions {
		l.actionIndex(a)
	}
	var c codec.Context
	for t, a := range l.log.Action {
		l.log.files.Pass(t)
		l.rows.parse(&c, t)
		r := logs.Record{Actions: c.Actions, Action: was[a], Chosen: int(l.rows.slots[t])}
		l.log.Action[t], l.rows.slots[t] = l.play(&r)
		l.columns(c.Features)
	}
}

// arrange leaves the rows that are replayed in the log: in the order of time where every one has a time.
func (l *eventLoader) arrange(keep keptRows) {
	c, anyTime, timeless := l.kept, false, int64(0)
	for t := range c.flags.All {
		l.log.files.Pass(t)
		if c.dropped(t) || math.IsNaN(c.value.All[t]) || c.flags.All[t]&rowDefaulted != 0 {
			continue
		}
		if c.came.All[t] == scan.NoTime {
			timeless++
			c.came.All[t] = c.decided.All[t]
		} else {
			anyTime = true
		}
	}
	if !keep.all {
		c = c.pick(keep.order)
	}
	b := l.log
	b.Action, b.Value, b.Decided, b.Came, b.Props, b.Weights = c.action.All, c.value.All, c.decided.All, c.came.All,
		c.props.All, c.weights.All
	l.rows.places, l.rows.slots, l.rows.data = c.places.All, c.slots.All, l.kept.data.All
	l.finishNamed(c, keep.n, l.in.Untimed == 0 && !b.Arms)
	if l.in.Untimed > 0 {
		b.Decided, anyTime = nil, false
	}
	if anyTime {
		l.in.Timeless += timeless
	} else {
		b.Came = nil
	}
	if l.in.Unpropensed > 0 {
		b.Props = nil
	}
	if l.in.Weighted == 0 {
		b.Weights = nil
	}
	if len(c.baseline.All) > 0 {
		b.Baseline = c.baseline.All
	}
	if len(c.unit.All) > 0 {
		l.countUnits(c.unit.All)
	}
	for _, slot := range b.Baseline {
		if slot >= 0 {
			l.in.Baselines++
		}
	}
}

// countUnits gives the log the units of its rows.
func (l *eventLoader) countUnits(of []int32) {
	met := make([]bool, len(l.units))
	for t, u := range of {
		if l.log.files.Pass(t); u >= 0 && !met[u] {
			met[u] = true
			l.in.Units++
		}
	}
	if l.in.Units > 0 {
		l.log.Unit, l.log.Units = of, len(met)
	}
}

// keep says which rows are replayed, and counts what they have.
func (l *eventLoader) keep() keptRows {
	c := l.kept
	if l.log.Labelled {
		return keptRows{n: len(c.action.All), all: true}
	}
	k := keptRows{all: true}
	last := scan.NoTime
	sorted := true
	for t, f := range c.flags.All {
		l.log.files.Pass(t)
		if f&rowWithdrawn != 0 {
			l.in.Withdrawn++
		}
		if c.dropped(t) {
			k.all = false
			continue
		}
		k.n++
		if c.decided.All[t] == scan.NoTime {
			l.in.Untimed++
		}
		if c.props.All[t] == 0 {
			l.in.Unpropensed++
		}
		if c.weights.All[t] > 1 {
			l.in.Weighted++
		}
		sorted = sorted && c.decided.All[t] >= last
		last = c.decided.All[t]
	}
	if l.in.Sorted = l.in.Untimed == 0 && !sorted; l.in.Sorted {
		k.all = false
	}
	if k.all || k.n == 0 {
		return k
	}
	if l.in.Sorted {
		k.order = c.byTime()
		return k
	}
	order := spill.Column[int32]{In: l.log.files}
	for t := range c.flags.All {
		if !c.dropped(t) {
			order.Add(int32(t))
		}
	}
	k.order = order.All
	return k
}
