package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hindsight/pkg/stream/lease"
)

// LeaseTTL is how long a lease outlives its holder.
const LeaseTTL = 10 * time.Second

// LeaseBucket returns the name of the store of a model's leases.
func LeaseBucket(name string) string { return name + "_leases" }

// The leases of a model: one for the joiner, one for each partition of decisions,
// and one for each process that decides, by which they know each other.
const (
	joinerLease  = "joiner"
	memberPrefix = "member."
)

func deciderLease(p int) string { return fmt.Sprintf("decider.%d", p) }

// RunLeasedJoiner is [RunJoiner] for processes of which one is to be the joiner: it
// stands by until it gets the lease, and again when it has lost it.
func RunLeasedJoiner(ctx context.Context, k *lease.Keeper, cfg JoinerConfig, ready func()) error {
	idle := cfg.Health.join(RoleJoiner, RoleJoiner)
	idle.set(standingBy, "another process has the lease, or it cannot be asked for")
	defer idle.leave()
	if k.Always() {
		return RunJoiner(ctx, cfg, ready)
	}
	return underLease(ctx, k, joinerLease, cfg.Logger, func(ctx context.Context) error {
		return counted(ctx, cfg.Metrics, RoleJoiner, func() error { return RunJoiner(ctx, cfg, ready) })
	})
}

// counted runs something under a lease, whose context ctx is, and counts what happens
// to the lease.
func counted(ctx context.Context, m *Metrics, role string, run func() error) error {
	m.lease(role, leaseAcquired)
	err := run()
	if errors.Is(context.Cause(ctx), lease.ErrLost) {
		m.lease(role, leaseLost)
	} else {
		m.lease(role, leaseReleased)
	}
	return err
}

// underLease runs something each time that it holds a lease, until the context
// ends or it fails.
func underLease(ctx context.Context, k *lease.Keeper, key string, logger *slog.Logger, run func(context.Context) error) error {
	for {
		h, err := k.Acquire(ctx, key, func(holder string, err error) {
			if err != nil {
				logger.Warn("the lease cannot be asked for; trying on", "lease", key, "error", err)
				return
			}
			logger.Info("standing by", "lease", key, "holder", holder)
		})
		if err != nil {
			return nil // the context has ended
		}
		err = run(h.Context())
		lost := context.Cause(h.Context())
		h.Release()
		if err != nil || ctx.Err() != nil {
			return err
		}
		if errors.Is(lost, lease.ErrLost) {
			logger.Warn("stopped: "+lost.Error(), "lease", key)
		}
	}
}
