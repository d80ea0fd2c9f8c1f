package latelosses

import (
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// TestLateOutcomesOfRejects: of the rejects only the losses that came late count, the
// first that fits of each round, and only where none was in time.
func TestLateOutcomesOfRejects(t *testing.T) {
	x := Outcomes{}
	add := func(id, reason string, o codec.Outcome) {
		o.ID = id
		x.AddReject(&codec.Reject{ID: id, Topic: "outcomes", Reason: reason, Bytes: codec.AppendOutcomeJSON(nil, &o)})
	}
	loss := func(v float64) codec.Outcome { return codec.Outcome{Kind: codec.Loss, Value: v} }
	add("a", codec.ReasonLate, codec.Outcome{Kind: codec.Withdrawn})
	add("a", codec.ReasonLate, loss(7))
	add("a", codec.ReasonLate, codec.Outcome{Kind: codec.Reward, Value: 0.25})
	add("a", codec.ReasonLate, loss(0))
	add("b", codec.ReasonDuplicate, loss(0))
	add("c", codec.ReasonLate, loss(0))
	x.AddReject(&codec.Reject{ID: "b", Topic: "outcomes", Reason: codec.ReasonLate, Bytes: []byte(`{"id":"b","lo`)})
	var l loop.LateLosses
	rules := &loop.Rules{Range: loop.Range{Max: 1}}
	for _, f := range []codec.Feedback{{ID: "a", Fate: codec.Imputed, Loss: 1}, {ID: "b", Fate: codec.Skipped},
		{ID: "c", Fate: codec.Observed, Loss: 0.5},
		{ID: "c", Fate: codec.Skipped, Reason: codec.ReasonDuplicateID}} {
		x.AddFeedback(&l, &f, rules)
	}
	if l.OnTime.N != 1 || l.OnTime.Mean() != 0.5 || l.Late.N != 1 || l.Late.Mean() != 0.75 {
		t.Errorf("%d of %v on time, %d of %v late", l.OnTime.N, l.OnTime.Mean(), l.Late.N, l.Late.Mean())
	}
}

// A log of rewards is told of rewards: the larger losses that came late are smaller rewards.
func TestWarningOfRewards(t *testing.T) {
	mean := func(x float64) *float64 { return &x }
	c := Comparison{OnTime: Figures{N: 10, Mean: mean(.25)}, Late: Figures{N: 10, Mean: mean(.75)}, Differ: true}
	for want, shown := range map[string]*words.Rewards{
		"the losses that came late differ (0.750 of 10, against 0.250 of 10 in time): leaving them out biases what is " +
			"learned, which takes losses to be lower": nil,
		"the rewards that came late differ (1.000 of 10, against 3.000 of 10 in time): leaving them out biases what is " +
			"learned, which takes rewards to be higher": {Min: 0, Max: 4},
	} {
		if got := c.Warning(shown); !strings.HasPrefix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestFollow: of a round without a loss in time the first late loss counts that its model allows,
// before its feedback or behind it; and only as long as the joiner remembers the round.
func TestFollow(t *testing.T) {
	rules := &loop.Rules{Range: loop.Range{Max: 1}}
	w := NewFollow(3, func(int64) *loop.Rules { return rules })
	n := int64(0)
	feedback := func(id string, fate codec.Fate, loss float64) {
		n++
		w.AddFeedback(&codec.Feedback{N: n, ID: id, Epoch: 1, Fate: fate, Loss: loss})
	}
	late := func(id string, value float64) {
		o := codec.Outcome{ID: id, Kind: codec.Loss, Value: value}
		w.AddReject(&codec.Reject{ID: id, Reason: codec.ReasonLate, Bytes: codec.AppendOutcome(nil, &o)})
	}
	is := func(onTime, late int64, mean float64) {
		t.Helper()
		if l := &w.Losses; l.OnTime.N != onTime || l.Late.N != late || late > 0 && l.Late.Mean() != mean {
			t.Fatalf("%d in time, %d late of mean %v; want %d, %d of %v", l.OnTime.N, l.Late.N, l.Late.Mean(), onTime, late, mean)
		}
	}
	late("a", 7) // out of range
	late("a", .5)
	late("a", 0)
	is(0, 0, 0) // a may have a loss in time yet
	feedback("a", codec.Skipped, 0)
	is(0, 1, .5)
	late("a", 1)
	late("b", 1)
	feedback("b", codec.Observed, .25)
	is(1, 1, .5)
	feedback("c", codec.Imputed, 1)
	late("c", 0)
	late("c", 1)
	is(1, 2, .25)
	feedback("d", codec.WithdrawnRound, 0)
	late("d", 1)
	feedback("e", codec.Skipped, 0)
	for range 3 {
		feedback("x", codec.Observed, 0)
	}
	late("e", 1)
	is(4, 2, .25)
	if len(w.rounds) > 3 || len(w.order) > 3 {
		t.Errorf("%d and %d rounds are kept", len(w.rounds), len(w.order))
	}
}
