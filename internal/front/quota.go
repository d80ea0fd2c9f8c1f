package front

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"hindsight/internal/join"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// Outcomes come as fast as clients send them, and what cannot be used of them is kept as rejects. Together they may
// hold one part in quotaParts of a store, so that there is room for decisions and their feedback. The store is asked
// when a sixty-fourth of it may have been written since, and now and then, since retention drops what is old.
const (
	quotaParts = 2
	quotaSteps = 64
	quotaLook  = 10 * time.Second

	storedBytes = 256 // about what a record takes beside what its request counts
)

// overQuota is the reason of the refusals.
const overQuota = "outcomes and rejects hold half of the store: outcomes are taken again when older ones are " +
	"dropped, or with a larger store (the file limit in its folder)"

// quota is what outcomes may still take of a store. A nil one has no end.
type quota struct {
	store   stream.Measured
	topics  join.Topics
	metrics *watch.Metrics
	left    atomic.Int64 // bytes
	again   atomic.Int64 // with so many left the store is asked again
	look    chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
}

// newQuota returns the quota of a log whose store has a limit, nil if it has none. close ends it.
func newQuota(ctx context.Context, log stream.Log, topics join.Topics, m *watch.Metrics) *quota {
	store, ok := log.(stream.Measured)
	if !ok {
		return nil
	}
	q := &quota{store: store, topics: topics, metrics: m, look: make(chan struct{}, 1), done: make(chan struct{})}
	q.left.Store(math.MaxInt64)
	if !q.measure(ctx) {
		return nil
	}
	ctx, q.stop = context.WithCancel(context.WithoutCancel(ctx))
	go q.run(ctx)
	return q
}

func (q *quota) close() {
	if q != nil {
		q.stop()
		<-q.done
	}
}

func (q *quota) run(ctx context.Context) {
	defer close(q.done)
	tick := time.NewTicker(quotaLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-q.look:
		}
		q.measure(ctx)
	}
}

// measure asks the store, and reports false if it has no limit. If the store does not answer, appends tell why.
func (q *quota) measure(ctx context.Context) bool {
	held, limit, err := q.store.Fill(ctx, q.topics.Outcomes, q.topics.Rejects)
	if err != nil {
		return true
	}
	if limit == 0 {
		return false
	}
	left := limit/quotaParts - held
	q.again.Store(left - limit/quotaSteps)
	was := q.left.Swap(left)
	if log := q.metrics.Log; log != nil && (was > 0) != (left > 0) {
		log.Warn("outcomes and rejects hold half of the store, or do no more", "outcomes_are_taken", left > 0,
			"mib", held>>20, "limit_mib", limit>>20)
	}
	return true
}

// take reports whether an outcome of n bytes may be stored.
func (q *quota) take(n int) bool {
	if q == nil {
		return true
	}
	if q.left.Load() <= 0 {
		return false
	}
	if q.left.Add(-int64(n+storedBytes)) < q.again.Load() {
		Signal(q.look)
	}
	return true
}
