package loop

import (
	"testing"

	"hindsight/pkg/codec"
)

// by hand: a joiner of one partition, told in a few words.
type byHand struct {
	*testing.T
	*caller
	n   int64 // decisions given
	out int64 // outcomes given

	learned int64 // what the next decision had learned through
}

func newByHand(t *testing.T, rules *Rules) *byHand {
	return &byHand{T: t, caller: newCaller(t, 1, codec.Limits{Heart: Heart, Pending: 10, Dedup: 10},
		func(epoch int64) *Rules {
			if epoch == 1 {
				return rules
			}
			return nil
		})}
}

func handDecision(n int64, id string) codec.Decision {
	return codec.Decision{N: n, ID: id, Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{0.5, 0.5},
		Context: []byte(`{}`)}
}

func (h *byHand) decide(time int64, id string) {
	h.Helper()
	h.n++
	d := handDecision(h.n, id)
	d.LearnedThrough = h.learned
	h.caller.decide(Place{0, h.n}, time, d)
}

func (h *byHand) outcome(time int64, o codec.Outcome) {
	h.Helper()
	h.out++
	h.caller.outcome(Place{0, h.out}, time, o)
}

// ready checks what is released: id, fate, loss and closing time of each.
func (h *byHand) ready(want ...codec.Feedback) {
	h.Helper()
	got := h.caller.ready()
	if len(got) != len(want) {
		h.Fatalf("%d feedbacks, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		if g := got[i]; g.ID != w.ID || g.Fate != w.Fate || g.Loss != w.Loss || g.Reason != w.Reason ||
			g.ClosedAt != w.ClosedAt {
			h.Errorf("got %q %v loss %v %q at %d, want %+v", g.ID, g.Fate, g.Loss, g.Reason, g.ClosedAt, w)
		}
	}
}

// A round that waits holds back those behind it; its window, and nothing else, ends
// that.
func TestFIFOByHand(t *testing.T) {
	h := newByHand(t, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 10}})
	if _, known := h.j.Due(); known {
		t.Error("something is due, and nothing waits")
	}
	h.decide(100, "first")
	h.decide(101, "second")
	h.outcome(105, codec.Outcome{ID: "second", Kind: codec.Loss, Value: 0.5})
	h.ready()
	if due, known := h.j.Due(); !known || due != 110 {
		t.Errorf("due at %d, %v", due, known)
	}
	h.advance(110)
	h.ready() // the deadline itself is in time
	h.outcome(110, codec.Outcome{ID: "first", Kind: codec.Loss, Value: 0.25})
	h.ready(codec.Feedback{ID: "first", Fate: codec.Observed, Loss: 0.25, ClosedAt: 110},
		codec.Feedback{ID: "second", Fate: codec.Observed, Loss: 0.5, ClosedAt: 105})

	h.decide(111, "third")
	h.decide(111, "fourth")
	h.outcome(112, codec.Outcome{ID: "fourth", Kind: codec.Withdrawn})
	h.advance(122)
	h.ready(codec.Feedback{ID: "third", Fate: codec.Skipped, ClosedAt: 121},
		codec.Feedback{ID: "fourth", Fate: codec.WithdrawnRound, ClosedAt: 112})
	h.outcome(123, codec.Outcome{ID: "third", Kind: codec.Loss, Value: 1})
	h.outcome(123, codec.Outcome{ID: "fourth", Kind: codec.Loss, Value: 1})
	h.outcome(123, codec.Outcome{ID: "fifth", Kind: codec.Loss, Value: 1})
	want := []string{codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan}
	for i, r := range h.rejected() {
		if r.Reason != want[i] || r.Offset != int64(4+i) {
			t.Errorf("reject %d is %+v", i, r)
		}
	}
}

// A window of 2 rounds ends with the log time of the decision after the next.
func TestWindowOfRoundsByHand(t *testing.T) {
	h := newByHand(t, &Rules{Range: Range{Min: -1, Max: 1}, Window: Window{Rounds: 2}, Impute: true, DefaultLoss: 0.75,
		Outcomes: Sum})
	h.decide(10, "r1")
	h.outcome(11, codec.Outcome{ID: "r1", Kind: codec.Reward, Value: 0.5})
	h.outcome(12, codec.Outcome{ID: "r1", Kind: codec.Reward, Value: 0.25})
	h.decide(20, "r2")
	if _, known := h.j.Due(); known {
		t.Error("the end of the window is not in the log yet")
	}
	h.advance(1000)
	h.ready()
	h.decide(1000, "r3")
	h.outcome(1000, codec.Outcome{ID: "r1", Kind: codec.Reward, Value: -0.25})
	h.ready()
	h.decide(1001, "r4")
	h.ready(codec.Feedback{ID: "r1", Fate: codec.Observed, Loss: 0.25, ClosedAt: 1000}) // reward 0.5 of −1…1
	h.advance(1002)
	h.ready(codec.Feedback{ID: "r2", Fate: codec.Imputed, Loss: 0.75, ClosedAt: 1001})
	h.advance(End)
	h.ready(codec.Feedback{ID: "r3", Fate: codec.Imputed, Loss: 0.75, ClosedAt: End},
		codec.Feedback{ID: "r4", Fate: codec.Imputed, Loss: 0.75, ClosedAt: End})
}

// TestGapByHand: lost rounds have no feedback, and their log time ends the windows of those before.
func TestGapByHand(t *testing.T) {
	h := newByHand(t, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 10}})
	h.decide(1, "one")
	h.decide(2, "two")
	if err := h.decision(Place{0, 3}, 50, codec.Decision{N: 3}, 6); err != nil {
		t.Fatal(err)
	}
	h.ready(codec.Feedback{ID: "one", Fate: codec.Skipped, ClosedAt: 11}, codec.Feedback{ID: "two", Fate: codec.Skipped,
		ClosedAt: 12})
	if round, time := h.j.Reached(0); round != 6 || time != 50 {
		t.Errorf("taken through round %d at %d, want 6 at 50", round, time)
	}
}

// A window or a time near the end of time does not overflow.
func TestAddTime(t *testing.T) {
	if addTime(5, 7) != 12 || addTime(End-3, 3) != End || addTime(End-3, 4) != End || addTime(End, End) != End {
		t.Error("a time overflows")
	}
}
