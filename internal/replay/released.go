package replay

import (
	"context"
	"errors"
	"sync"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
)

// releases tells how many rounds a joiner can have released after each decision and
// the outcomes that come right after it. It never says too many.
type releases struct {
	s     *schedule
	rules *loop.Rules
	ends  []int32 // of several partitions: the decision that ends a round's window; n: none does
	off   bool    // the order of release cannot be known
	n     int64
}

// newReleases returns what tells of rounds that are decided in the partition that lane
// says. The joiner releases in the order in which it reads decisions, which of several
// partitions is that of the rounds only if one is decided at a time.
func newReleases(s *schedule, rules *loop.Rules, partitions, lead int, lane func(t int) int) *releases {
	r := &releases{s: s, rules: rules, off: partitions > 1 && lead > 1}
	if partitions == 1 {
		return r
	}
	lanes := make([][]int32, partitions)
	r.ends = make([]int32, s.n)
	for t := range r.ends {
		p := lane(t)
		lanes[p] = append(lanes[p], int32(t))
	}
	for _, rounds := range lanes {
		for k, t := range rounds {
			r.ends[t] = int32(s.n)
			if end := int64(k) + rules.Window.Rounds; end < int64(len(rounds)) {
				r.ends[t] = rounds[end]
			}
		}
	}
	return r
}

// end returns the decision that ends the window of round i, counted in rounds.
func (r *releases) end(i int64) int64 {
	if r.ends != nil {
		return int64(r.ends[i])
	}
	return i + r.rules.Window.Rounds
}

// simple reports whether a round is released as soon as it and those before it, if it waits
// for them, have their first outcome, or a later decision ends their window.
func simple(r *loop.Rules) bool {
	return r.Window.Rounds > 0 && r.Outcomes == loop.First && !r.Activation && !r.Arrival
}

// after returns the rounds released after decision t = 0, 1, 2, …, which must be known;
// t must not decrease from call to call. It is 0 for models that release by other rules.
func (r *releases) after(t int) int64 {
	if !simple(r.rules) || r.off {
		return 0
	}
	for r.n <= int64(t) && r.n < int64(len(r.s.raw)) && r.ready(int(r.n), int64(t)) {
		r.n++
	}
	ahead := int64(0)
	for i := r.n; r.rules.Early && i <= int64(t) && i < int64(len(r.s.raw)); i++ {
		if !r.s.waits[i] && r.ready(int(i), int64(t)) {
			ahead++
		}
	}
	return r.n + ahead
}

// atEnd returns the rounds that are released when all outcomes have come and nothing
// is decided any more. A round that has none and whose window is not over by then
// waits on, and with it those behind it.
func (r *releases) atEnd() int64 {
	n, blocked := int64(0), false
	for i, d := range r.s.raw {
		switch {
		case r.stays(int64(i), d):
			blocked = true
		case !blocked, r.rules.Arrival, r.rules.Early && !r.s.waits[i]:
			n++
		}
	}
	return n
}

// stays reports whether round i still waits at the end.
func (r *releases) stays(i, delay int64) bool {
	if delay != Never && r.rules.Outcomes == loop.First && !r.rules.Activation {
		return false
	}
	return r.rules.Window.Rounds == 0 || r.end(i) >= int64(len(r.s.raw))
}

// ready reports whether round i has its outcome, or is closed, after decision t. A
// round is closed when something comes after the decision that ends its window.
func (r *releases) ready(i int, t int64) bool {
	end := r.end(int64(i))
	if d := r.s.delay(i); d != Never && int64(i)+d < end {
		return t >= int64(i)+d
	}
	return t > end
}

// counter follows the feedback log and counts what was released.
type counter struct {
	mu      sync.Mutex
	n       int64
	err     error
	changed chan struct{} // closed and replaced at each change
	cancel  context.CancelFunc
	done    chan struct{}
}

func countFeedback(ctx context.Context, log stream.Log, topic string) (*counter, error) {
	_, from, err := log.Bounds(ctx, topic, 0)
	if err != nil {
		return nil, err
	}
	r, err := log.Read(ctx, topic, 0, from)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &counter{changed: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	go c.follow(ctx, r)
	return c, nil
}

func (c *counter) follow(ctx context.Context, r stream.Reader) {
	defer close(c.done)
	defer r.Close()
	var batch []stream.Record
	var err error
	for err == nil {
		batch, err = r.Next(ctx, batch[:0])
		n := int64(0)
		for i := range batch {
			if batch[i].Type == "" {
				n++
			}
		}
		c.mu.Lock()
		c.n, c.err = c.n+n, err
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

func (c *counter) close() {
	c.cancel()
	<-c.done
}

var errNoFeedback = errors.New("no feedback for " + injectStall.String())

// wait waits until n rounds are released, as long as there is some progress.
func (c *counter) wait(ctx context.Context, n int64) error {
	for {
		c.mu.Lock()
		have, err, changed := c.n, c.err, c.changed
		c.mu.Unlock()
		if have >= n {
			return nil
		}
		if err != nil {
			return err
		}
		timer := time.NewTimer(injectStall)
		select {
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
			return errNoFeedback
		}
	}
}
