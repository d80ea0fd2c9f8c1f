package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// fenceWait is how long one waits after another owner took over: re-opening at once would fence that one in turn.
const fenceWait = 10 * time.Second

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// runJoiner keeps a joiner at work until the context ends: after an error it opens a new one, which recovers from the
// log. Only a refused model ends it. ready is called each time it is at work; it may be nil.
func runJoiner(ctx context.Context, cfg SystemConfig, ready func()) error {
	return cfg.supervise(ctx, watch.RoleJoiner, watch.RoleJoiner, func(ctx context.Context, part *watch.Part) (worker,
		error) {
		cfg.note(ctx)
		j, err := OpenJoiner(ctx, cfg)
		if err != nil {
			return nil, err
		}
		j.part = part
		part.Set(watch.Working, "")
		if ready != nil {
			ready()
		}
		return j, nil
	})
}

// runDecider keeps a decider at work in the same way. ready is called when it has a model to decide with.
func runDecider(ctx context.Context, cfg SystemConfig, ready func()) error {
	name := fmt.Sprintf("decider of partition %d", cfg.Partition)
	return cfg.supervise(ctx, watch.RoleDecider, name, func(ctx context.Context, part *watch.Part) (worker, error) {
		d, err := OpenDecider(ctx, cfg)
		if err != nil {
			return nil, err
		}
		d.part = part
		part.Set(watch.Waiting, "no epoch: no joiner has announced the model yet")
		d.ready = func() {
			part.Set(watch.Working, "")
			if ready != nil {
				ready()
			}
		}
		return d, nil
	})
}

// worker is a decider or a joiner.
type worker interface {
	Run(ctx context.Context) error
	Close()
}

// supervise opens a worker and runs it, and again after an error, until the context ends.
func (c *SystemConfig) supervise(ctx context.Context, role, name string,
	open func(ctx context.Context, part *watch.Part) (worker, error)) error {
	c.complete()
	part := c.Health.Join(role, name)
	defer part.Leave()
	defer context.AfterFunc(ctx, part.End)()
	work := c.Metrics.AtWork.WithLabelValues(role)
	wait, why := firstRetry, ""
	for {
		start := time.Now()
		part.Set(watch.Recovering, why)
		w, err := open(ctx, part)
		if err == nil {
			work.Inc()
			err = w.Run(ctx)
			w.Close()
			work.Dec()
		}
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				c.Logger.Warn(role+" did not stop cleanly; the next start recovers from the log", "error", err)
			}
			return nil
		}
		c.Metrics.Restart(role, errors.Is(err, stream.ErrFenced))
		if err != nil {
			why = err.Error()
			part.Set(watch.Stopped, why)
		}
		if fatal(err) {
			return fmt.Errorf("%s: %w", role, err)
		}
		if time.Since(start) > time.Minute {
			wait = firstRetry
		}
		pause := wait
		if errors.Is(err, stream.ErrFenced) {
			pause = fenceWait
		}
		c.Logger.Error(role+" stopped; it will be opened again", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		wait = min(2*wait, lastRetry)
	}
}

// fatal reports whether opening again cannot help.
func fatal(err error) bool {
	return errors.Is(err, follow.ErrModel) || errors.Is(err, stream.ErrTruncated) || errors.Is(err,
		topics.ErrEncoding) || follow.Newer(err)
}

// stopGrace is how long work that is under way at a stop may take to finish.
const stopGrace = 5 * time.Second

// outlive returns a context that ends stopGrace after ctx does.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	detach := context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })
	return work, func() { detach(); cancel() }
}
