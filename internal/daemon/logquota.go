package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A message is a fixed text here, its values are attributes: so many lines with the same one
// are logged a minute, and the others counted. What floods the log hides what matters.
const (
	quotaLines    = 100
	quotaSpan     = time.Minute
	quotaMessages = 1000 // that are known; others pass
)

// quota is a handler that leaves out lines beyond the quota of their message. The first line behind them says how many.
type quota struct {
	slog.Handler
	q *quotas
}

type quotas struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]*spent
}

// spent is what a message has used of its quota since a moment.
type spent struct {
	since time.Time
	lines int
	left  int64 // out
}

func newQuota(h slog.Handler) *quota {
	return &quota{h, &quotas{now: time.Now, seen: map[string]*spent{}}}
}

// Handle implements [slog.Handler].
func (h *quota) Handle(ctx context.Context, r slog.Record) error {
	pass, left := h.q.take(r.Level.String() + " " + r.Message)
	if !pass {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("left_out", left))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler]. All handlers of one logger share the quotas.
func (h *quota) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &quota{h.Handler.WithAttrs(attrs), h.q}
}

// WithGroup implements [slog.Handler].
func (h *quota) WithGroup(name string) slog.Handler { return &quota{h.Handler.WithGroup(name), h.q} }

// take reports whether a line passes, and how many before it did not.
func (q *quotas) take(message string) (pass bool, left int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, s := q.now(), q.seen[message]
	switch {
	case s == nil && len(q.seen) >= quotaMessages:
		return true, 0
	case s == nil:
		s = &spent{since: now}
		q.seen[message] = s
	case now.Sub(s.since) >= quotaSpan:
		left = s.left
		*s = spent{since: now}
	}
	if s.lines++; s.lines > quotaLines {
		s.left++
		return false, 0
	}
	return true, left
}
