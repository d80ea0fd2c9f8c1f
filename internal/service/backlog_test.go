package service

import (
	"fmt"
	"testing"

	"hindsight/internal/loop"
)

// TestBacklog has a joiner come late: rounds with outcomes in time lie behind each other within the seconds by which
// clocks of brokers may differ, more of them than may wait. None is closed for want of room, none of their outcomes
// is an orphan, however they lie over partitions, and also where the outcomes' clock is behind the decisions'.
func TestBacklog(t *testing.T) {
	const rounds, every, second = 30_000, int64(100_000), int64(1e9)
	for name, c := range map[string]struct {
		parts  int
		of     func(i int) int // the partition of a decision
		behind int64
	}{
		"one partition":         {parts: 1, of: func(int) int { return 0 }},
		"even":                  {parts: 2, of: func(i int) int { return i % 2 }},
		"skewed":                {parts: 2, of: func(i int) int { return min(i%20, 1) }},
		"one after the other":   {parts: 2, of: func(i int) int { return i / (rounds / 2) }},
		"outcomes' clock early": {parts: 1, of: func(int) int { return 0 }, behind: second / 4},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTakeover(t, c.parts, loop.Window{Nanos: 1000 * second})
			k.most = 21_000
			want := "observed 0.5"
			for i := range rounds {
				at := second + int64(i)*every
				k.decide(at, c.of(i), fmt.Sprint("x", i))
				k.report(at+every/2-c.behind, i%c.parts, fmt.Sprint("x", i), .5)
			}
			k.step(k.joiner())
			fates, wrong := k.fates(), map[string]int{}
			for _, fate := range fates {
				if fate != want {
					wrong[fate]++
				}
			}
			if len(fates) != rounds || len(wrong) > 0 {
				t.Errorf("of %d rounds and rejects, %d rounds, these had another fate: %v", len(fates), rounds, wrong)
			}
		})
	}
}
