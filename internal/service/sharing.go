package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
)

// Sharing divides the work on a model among the processes that are there for it: by
// leases ([Leased]), or by what else a log has for that. A process without one does
// all of the work. It gives liveness, not safety: what is written by one that has
// lost its part is rejected by the fence of the log.
type Sharing interface {
	// Deciders calls run, in a goroutine of its own, for each partition that this
	// process is to decide, until ctx ends or a run fails, and returns that error when all
	// have returned. The context of a run ends when its partition is to be given up,
	// with [lease.ErrLost] as its cause if another process may have it already; else
	// the others have to wait until it returns.
	Deciders(ctx context.Context, partitions int, logger *slog.Logger,
		run func(ctx context.Context, partition int) error) error
	// Joiner calls run in the same way each time that this process is to be the joiner.
	Joiner(ctx context.Context, logger *slog.Logger, run func(ctx context.Context) error) error
}

// RunSharedJoiner is runJoiner for processes of which one is to be the joiner: it
// stands by until it is to be this one, and again when it is it no longer.
func RunSharedJoiner(ctx context.Context, s Sharing, cfg SystemConfig, ready func()) error {
	cfg.setDefaults()
	if s == nil {
		return runJoiner(ctx, cfg, ready)
	}
	cfg.note(ctx)
	idle := cfg.Health.Join(watch.RoleJoiner, watch.RoleJoiner)
	idle.Set(watch.StandingBy, "another process has the lease, or it cannot be asked for")
	defer idle.Leave()
	defer watchLog(ctx, idle, cfg.Log, join.TopicsOf(cfg.Source.Name).Feedback)()
	return s.Joiner(ctx, cfg.Logger, func(ctx context.Context) error {
		return counted(ctx, cfg.Metrics, watch.RoleJoiner, func() error {
			if err := cfg.checkEncoding(ctx, cfg.Source.Name); err != nil {
				return err
			}
			return runJoiner(ctx, cfg, ready)
		})
	})
}

// checkEncoding refuses to go on in another encoding than the model's: when this process chose its
// encoding, with nothing written yet, another one may have chosen the other.
func (c *SystemConfig) checkEncoding(ctx context.Context, name string) error {
	_, err := topics.Encoding(ctx, c.Log, name, c.Encoding.String())
	if errors.Is(err, topics.ErrEncoding) {
		return err
	}
	return nil // a log that cannot be read is waited for elsewhere
}

// runSharedDeciders runs the deciders of this process's share of the partitions.
func (c *SystemConfig) runSharedDeciders(ctx context.Context, ready func()) error {
	share := c.Health.Join(watch.RoleDecider, "deciders")
	share.Set(watch.StandingBy, "other processes own all partitions, or this one has not got its share yet")
	defer share.Leave()
	defer watchLog(ctx, share, c.Log, join.TopicsOf(c.Name).Contexts)()
	return c.Sharing.Deciders(ctx, c.Partitions, c.Logger.With("role", "decider"),
		func(ctx context.Context, p int) error {
			return counted(ctx, c.Metrics, watch.RoleDecider, func() error {
				if err := c.checkEncoding(ctx, c.Name); err != nil {
					return err
				}
				return runDecider(ctx, c.decider(p), ready)
			})
		})
}

// counted runs something under a lease, whose context ctx is, and counts what happens
// to the lease.
func counted(ctx context.Context, m *watch.Metrics, role string, run func() error) error {
	m.Lease(role, watch.LeaseAcquired)
	err := run()
	if errors.Is(context.Cause(ctx), lease.ErrLost) {
		m.Lease(role, watch.LeaseLost)
	} else {
		m.Lease(role, watch.LeaseReleased)
	}
	return err
}

// watchLog looks whether the log answers, until stop is called: who stands by because
// nobody can be asked for a part should say so.
func watchLog(ctx context.Context, p *watch.Part, log stream.Log, topic string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		lookOn(ctx, func(outer context.Context) {
			ctx, cancel := context.WithTimeout(outer, lookLimit)
			defer cancel()
			if _, _, err := log.Bounds(ctx, topic, 0); outer.Err() == nil {
				p.Reach(nil, err)
			}
		})
	})
	return func() {
		cancel()
		looks.Wait()
	}
}
