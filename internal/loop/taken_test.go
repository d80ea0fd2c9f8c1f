package loop

import (
	"errors"
	"fmt"
	"testing"

	"hindsight/pkg/codec"
)

// takenAgain begins era 1 by rules of a version, behind the feedback of round "a": outcomes 0 to 2 of it were
// taken, of which its feedback names outcome 1. It takes them again and returns what is rejected.
func takenAgain(t *testing.T, heart int64, outcomes Aggregate) (rejects []codec.Reject) {
	t.Helper()
	rule := &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 100}, Outcomes: outcomes}
	h := newCutByHand(t, unlimited, rule)
	fed := codec.Feedback{N: 1, Round: 1, ID: "a", Epoch: 1, Fate: codec.Observed, OutcomeOffset: 1, ClosedAt: 9}
	limits := unlimited
	limits.Heart = heart
	from := codec.FeedbackMark{Limits: limits, Positions: make([]codec.Position, 1)}
	m := codec.FeedbackMark{N: 1, Cut: 1, Time: 9, Era: 1, Eras: []codec.EraStart{{Era: 1, N: 1}}, Limits: limits,
		LostTails: []codec.LostTail{{Topic: "outcomes", Was: 3}},
		Positions: []codec.Position{{Round: 1, Time: 1, Decisions: 1, Again: 3}}}
	err := h.j.Restore(&History{From: &from, Mark: &m, Opens: true,
		Feedback: func(yield func(*codec.Feedback, error) bool) { yield(&fed, nil) },
		Steps: func(yield func(*Step, error) bool) {
			d := decidedAt(1, 1, "a")
			yield(&Step{N: 0, Cut: &codec.Cut{Cut: 1, Time: 9, Decisions: []codec.Range{{Next: 1}}},
				Batches: []Batch{{Decisions: []DecisionEvent{d}}}}, nil)
		}})
	if err != nil {
		t.Fatal(err)
	}
	h.decisions = 1
	again := []OutcomeEvent{lossAt(2, "a", 0), lossAt(3, "a", 1), lossAt(9, "a", 0), lossAt(20, "a", 0)}
	if err := h.cut(20, nil, again); err != nil {
		t.Fatal(err)
	}
	var r Ready
	h.j.Ready(&r)
	return r.Rejects
}

// An outcome that an era takes again is passed over if its round's feedback names it. Any other is rejected,
// since its reject may not have been stored before the era; by the first version of the rules it was passed
// over, too, unless it is later than the closing of its round.
func TestTakenBefore(t *testing.T) {
	for _, c := range []struct {
		heart    int64
		outcomes Aggregate
		want     string
	}{
		{1, First, "[3 duplicate ]"},
		{2, First, "[0 duplicate before][2 duplicate before][3 duplicate ]"},
		{1, Mean, "[3 late ]"},
		{2, Mean, "[0 duplicate before][2 duplicate before][3 late ]"},
	} {
		got := ""
		for _, r := range takenAgain(t, c.heart, c.outcomes) {
			detail := r.Detail
			if detail == errTakenBefore.Error() {
				detail = "before"
			}
			got += fmt.Sprintf("[%d %s %s]", r.Offset, r.Reason, detail)
		}
		if got != c.want {
			t.Errorf("version %d: rejects %s, want %s", c.heart, got, c.want)
		}
	}
}

// A mark of any version up to this program's is gone on from. One of a later version is refused by name.
func TestHeartVersions(t *testing.T) {
	j := newCutByHand(t, unlimited).j
	for heart := range int64(Heart + 2) {
		limits := unlimited
		limits.Heart = heart
		err := j.SetLimits(&codec.FeedbackMark{Limits: limits})
		if known := 1 <= heart && heart <= Heart; known != (err == nil) || !known && !errors.Is(err, codec.ErrVersion) {
			t.Errorf("version %d: %v", heart, err)
		}
	}
}
