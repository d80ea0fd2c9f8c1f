package ope

import (
	"math"

	"hindsight/internal/ledger"
)

// AnyTime is an interval of a policy's mean that holds with 95 % at all rows at once, also if the policy that made the
// log learned from it: the confidence sequence of package ledger on terms of IPS. Null where a reward is out of its
// range, or rows stand for unequally many events.
type AnyTime struct {
	Low  Figure `json:"low"`
	High Figure `json:"high"`
	// the same, whatever rows without an outcome would have had
	Worst interval `json:"worst"`
}

// anyTime computes the interval: a lower end of the mean of rewards in [0,1], and one of 1 less them. At worst a row
// without an outcome adds nothing to either.
func (l *look) anyTime(o Options) AnyTime {
	nan := Figure(math.NaN())
	none := AnyTime{nan, nan, interval{nan, nan}}
	if !l.s.even() {
		return none
	}
	level := ledger.Level(0.025)
	var known, all [2]ledger.Sequence
	missed := func(n int) {
		for range n {
			all[0].Add(0, level)
			all[1].Add(0, level)
		}
	}
	for t := range l.s.all() {
		missed(l.s.missing(t))
		x := (l.s.Reward[t] - o.Range.Min) / (o.Range.Max - o.Range.Min)
		if x < 0 || x > 1 {
			return none
		}
		for i, x := range [2]float64{x, 1 - x} {
			known[i].Add(l.w(t)*x, level)
			all[i].Add(l.w(t)*x, level)
		}
	}
	missed(l.s.missing(l.s.Len()))
	ends := func(s *[2]ledger.Sequence) interval {
		end := func(low float64) Figure { return Figure(o.Range.Min + float64(low*(o.Range.Max-o.Range.Min))) }
		return interval{end(max(0, s[0].Low(level))), end(min(1, 1-s[1].Low(level)))}
	}
	now := ends(&known)
	return AnyTime{now.Low, now.High, ends(&all)}
}
