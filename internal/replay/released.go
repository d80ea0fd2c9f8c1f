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
	s      *Schedule
	window int64
	off    bool // the model releases by other rules: say 0
	t      int  // decisions looked at
	n      int64
}

func newReleases(s *Schedule, r *loop.Rules) *releases {
	return &releases{s: s, window: r.Window.Rounds, off: r.Window.Rounds == 0 || r.Outcomes != loop.First || r.Activation || r.Arrival}
}

// after returns the rounds released after decision t = 0, 1, 2, …; t must not
// decrease from call to call.
func (r *releases) after(t int) int64 {
	if r.off {
		return 0
	}
	for r.n < int64(len(r.s.Raw)) && r.ready(int(r.n), int64(t)) {
		r.n++
	}
	return r.n
}

// ready reports whether round i has its outcome, or is closed, after decision t. A
// round is closed when something comes after the decision that ends its window.
func (r *releases) ready(i int, t int64) bool {
	if d := r.s.delay(i); d != Never && d < r.window {
		return t >= int64(i)+d
	}
	return t > int64(i)+r.window
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
