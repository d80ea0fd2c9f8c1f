package loop

import (
	"math"
	"testing"

	"hindsight/pkg/codec"
)

// A round that was decided while more than a third of the earlier ones were outstanding passes
// those before it; the others wait for their turn.
func TestEarlyByHand(t *testing.T) {
	h := newByHand(t, &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 100}, Early: true})
	observed := func(id string, at int64) codec.Feedback {
		return codec.Feedback{ID: id, Fate: codec.Observed, Loss: 0.5, ClosedAt: at}
	}
	outcome := func(at int64, id string) { h.outcome(at, codec.Outcome{ID: id, Kind: codec.Loss, Value: 0.5}) }
	h.decide(100, "first")
	h.decide(101, "second") // 1 of 1 is outstanding
	h.decide(102, "third")  // 2 of 2
	outcome(103, "third")
	h.ready(observed("third", 103))
	outcome(104, "second")
	h.ready(observed("second", 104))
	h.learned = 2
	h.decide(105, "fourth") // 1 of 3, no more than a third: it waits
	outcome(106, "fourth")
	h.ready()
	h.decide(107, "fifth") // 2 of 4
	outcome(108, "fifth")
	h.ready(observed("fifth", 108))
	outcome(109, "first")
	h.ready(observed("first", 109), observed("fourth", 106))
	h.decide(110, "sixth") // 3 of 5: nobody has learned since
	h.advance(211)
	h.ready(codec.Feedback{ID: "sixth", Fate: codec.Skipped, ClosedAt: 210})
}

// TestWaits holds which rounds wait for their turn.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		n, learned          int64
		fifo, early, arrive bool
	}{
		{1, 0, true, true, false},
		{2, 0, true, false, false},
		{2, 1, true, true, false},
		{100, 65, true, false, false}, // 34 of 99 are outstanding
		{100, 66, true, true, false},  // 33
		{100, 300, true, true, false}, // those of other partitions count
		{math.MaxInt64, 0, true, false, false},
	} {
		for _, w := range []struct {
			rules Rules
			want  bool
		}{{Rules{}, c.fifo}, {Rules{Early: true}, c.early}, {Rules{Arrival: true}, c.arrive}} {
			if got := w.rules.Waits(c.n, c.learned); got != w.want {
				t.Errorf("round %d that learned through %d, %+v: %v", c.n, c.learned, w.rules, got)
			}
		}
	}
}
