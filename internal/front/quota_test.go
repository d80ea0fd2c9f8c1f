package front

import (
	"context"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/watch"
	"hindsight/pkg/stream/mem"
)

// measuredLog is a log whose store has a limit, or none: 0.
type measuredLog struct {
	*mem.Log
	held, limit int64
}

func (l measuredLog) Fill(context.Context, ...string) (held, limit int64, err error) {
	return l.held, l.limit, nil
}

// TestNoQuota holds that a store without a limit has no quota, and costs no goroutine.
func TestNoQuota(t *testing.T) {
	log := mem.New(mem.Options{})
	defer log.Close()
	for limit, want := range map[int64]bool{0: false, 1 << 20: true} {
		q := newQuota(t.Context(), measuredLog{log, 0, limit}, join.TopicsOf("m"), watch.NewMetrics(nil, nil))
		if got := q != nil; got != want {
			t.Errorf("a store of %d bytes has a quota: %v", limit, got)
		}
		q.close()
	}
}

// TestQuota holds that outcomes and rejects may hold half of a store, that a record counts more than its bytes, and
// that the store is asked again when a part of it may have been written.
func TestQuota(t *testing.T) {
	const limit, held = 64_000, 1000
	q := &quota{store: measuredLog{nil, held, limit}, metrics: watch.NewMetrics(nil, nil), look: make(chan struct{}, 1)}
	q.measure(t.Context())
	taken := 0
	for q.take(44) { // 300 with what a record takes beside
		if taken += 300; len(q.look) > 0 != (taken > limit/quotaSteps) {
			t.Fatalf("the store is asked again after %d bytes: %v", taken, len(q.look) > 0)
		}
	}
	if taken != 31_200 {
		t.Errorf("%d bytes are taken, of %d", taken, limit/2-held)
	}
}
