package inject

import (
	"fmt"
	"slices"
	"testing"

	"hindsight/internal/dataset"
	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// TestReleasesByHand: 6 rounds, decided 10 ns apart. after are the rounds released after each
// decision and the outcomes that come right after it, end those when all have come.
func TestReleasesByHand(t *testing.T) {
	two := loop.Window{Rounds: 2}
	for _, c := range []struct {
		raw   []int64
		rules loop.Rules
		after []int64
		end   int64
	}{
		{[]int64{0, 0, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{1, 2, 3, 4, 5, 6}, 6},
		{[]int64{1, 0, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{0, 2, 3, 4, 5, 6}, 6},
		// the outcome after decision 3 ends the window
		{[]int64{0, delay.Never, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{1, 1, 1, 4, 5, 6}, 6},
		// decision 4 does, and the outcome after decision 5
		{[]int64{0, delay.Never, 0, delay.Never, 0, 0}, loop.Rules{Window: two}, []int64{1, 1, 1, 1, 3, 6}, 6},
		// its own outcome is too late, and ends it
		{[]int64{2, 0, 0, 0, 0, 0}, loop.Rules{Window: two}, []int64{0, 0, 3, 4, 5, 6}, 6},
		// time does
		{[]int64{0, 0, 0, delay.Never, 0, delay.Never}, loop.Rules{Window: two}, []int64{1, 2, 3, 3, 3, 3}, 5},
		// nothing does
		{[]int64{0, 0, 0, 0, delay.Never, 0}, loop.Rules{Window: two}, []int64{1, 2, 3, 4, 4, 4}, 4},
		// they come after the last decision
		{[]int64{0, 0, 0, 0, 99, 99}, loop.Rules{Window: two}, []int64{1, 2, 3, 4, 4, 4}, 6},
		// the first one that waits
		{[]int64{0, delay.Never, 0, 0, delay.Never, delay.Never}, loop.Rules{Window: two}, []int64{1, 1, 1, 4, 4, 4},
			4},
		// is passed by the last
		{[]int64{0, 0, 0, 0, delay.Never, 0}, loop.Rules{Window: two, Arrival: true}, []int64{1, 2, 3, 4, 4, 5}, 5},
		{[]int64{0, 0, 0, 0, 0, 0}, loop.Rules{Window: two, Outcomes: loop.Mean}, []int64{0, 0, 1, 2, 3, 4}, 4},
		{[]int64{0, 0, 0, 0, 0, 0}, loop.Rules{Window: two, Activation: true}, []int64{0, 0, 1, 2, 3, 4}, 4},
		// decision 3 comes later than that
		{[]int64{0, delay.Never, 0, 0, 0, 0}, loop.Rules{Window: loop.Window{Nanos: 15}}, []int64{1, 1, 1, 4, 5, 6}, 6},
	} {
		s := delay.NewSchedule(len(c.raw), nil)
		c.rules.Range, c.rules.MaxActions = loop.Range{Max: 1}, 1
		r := newReleases(&c.rules, 1, 1, len(c.raw))
		give := func(due []delay.Awaited) {
			for _, a := range due {
				if err := r.outcome(&codec.Outcome{ID: dataset.RoundID(int(a.Round)), Kind: codec.Loss},
					true); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, d := range c.raw {
			s.Add(d, 0)
			dec := codec.Decision{N: int64(i + 1), ID: dataset.RoundID(i), Epoch: 1, Actions: []string{"a"},
				Propensities: []float64{1}}
			if err := r.decided(&dec, int64(10*(i+1)), d == delay.Never); err != nil {
				t.Fatal(err)
			}
			if r.ending() {
				r.later()
			}
			give(s.After(i))
		}
		after := slices.Clone(r.after)
		give(s.Rest())
		end, err := r.atEnd()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(after, end), fmt.Sprint(c.after, c.end); got != want {
			t.Errorf("%v, %+v: %s, want %s", c.raw, c.rules, got, want)
		}
	}
}
