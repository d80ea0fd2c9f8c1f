package service

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/testkit/daily"
)

// TestBacklog has a joiner come late: rounds with outcomes lie behind each other within the seconds by which clocks of
// brokers may differ, more of them than may wait. None is closed for want of room, no outcome is an orphan or too
// early, however they lie over partitions, and also where the outcomes' clock is behind the decisions'.
func TestBacklog(t *testing.T) {
	const rounds, every, second = 30_000, int64(100_000), int64(1e9)
	inTime := map[string]int{"observed 0.5": rounds}
	cases := map[string]struct {
		parts  int
		of     func(i int) int // the partition of a decision
		delay  int64           // from the decision to the outcome
		window int64           // in rounds; 0: long
		last   int             // the rounds that have outcomes; 0: all
		want   map[string]int
	}{
		"one partition":         {parts: 1, of: func(int) int { return 0 }, delay: 1, want: inTime},
		"even":                  {parts: 2, of: func(i int) int { return i % 2 }, delay: 1, want: inTime},
		"skewed":                {parts: 2, of: func(i int) int { return min(i%20, 1) }, delay: 1, want: inTime},
		"one after the other":   {parts: 2, of: func(i int) int { return i / (rounds / 2) }, delay: 1, want: inTime},
		"outcomes' clock early": {parts: 2, of: func(int) int { return 0 }, delay: -2 * second, want: inTime},
		"late": {parts: 1, of: func(int) int { return 0 }, delay: 11_001 * every, window: 10_800, last: 10_000,
			want: map[string]int{"skipped 0": rounds - 10_801, "late": 10_000}},
	}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		if !daily.Turn(t, i, 2) {
			continue
		}
		c := cases[name]
		t.Run(name, func(t *testing.T) {
			window := loop.Window{Rounds: c.window}
			if c.window == 0 {
				window.Nanos = 1000 * second
			}
			k := newTakeover(t, c.parts, window)
			k.most = 21_000
			for i := range rounds {
				id, at := fmt.Sprint("x", i), 10*second+int64(i)*every
				if k.decide(at, c.of(i), id); c.last == 0 || i < c.last {
					k.report(at+c.delay, i%c.parts, id, .5)
				}
			}
			k.step(k.joiner())
			got := map[string]int{}
			for _, fate := range k.fates() {
				got[fate]++
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("%d rounds came to %v, want %v", rounds, got, c.want)
			}
		})
	}
}
