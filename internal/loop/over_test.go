package loop

import (
	"bytes"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// once plays rounds whose outcome comes after so many later decisions, or with -1 never,
// and returns all that the joiner says, and the most rounds that it knew.
func once(t *rapid.T, rules *Rules, delays []int, over bool) (said []byte, most int) {
	j := NewJoiner(1, unlimited, 1, func(int64) *Rules { return rules })
	offset, cuts := int64(0), int64(0)
	take := func(c codec.Cut, b ...Batch) {
		cuts++
		c.Cut = cuts
		if err := j.Take(&c, b); err != nil {
			t.Fatal(err)
		}
	}
	give := func(r int, at int64) {
		e := OutcomeEvent{Offset: offset, Time: at, O: codec.Outcome{ID: strconv.Itoa(r), Kind: codec.Loss, Value: .5}}
		e.Last = over && r%2 > 0
		offset++
		take(codec.Cut{Outcomes: []codec.Range{{Next: offset}}}, Batch{Outcomes: []OutcomeEvent{e}})
		if over && r%2 == 0 {
			j.Over(e.O.ID)
		}
	}
	say := func() {
		var ready Ready
		j.Ready(&ready)
		for i := range ready.Feedback {
			said = codec.AppendFeedback(said, &ready.Feedback[i])
		}
		for _, r := range ready.Rejects {
			said = codec.AppendReject(said, &r)
		}
		most = max(most, j.rounds.live)
	}
	for r, d := range delays {
		e := DecisionEvent{Offset: int64(r), Time: int64(2 * r), D: handDecision(int64(r+1), strconv.Itoa(r))}
		take(codec.Cut{Time: e.Time, Decisions: []codec.Range{{Next: e.Offset + 1}}},
			Batch{Decisions: []DecisionEvent{e}})
		if d < 0 && over {
			j.Over(e.D.ID)
		}
		for s := range r + 1 {
			if delays[s] >= 0 && s+delays[s] == r {
				give(s, int64(2*r+1))
			}
		}
		say()
	}
	for s, d := range delays {
		if s+d >= len(delays) {
			give(s, int64(2*len(delays)))
		}
	}
	take(codec.Cut{Time: End})
	say()
	return said, most
}

// TestOverChangesNothing: a joiner that is told of which rounds no outcome is to come says
// what one says that remembers all.
func TestOverChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := &Rules{MaxActions: 1, Range: Range{Max: 1},
			Window: Window{Rounds: rapid.Int64Range(1, 20).Draw(t, "window")}, Arrival: rapid.Bool().Draw(t, "arrival")}
		delays := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(-1, 200)), 1, 300).Draw(t, "delays")
		want, _ := once(t, rules, delays, false)
		got, _ := once(t, rules, delays, true)
		if !bytes.Equal(got, want) {
			t.Fatalf("said %d bytes, want %d, or others", len(got), len(want))
		}
	})
}

// TestOverForgets: of rounds that are over nothing is kept, though one waits for its
// outcome all the time.
func TestOverForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := &Rules{MaxActions: 1, Range: Range{Max: 1}, Window: Window{Rounds: 5}}
		delays := slices.Repeat([]int{0, -1, 9}, rapid.IntRange(100, 200).Draw(t, "times"))
		delays[0] = 2 * len(delays)
		if _, most := once(t, rules, delays, true); most > 150 {
			t.Fatalf("%d of %d rounds are remembered", most, len(delays))
		}
		if _, most := once(t, rules, delays, false); most < len(delays) {
			t.Fatalf("%d of %d rounds are remembered though none is over", most, len(delays))
		}
	})
}
