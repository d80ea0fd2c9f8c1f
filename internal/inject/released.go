package inject

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/pkg/codec"
)

// releases tells how many rounds the live joiner has released. It is a joiner that is given
// the same: decisions at their log times, and outcomes right behind the last decision that was
// read before they were written. They may have been stored later, so that it never says too many.
type releases struct {
	joiner      *loop.Joiner
	off         bool    // the order of release cannot be known
	provisional bool    // there may be records that tell something provisional
	measures    bool    // delays are: what is released depends on where outcomes lie between decisions
	n           int64   // rounds released
	after       []int64 // per decision: rounds released after it and the outcomes that come right after it
	time        int64   // log time of the last decision, or a later one that what is written now will not precede
	cuts        int64
	outcomes    int64 // that came
	ready       loop.Ready
	finals      replay.Finals
}

// newReleases returns the releases of so many rounds. The joiner releases in the order in which it reads decisions,
// which of several partitions is that of the rounds only if one is decided at a time.
func newReleases(rules *loop.Rules, partitions, lead, rounds int) *releases {
	j := loop.NewJoiner(partitions, replay.Boundless(rounds), 0, func(int64) *loop.Rules { return rules })
	r := &releases{joiner: j}
	if p := rules.Provisional; p != nil {
		r.provisional, r.measures = true, p.After == loop.Window{}
	}
	r.off = lead > 1 && (partitions > 1 || r.measures)
	return r
}

// decided gives the decision of the next round, whose outcome may never come.
func (r *releases) decided(d *codec.Decision, logTime int64, never bool) error {
	r.time = logTime
	e := loop.DecisionEvent{Offset: int64(len(r.after)), Time: logTime, D: *d}
	c := codec.Cut{Decisions: []codec.Range{{Partition: d.Partition, Next: e.Offset + 1}}}
	if err := r.take(&c, loop.Batch{Decisions: []loop.DecisionEvent{e}}); err != nil {
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
func (r *releases) close() error {
	err := r.advance()
	r.after[len(r.after)-1] = r.count()
	return err
}

// advance cuts time alone, to behind the last decision.
func (r *releases) advance() error {
	r.time++
	err := r.take(new(codec.Cut))
	r.time--
	return err
}

// take gives the joiner the next cut, up to the time at hand.
func (r *releases) take(c *codec.Cut, b ...loop.Batch) error {
	r.cuts++
	c.Cut, c.Time = r.cuts, r.time
	return r.joiner.Take(c, b)
}

// later says that whatever is written now will have a later log time than the last decision.
func (r *releases) later() { r.time++ }

// outcome gives an outcome that comes right after the last decision.
func (r *releases) outcome(o *codec.Outcome, last bool) error {
	e := loop.OutcomeEvent{Offset: r.outcomes, Time: r.time, O: *o, Last: last}
	r.outcomes++
	c := codec.Cut{Outcomes: []codec.Range{{Next: r.outcomes}}}
	err := r.take(&c, loop.Batch{Outcomes: []loop.OutcomeEvent{e}})
	r.after[len(r.after)-1] = r.count()
	return err
}

func (r *releases) count() int64 {
	r.joiner.Ready(&r.ready)
	r.n += int64(len(r.ready.Feedback))
	for i := range r.ready.Feedback {
		r.finals.Note(&r.ready.Feedback[i])
	}
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
// with it those behind it. Where the order is not known, nor is how many provisional records there are.
func (r *releases) atEnd() (int64, error) {
	err := r.advance()
	n := r.count()
	if r.off && r.provisional {
		n = r.finals.Among(n)
	}
	return n, err
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
			return errors.New("nothing was learned for " + injectStall.String())
		}
	}
}
