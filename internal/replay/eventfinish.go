package replay

import (
	"math"
	"slices"

	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// finish sorts the rows, drops those that do not count, and decides what the log has.
func (l *eventLoader) finish() (*BanditLog, error) {
	l.in.Unmatched = l.waits
	l.in.Forgotten = l.in.Forgotten || l.where.Forgot() || l.early.Forgot()
	keep := l.kept()
	if len(keep) == 0 {
		return nil, l.in.nothing(l.log.name)
	}
	l.arrange(keep)
	b := l.log
	data, err := l.spool.bytes()
	if err != nil {
		return nil, err
	}
	l.rows.data = data
	if len(keep) < len(l.flags) {
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
	l.in.Sets, l.in.Actions, l.in.Rows = l.rows.slots != nil, k, int64(len(keep))
	b.d = len(l.cols) + 1
	if b.kind == 0 {
		b.kind = codec.Loss
	}
	if b.scale = l.o.Range; b.scale == (loop.Range{}) {
		b.scale = loop.Range{Min: 0, Max: 1}
		if l.low < 0 || l.high > 1 {
			b.scale = loop.Range{Min: l.low, Max: l.high}
			if l.low == l.high {
				b.scale.Max++
			}
		}
	}
	return b, nil
}

// again finds the actions of the rows that are kept, where others were dropped.
func (l *eventLoader) again() {
	was := l.log.actions
	l.log.actions, l.rows.index, l.inSets, l.sets, l.bare = nil, map[string]int32{}, false, [2]int{}, false
	for _, a := range l.o.Actions {
		l.actionIndex(a)
	}
	var c codec.Context
	for t, a := range l.log.action {
		l.rows.parse(&c, t)
		r := logs.Record{Actions: c.Actions, Action: was[a], Chosen: int(l.rows.slots[t])}
		l.log.action[t], l.rows.slots[t] = l.play(&r)
	}
}

// kept returns the rows that are replayed, in the order of time where every one has a
// time.
func (l *eventLoader) kept() []int32 {
	var keep []int32
	for t, f := range l.flags {
		if f&rowWithdrawn != 0 {
			l.in.Withdrawn++
		}
		if f&(rowInactive|rowWithdrawn) != 0 {
			continue
		}
		keep = append(keep, int32(t))
		if l.log.decided[t] == noTime {
			l.in.Untimed++
		}
		if l.log.props[t] == 0 {
			l.in.Unpropensed++
		}
		if l.log.weights[t] > 1 {
			l.in.Weighted++
		}
	}
	byTime := func(i, j int32) int {
		switch a, b := l.log.decided[i], l.log.decided[j]; {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	if l.in.Untimed == 0 && !slices.IsSortedFunc(keep, byTime) {
		slices.SortStableFunc(keep, byTime)
		l.in.Sorted = true
	}
	return keep
}

// arrange leaves the rows to keep, in this order, in all columns.
func (l *eventLoader) arrange(keep []int32) {
	b := l.log
	anyTime := false
	for _, t := range keep {
		if math.IsNaN(b.value[t]) || l.flags[t]&rowDefaulted != 0 {
			continue
		}
		if b.came[t] == noTime {
			l.in.Timeless++
			b.came[t] = b.decided[t]
		} else {
			anyTime = true
		}
	}
	b.action, b.value = pick(b.action, keep), pick(b.value, keep)
	l.rows.places, l.rows.slots = pick(l.rows.places, keep), pick(l.rows.slots, keep)
	b.decided, b.came, b.props, b.weights = pick(b.decided, keep), pick(b.came, keep), pick(b.props, keep), pick(b.weights, keep)
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
	if b.baseline == nil {
		return
	}
	b.baseline = pick(b.baseline, keep)
	for _, slot := range b.baseline {
		if slot >= 0 {
			l.in.Baselines++
		}
	}
}

// pick returns the entries of rows, in their order.
func pick[T any](of []T, rows []int32) []T {
	out := make([]T, len(rows))
	for i, t := range rows {
		out[i] = of[t]
	}
	return out
}
