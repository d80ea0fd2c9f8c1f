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

// Leased shares the work by leases: none, nil, if the keeper holds every lease always.
func Leased(k *lease.Keeper) Sharing {
	if k == nil || k.Always() {
		return nil
	}
	return leased{k}
}

type leased struct{ k *lease.Keeper }

func (l leased) Deciders(ctx context.Context, partitions int, logger *slog.Logger, run func(ctx context.Context, partition int) error) error {
	return runCrew(ctx, l.k, partitions, logger, run)
}

func (l leased) Joiner(ctx context.Context, logger *slog.Logger, run func(ctx context.Context) error) error {
	return underLease(ctx, l.k, joinerLease, logger, run)
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
