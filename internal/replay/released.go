package replay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// releases tells how many rounds the live joiner has released. It is a joiner that is given
// the same: decisions at their log times, and outcomes right behind the last decision that was
// read before they were written. They may have been stored later, so that it never says too many.
type releases struct {
	joiner    *loop.Joiner
	off       bool    // the order of release cannot be known
	n         int64   // rounds released
	after     []int64 // per decision: rounds released after it and the outcomes that come right after it
	time      int64   // log time of the last decision, or a later one that what is written now will not precede
	given     int64   // outcomes
	feedbacks []codec.Feedback
	rejects   []codec.Reject
}

// newReleases returns the releases of so many rounds. The joiner releases in the order in
// which it reads decisions, which of several partitions is that of the rounds only if one is
// decided at a time.
func newReleases(rules *loop.Rules, partitions, lead, rounds int) *releases {
	o := loop.JoinerOptions{Partitions: partitions, MaxPending: rounds + 1, Dedup: rounds + 1}
	return &releases{off: partitions > 1 && lead > 1, joiner: loop.NewJoiner(o, func(int64) *loop.Rules { return rules })}
}

// decided gives the decision of the next round, whose outcome may never come.
func (r *releases) decided(d *codec.Decision, logTime int64, never bool) error {
	r.time = logTime
	at := loop.Place{Partition: d.Partition, Offset: int64(len(r.after))}
	if err := r.joiner.AddDecided(at, logTime, d); err != nil {
		return err
	}
	if never {
		r.joiner.Over(d.ID)
	}
	r.after = append(r.after, r.count())
	return nil
}

// ending reports whether a round waits whose deadline is the log time of the last decision:
// the next record closes it only if its log time is later.
func (r *releases) ending() bool {
	due, known := r.joiner.Due()
	return known && due <= r.time
}

// close closes what ends with the last decision.
func (r *releases) close() {
	r.joiner.Advance(r.time + 1)
	r.after[len(r.after)-1] = r.count()
}

// later says that whatever is written now will have a later log time than the last decision.
func (r *releases) later() { r.time++ }

// outcome gives an outcome that comes right after the last decision.
func (r *releases) outcome(o *codec.Outcome) {
	r.joiner.AddGiven(loop.Place{Offset: r.given}, r.time, o, true)
	r.given++
	r.after[len(r.after)-1] = r.count()
}

func (r *releases) count() int64 {
	r.feedbacks = r.joiner.AppendReady(r.feedbacks[:0])
	r.rejects = r.joiner.AppendRejects(r.rejects[:0])
	r.n += int64(len(r.feedbacks))
	return r.n
}

// by returns the rounds released after decision t = 0, 1, 2, …, which must have been given;
// 0 where that cannot be known.
func (r *releases) by(t int) int64 {
	if r.off || t < 0 {
		return 0
	}
	return r.after[t]
}

// atEnd returns the rounds that are released when all outcomes were given and nothing is
// decided any more. A round that has none and whose window is not over by then waits on, and
// with it those behind it.
func (r *releases) atEnd() int64 {
	r.joiner.Advance(r.time + 1)
	return r.count()
}

// Learned tells an [Injection] how much feedback the deciders have learned: the system that it
// plays to calls Note ([service.SystemConfig]).
type Learned struct {
	mu      sync.Mutex
	through []int64       // by partition
	changed chan struct{} // closed at the next change; nil: nothing waits for one
}

// NewLearned returns what no decider of so many partitions has told yet.
func NewLearned(partitions int) *Learned { return &Learned{through: make([]int64, partitions)} }

// Note says that the decider of a partition has learned feedbacks 1 to through.
func (l *Learned) Note(partition int, through int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.through[partition] = through
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// lacks returns nil once every decider has learned n feedbacks, before that a channel that is
// closed at the next change.
func (l *Learned) lacks(n int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Min(l.through) >= n {
		return nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

var errNothingLearned = errors.New("nothing was learned for " + injectStall.String())

// wait waits until every decider has learned n feedbacks, as long as there is some progress.
func (l *Learned) wait(ctx context.Context, n int64) error {
	for {
		changed := l.lacks(n)
		if changed == nil {
			return nil
		}
		timer := time.NewTimer(injectStall)
		select {
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
			return errNothingLearned
		}
	}
}
