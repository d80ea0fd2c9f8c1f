package service

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/stream/lease"
)

// Sharing divides the work on a model among the processes that are there for it: by leases ([Leased]), or by what else
// a log has for that. A process without one does all of the work. It gives liveness, not safety: what is written by one
// that has lost its part is rejected by the fence of the log.
type Sharing interface {
	// Deciders calls run, in a goroutine of its own, for each partition that this process is to decide, until ctx ends
	// or a run fails, and returns that error when all have returned. The context of a run ends when its partition is to
	// be given up, with [lease.ErrLost] as its cause if another process may have it already; else the others have to
	// wait until it returns.
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
	defer cfg.standBy(ctx, watch.RoleJoiner, watch.RoleJoiner, join.TopicsOf(cfg.Source.Name).Feedback,
		"another process has the lease, or it cannot be asked for")()
	return s.Joiner(ctx, cfg.Logger, func(ctx context.Context) error {
		return cfg.leased(ctx, watch.RoleJoiner, cfg.Source.Name, func() error { return runJoiner(ctx, cfg, ready) })
	})
}

// runSharedDeciders runs the deciders of this process's share of the partitions.
func (c *SystemConfig) runSharedDeciders(ctx context.Context, ready func()) error {
	defer c.standBy(ctx, watch.RoleDecider, "deciders", join.TopicsOf(c.Name).Contexts,
		"other processes own all partitions, or this one has not got its share yet")()
	return c.Sharing.Deciders(ctx, c.Partitions, c.Logger.With("role", "decider"),
		func(ctx context.Context, p int) error {
			return c.leased(ctx, watch.RoleDecider, c.Name, func() error {
				return runDecider(ctx, c.decider(p),
					ready)
			})
		})
}

// leased runs something for a model under a lease, whose context ctx is, and counts what happens to the lease.
// It refuses to go on in another encoding than the model's: when this process chose its encoding, with nothing
// written yet, another one may have chosen the other.
func (c *SystemConfig) leased(ctx context.Context, role, name string, run func() error) error {
	m := c.Metrics
	m.Lease(role, watch.LeaseAcquired)
	_, err := topics.Encoding(ctx, c.Log, name, c.Encoding.String())
	if !errors.Is(err, topics.ErrEncoding) { // a log that cannot be read is waited for elsewhere
		err = run()
	}
	if errors.Is(context.Cause(ctx), lease.ErrLost) {
		m.Lease(role, watch.LeaseLost)
	} else {
		m.Lease(role, watch.LeaseReleased)
	}
	return err
}

// standBy tells why a part stands by, and looks whether the log answers, until stop is called: a part that waits
// because the log is away says so.
func (c *SystemConfig) standBy(ctx context.Context, role, name, topic, why string) (stop func()) {
	p := c.Health.Join(role, name)
	p.Set(watch.StandingBy, why)
	ctx, cancel := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		lookOn(ctx, func(outer context.Context) {
			ctx, cancel := context.WithTimeout(outer, lookLimit)
			defer cancel()
			if _, _, err := c.Log.Bounds(ctx, topic, 0); outer.Err() == nil {
				p.Reach(nil, err)
			}
		})
	})
	return func() {
		cancel()
		looks.Wait()
		p.Leave()
	}
}
