package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"hindsight/internal/front"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"

	"golang.org/x/sync/errgroup"
)

// Requests, contexts and learning take turns. A mutex hands itself to whoever waited for a millisecond, so learning
// waits for no more than that and the slice at work: it has about a sixth of the time while there is anything to learn.
const (
	learnSlice   = time.Millisecond     // learning between decisions
	contextSlice = 256                  // contexts between requests and learning
	contextTime  = 4 * time.Millisecond // and what they may take
	markInterval = time.Hour            // a tail always exists
)

// Run decides and learns until the context ends or something fails, and leaves a clean tail behind: everything appended
// is acknowledged, and a snapshot holds what was learned.
func (d *Decider) Run(ctx context.Context) error {
	work, cancel := outlive(ctx)
	defer cancel()
	d.slice = contextTime
	d.contexts.Start(work, d.wake)
	d.follower.In.Start(work, func() { front.Signal(d.feedback) })
	if err := d.serve(); err != nil {
		return err
	}
	d.stops = append(d.stops, d.cfg.Insight.enter(d))
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.runContexts(gctx, work) })
	g.Go(func() error { return d.runFeedback(gctx, work) })
	g.Go(func() error { return lookOn(gctx, d.look) })
	if err := g.Wait(); err != nil {
		return err
	}
	return d.stop(work)
}

func (d *Decider) serve() error {
	if d.cfg.front == nil {
		return nil
	}
	d.gate = front.NewGate("decide", d.cfg.Metrics, d.requestInTurn)
	d.stops = append(d.stops, d.gate.Close)
	leave, err := d.cfg.front.Enter(d.cfg.Partition, d.gate)
	if err == nil {
		d.stops = append(d.stops, leave)
	}
	return err
}

func (d *Decider) runContexts(ctx, work context.Context) error {
	mark := time.NewTicker(markInterval)
	defer mark.Stop()
	idle := time.NewTicker(watch.BeatEvery)
	defer idle.Stop()
	alive := d.part.Loop("contexts")
	for ctx.Err() == nil {
		alive.Beat()
		busy, err := d.StepContexts(work, contextSlice)
		if err != nil {
			return err
		}
		if busy {
			continue
		}
		select {
		case <-ctx.Done():
		case <-idle.C:
		case <-d.wakeup:
		case <-mark.C:
			d.mu.Lock()
			err := d.mark(work, codec.DecisionMark{})
			d.mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Decider) runFeedback(ctx, work context.Context) error {
	idle := time.NewTicker(watch.BeatEvery)
	defer idle.Stop()
	alive := d.part.Loop("feedback")
	d.follower.Pause = func() error {
		alive.Beat()
		d.ahead(work)
		return ctx.Err()
	}
	for ctx.Err() == nil {
		alive.Beat()
		busy, err := d.StepFeedback(work, learnSlice)
		// an epoch was not begun, which the next start does
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		if err != nil {
			return err
		}
		if d.ready != nil && d.decides() != nil { // what that looks at changes in this goroutine alone
			d.ready()
			d.ready = nil
		}
		if err := d.WriteSnapshots(work); err != nil {
			d.cfg.Logger.Warn("snapshot not written", "error", err)
		}
		if busy {
			d.wake() // an epoch may have begun
			continue
		}
		select {
		case <-ctx.Done():
		case <-idle.C:
		case <-d.feedback:
		}
	}
	return nil
}

// stop ends serving, waits for what is on its way, and writes a last mark and snapshot.
func (d *Decider) stop(ctx context.Context) error {
	d.unserve()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.unmarked {
		if err := d.mark(ctx, codec.DecisionMark{}); err != nil {
			return err
		}
	}
	if err := d.out.Flush(ctx); err != nil {
		return err
	}
	waiting := d.WriteSnapshots(ctx) // before there is another
	s := d.follower.Snapshot()
	if s == nil {
		return nil
	}
	// Of deciders that have learned as much the bytes are equal, which anyone may compare.
	d.cfg.Logger.Info("decider stops", "learned_through", s.Through, "learner", s.SHA256())
	if waiting != nil || d.cfg.SnapshotEvery == 0 || s.Through == d.snapped {
		return waiting
	}
	return d.writeSnapshot(ctx, s)
}

// unserve ends what was begun, the last first: nothing comes any more when the gate closes.
func (d *Decider) unserve() {
	for _, stop := range slices.Backward(d.stops) {
		stop()
	}
	d.stops = nil
}
