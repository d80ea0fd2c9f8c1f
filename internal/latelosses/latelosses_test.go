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
	all := ByOutcome{}
	rules := &loop.Rules{Range: loop.Range{Max: 1}}
	for _, f := range []codec.Feedback{{ID: "a", Fate: codec.Imputed, Loss: 1}, {ID: "b", Fate: codec.Skipped},
		{ID: "c", Fate: codec.Observed, Loss: 0.5},
		{ID: "c", Fate: codec.Skipped, Reason: codec.ReasonDuplicateID}} {
		x.AddFeedback(all, &f, rules)
	}
	if l := all.Of(""); l.OnTime.N != 1 || l.OnTime.Mean() != 0.5 || l.Late.N != 1 || l.Late.Mean() != 0.75 {
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
