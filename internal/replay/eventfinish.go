package replay

import (
	"math"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// finish sorts the rows, drops those that do not count, and decides what the log has.
func (l *eventLoader) finish() (*BanditLog, error) {
	l.in.Unmatched = l.waits
	l.in.Forgotten = l.in.Forgotten || l.early.Forgot()
	keep := l.keep()
	if keep.n == 0 && l.schema != nil {
		return nil, l.in.noRows(l.schema.File)
	} else if keep.n == 0 {
		return nil, l.in.nothing(l.log.name)
	}
	if l.arrange(keep); l.log.files.err != nil {
		return nil, l.log.files.err
	}
	b := l.log
	if keep.n < len(l.kept.flags.s) {
		l.again()
	}
	k := len(b.actions)
	l.rows.largest = l.sets[1]
	if l.bare {
		l.rows.largest = k
	}
	if !l.inSets && (l.sets[1] == 0 || l.sets == [2]int{k, k}) {
		l.rows.slots = nil
	}
	l.in.Sets, l.in.Actions, l.in.Rows = l.rows.slots != nil, k, int64(keep.n)
	b.d = len(l.cols) + 1
	if l.schema != nil {
		l.finishGrid()
	}
	if b.kind == 0 {
		b.kind = codec.Loss
	}
	if b.scale = l.o.Range; b.scale == (loop.Range{}) {
		b.scale = b.valueRange()
	}
	return b, nil
}

// valueRange returns [0,1], or where that does not hold all values of rows from the least to the largest.
func (b *BanditLog) valueRange() loop.Range {
	low, high := math.Inf(1), math.Inf(-1)
	for t, v := range b.value {
		if b.files.pass(t); !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	switch {
	case low >= 0 && high <= 1 || low > high:
		return loop.Range{Min: 0, Max: 1}
	case low == high:
		high++
	}
	return loop.Range{Min: low, Max: high}
}

// again finds what the rows that are kept have, where others were dropped: actions, their features, columns.
func (l *eventLoader) again() {
	was := l.log.actions
	l.log.actions, l.rows.index, l.inSets, l.sets, l.bare = nil, map[string]int32{}, false, [2]int{}, false
	l.in.Featured, l.cols = false, map[string]struct{}{}
	for _, a := range l.o.Actions {
		l.actionIndex(a)
	}
	var c codec.Context
	for t, a := range l.log.action {
		l.log.files.pass(t)
		l.rows.parse(&c, t)
		r := logs.Record{Actions: c.Actions, Action: was[a], Chosen: int(l.rows.slots[t])}
		l.log.action[t], l.rows.slots[t] = l.play(&r)
		l.columns(c.Features)
	}
}

// arrange leaves the rows that are replayed in the log: in the order of time where every
// one has a time.
func (l *eventLoader) arrange(keep keptRows) {
	c, anyTime := l.kept, false
	for t := range c.flags.s {
		l.log.files.pass(t)
		if c.dropped(t) || math.IsNaN(c.value.s[t]) || c.flags.s[t]&rowDefaulted != 0 {
			continue
		}
		if c.came.s[t] == logs.NoTime {
			l.in.Timeless++
			c.came.s[t] = c.decided.s[t]
		} else {
			anyTime = true
		}
	}
	if !keep.all {
		c = c.pick(keep.order)
	}
	b := l.log
	b.action, b.value, b.decided, b.came, b.props, b.weights = c.action.s, c.value.s, c.decided.s, c.came.s, c.props.s, c.weights.s
	l.rows.places, l.rows.slots, l.rows.data = c.places.s, c.slots.s, l.kept.data.s
	if l.in.Untimed > 0 {
		b.decided, anyTime = nil, false
	}
	if !anyTime {
		b.came, l.in.Timeless = nil, 0
	}
	if l.in.Unpropensed > 0 {
		b.props = nil
	}
	if l.in.Weighted == 0 {
		b.weights = nil
	}
	if len(c.baseline.s) > 0 {
		b.baseline = c.baseline.s
	}
	for _, slot := range b.baseline {
		if slot >= 0 {
			l.in.Baselines++
		}
	}
}

// keep says which rows are replayed, and counts what they have.
func (l *eventLoader) keep() keptRows {
	c := l.kept
	if l.log.labelled {
		return keptRows{n: len(c.action.s), all: true}
	}
	k := keptRows{all: true}
	last := logs.NoTime
	sorted := true
	for t, f := range c.flags.s {
		l.log.files.pass(t)
		if f&rowWithdrawn != 0 {
			l.in.Withdrawn++
		}
		if c.dropped(t) {
			k.all = false
			continue
		}
		k.n++
		if c.decided.s[t] == logs.NoTime {
			l.in.Untimed++
		}
		if c.props.s[t] == 0 {
			l.in.Unpropensed++
		}
		if c.weights.s[t] > 1 {
			l.in.Weighted++
		}
		sorted = sorted && c.decided.s[t] >= last
		last = c.decided.s[t]
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
	order := column[int32]{of: l.log.files}
	for t := range c.flags.s {
		if !c.dropped(t) {
			order.add(int32(t))
		}
	}
	k.order = order.s
	return k
}
