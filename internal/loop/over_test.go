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
	j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 1000, Dedup: 1000}, func(int64) *Rules { return rules })
	offset := int64(0)
	give := func(r int, at int64) {
		o := codec.Outcome{ID: strconv.Itoa(r), Kind: codec.Loss, Value: .5}
		if over && r%2 > 0 {
			j.AddGiven(Place{Offset: offset}, at, &o, true)
		} else {
			j.AddOutcome(Place{Offset: offset}, at, codec.AppendOutcome(nil, &o), "")
		}
		offset++
		if over && r%2 == 0 {
			j.Over(o.ID)
		}
	}
	take := func() {
		for _, f := range j.AppendReady(nil) {
			said = codec.AppendFeedback(said, &f)
		}
		for _, r := range j.AppendRejects(nil) {
			said = codec.AppendReject(said, &r)
		}
		most = max(most, j.rounds.live)
	}
	for r, d := range delays {
		dec := codec.Decision{N: int64(r + 1), ID: strconv.Itoa(r), Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1}}
		if err := j.AddDecision(Place{Offset: int64(r)}, int64(2*r), codec.AppendDecision(nil, &dec)); err != nil {
			t.Fatal(err)
		}
		if d < 0 && over {
			j.Over(dec.ID)
		}
		for s := range r + 1 {
			if delays[s] >= 0 && s+delays[s] == r {
				give(s, int64(2*r+1))
			}
		}
		take()
	}
	for s, d := range delays {
		if s+d >= len(delays) {
			give(s, int64(2*len(delays)))
		}
	}
	j.Advance(End)
	take()
	return said, most
}

// TestOverChangesNothing: a joiner that is told of which rounds no outcome is to come says
// what one says that remembers all.
func TestOverChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := &Rules{MaxActions: 1, Range: Range{Max: 1}, Window: Window{Rounds: rapid.Int64Range(1, 20).Draw(t, "window")}, Arrival: rapid.Bool().Draw(t, "arrival")}
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
