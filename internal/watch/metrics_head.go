package watch

import (
	"sync"
	"time"

	"hindsight/internal/loop"
)

// lineAge knows how old the head of the line is, also while the joiner's loop stands still:
// log time is then taken to go on from what was read last, by how much time has passed here
// since. This process's clock plays no part: a wrong one raises no alarm.
type lineAge struct {
	mu    sync.Mutex
	waits bool
	head  int64     // log time of the decision that waits longest
	due   int64     // log time after which it is closed
	known bool      // due is
	now   int64     // log time
	since time.Time // when it was first seen
}

// note takes what the joiner's heart says at a time. Only its owner calls it.
func (l *lineAge) note(h *loop.Joiner, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := h.Now(); now != l.now || l.since.IsZero() {
		l.now, l.since = now, at
	}
	head, d := h.Head()
	l.waits, l.head = d != nil, head
	l.due, l.known = h.Due()
}

// at returns how long the head of the line has waited by a time, and for how long past its
// deadline, in seconds; 0 if none waits, or its deadline is not known.
func (l *lineAge) at(t time.Time) (age, overdue float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.waits {
		return 0, 0
	}
	passed := t.Sub(l.since)
	age = max(0, (time.Duration(l.now-l.head) + passed).Seconds())
	if l.known {
		overdue = max(0, (time.Duration(l.now-l.due) + passed).Seconds())
	}
	return age, overdue
}

// Age shows how old the head of the line is.
func (j *JoinerMetrics) Age(now time.Time) {
	age, overdue := j.line.at(now)
	j.oldest.Set(age)
	j.overdue.Set(overdue)
}
