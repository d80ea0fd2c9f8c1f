package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
)

// fenceWait is how long one waits after another owner took over: re-opening at once
// would fence that one in turn.
const fenceWait = 10 * time.Second

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// runJoiner keeps a joiner at work until the context ends: after an error it opens
// a new one, which recovers from the log. Only a refused model ends it. ready is
// called each time it is at work; it may be nil.
func runJoiner(ctx context.Context, cfg SystemConfig, ready func()) error {
	cfg.complete()
	s := supervised{role: watch.RoleJoiner, logger: cfg.Logger, metrics: cfg.Metrics,
		part: cfg.Health.Join(watch.RoleJoiner, watch.RoleJoiner)}
	return s.run(ctx, func(ctx context.Context) (func(context.Context) error, func(), error) {
		cfg.note(ctx)
		j, err := OpenJoiner(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		j.part = s.part
		s.part.Set(watch.Working, "")
		if ready != nil {
			ready()
		}
		return j.Run, j.Close, nil
	})
}

// runDecider keeps a decider at work in the same way. ready is called when it has a
// model to decide with.
func runDecider(ctx context.Context, cfg SystemConfig, ready func()) error {
	cfg.complete()
	s := supervised{role: watch.RoleDecider, logger: cfg.Logger, metrics: cfg.Metrics,
		part: cfg.Health.Join(watch.RoleDecider, fmt.Sprintf("decider of partition %d", cfg.Partition))}
	return s.run(ctx, func(ctx context.Context) (func(context.Context) error, func(), error) {
		d, err := OpenDecider(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		d.part = s.part
		s.part.Set(watch.Waiting, "no epoch: no joiner has announced the model yet")
		d.ready = func() {
			s.part.Set(watch.Working, "")
			if ready != nil {
				ready()
			}
		}
		return d.Run, d.Close, nil
	})
}

// supervised is a part of a process that is opened again after an error.
type supervised struct {
	role    string
	logger  *slog.Logger
	metrics *watch.Metrics
	part    *watch.Part
}

// run opens and runs until the context ends.
func (s *supervised) run(ctx context.Context, open func(context.Context) (run func(context.Context) error, close func(),
	err error)) error {
	defer s.part.Leave()
	defer context.AfterFunc(ctx, s.part.End)()
	work := s.metrics.AtWork.WithLabelValues(s.role)
	wait, why := firstRetry, ""
	for {
		start := time.Now()
		s.part.Set(watch.Recovering, why)
		run, closeIt, err := open(ctx)
		if err == nil {
			work.Inc()
			err = run(ctx)
			closeIt()
			work.Dec()
		}
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				s.logger.Warn(s.role+" did not stop cleanly; the next start recovers from the log", "error", err)
			}
			return nil
		}
		s.stopped(err)
		if fatal(err) {
			return fmt.Errorf("%s: %w", s.role, err)
		}
		if time.Since(start) > time.Minute {
			wait = firstRetry
		}
		pause := wait
		if errors.Is(err, stream.ErrFenced) {
			pause = fenceWait
		}
		if err != nil {
			why = err.Error()
		}
		s.logger.Error(s.role+" stopped; it will be opened again", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		wait = min(2*wait, lastRetry)
	}
}

// stopped notes an error that ended the part.
func (s *supervised) stopped(err error) {
	s.metrics.Restart(s.role, errors.Is(err, stream.ErrFenced))
	if err != nil {
		s.part.Set(watch.Stopped, err.Error())
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
