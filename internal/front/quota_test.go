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
	limit int64
}

func (l measuredLog) Fill(context.Context, ...string) (held, limit int64, err error) {
	return 0, l.limit, nil
}

// TestNoQuota holds that a store without a limit has no quota, and costs no goroutine.
func TestNoQuota(t *testing.T) {
	log := mem.New(mem.Options{})
	defer log.Close()
	for limit, want := range map[int64]bool{0: false, 1 << 20: true} {
		q := newQuota(t.Context(), measuredLog{log, limit}, join.TopicsOf("m"), watch.NewMetrics(nil, nil))
		if got := q != nil; got != want {
			t.Errorf("a store of %d bytes has a quota: %v", limit, got)
		}
		q.close()
	}
}
