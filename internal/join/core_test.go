package join

import (
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// TestMemoryBeforeFrom holds that a restart reads no less than what lies behind the mark to which a
// mark goes back, though nothing need be remembered.
func TestMemoryBeforeFrom(t *testing.T) {
	var l markLog
	for i, cut := range []int64{0, 5, 9} {
		l.add(uint64(i+1), &codec.FeedbackMark{Cut: cut, Remembers: 1, Limits: codec.Limits{Heart: 1}})
		l.ack(uint64(i+1), int64(10*(i+1)))
	}
	m := codec.FeedbackMark{Cut: 12, Remembers: 1}
	if l.refer(&m, 3, loop.End); m.From != 10 || m.FromCut != 0 || m.Memory != 10 {
		t.Errorf("from %d of cut %d, memory %d; want 10 of cut 0, 10", m.From, m.FromCut, m.Memory)
	}
}
