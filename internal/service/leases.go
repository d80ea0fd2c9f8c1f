package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

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

// Leased shares the work by leases.
func Leased(k *lease.Keeper) Sharing { return leased{k} }

type leased struct{ k *lease.Keeper }

func (l leased) Deciders(ctx context.Context, partitions int, logger *slog.Logger,
	run func(ctx context.Context, partition int) error) error {
	return runCrew(ctx, l.k, partitions, logger, run)
}

func (l leased) Joiner(ctx context.Context, logger *slog.Logger, run func(ctx context.Context) error) error {
	return underLease(ctx, l.k, joinerLease, logger, run)
}

// underLease runs something each time that it holds a lease, until the context ends or it fails.
func underLease(ctx context.Context, k *lease.Keeper, key string, logger *slog.Logger,
	run func(context.Context) error) error {
	for {
		h, err := k.Acquire(ctx, key, func(holder string, err error) {
			if err != nil {
				logger.Warn("the lease cannot be requested; retrying", "lease", key, "error", err)
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

// crew is the deciders of one process that shares the partitions with others: each process that is alive takes its
// share, gives back what is too much when another one comes, and takes over what one leaves that goes or dies.
type crew struct {
	keeper     *lease.Keeper
	partitions int
	logger     *slog.Logger
	run        func(ctx context.Context, p int) error // a decider, until the context ends or it cannot go on

	g     *errgroup.Group
	hands map[int]*hand
	ended chan int
	told  string
}

// hand is one decider at work.
type hand struct {
	stop     context.CancelFunc
	stopping bool
}

// runCrew works until the context ends or a decider cannot go on.
func runCrew(ctx context.Context, k *lease.Keeper, partitions int, logger *slog.Logger,
	run func(ctx context.Context, p int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	w := &crew{keeper: k, partitions: partitions, logger: logger, run: run, g: g, hands: map[int]*hand{},
		ended: make(chan int, partitions)}
	quiet := slog.New(slog.DiscardHandler) // nobody else wants this lease
	g.Go(func() error {
		return underLease(ctx, k, memberPrefix+k.Nonce(), quiet, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	})
	g.Go(func() error {
		w.watch(ctx)
		return nil
	})
	return g.Wait()
}

// watch looks at the leases from time to time.
func (w *crew) watch(ctx context.Context) {
	tick := time.NewTicker(w.keeper.Beat())
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.tell(slog.LevelWarn, "the leases cannot be requested; retrying", "error", err)
		}
		select {
		case p := <-w.ended:
			delete(w.hands, p)
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// tell logs what was not the last thing told.
func (w *crew) tell(level slog.Level, text string, args ...any) {
	if w.told != text {
		w.told = text
		w.logger.Log(context.Background(), level, text, args...)
	}
}

// look gives back what is too much and takes what is free, up to the share.
func (w *crew) look(ctx context.Context) error {
	claims, err := w.keeper.Claims(ctx)
	if err != nil {
		return err
	}
	taken, member := map[string]string{}, false
	for _, c := range claims {
		taken[c.Key] = c.Holder
		member = member || c.Key == memberPrefix+w.keeper.Nonce()
	}
	if !member {
		return nil // not yet, or not again: keep what there is
	}
	share := lease.Share(w.partitions, claims, memberPrefix, w.keeper.Nonce())
	have := 0
	for p := range w.partitions {
		h := w.hands[p]
		if h == nil || h.stopping {
			continue
		}
		if have++; have > share {
			w.logger.Info("handing a partition to another process", "partition", p)
			h.stopping = true
			h.stop()
		}
	}
	for p := 0; p < w.partitions && have < share; p++ {
		if w.hands[p] != nil || taken[deciderLease(p)] != "" {
			continue
		}
		switch err := w.take(ctx, p); {
		case err == nil:
			have++
		case !errors.Is(err, lease.ErrTaken):
			return err
		}
	}
	if len(w.hands) == 0 {
		w.tell(slog.LevelInfo, "standing by", "partitions", w.partitions, "share", share)
	} else {
		w.told = ""
	}
	return nil
}

// take claims a partition and sets a decider to work on it.
func (w *crew) take(ctx context.Context, p int) error {
	ctx, stop := context.WithCancel(ctx)
	held, err := w.keeper.Try(ctx, deciderLease(p))
	if err != nil {
		stop()
		return err
	}
	w.hands[p] = &hand{stop: stop}
	w.logger.Info("partition taken", "partition", p)
	w.g.Go(func() error {
		err := w.run(held.Context(), p)
		lost := context.Cause(held.Context())
		held.Release()
		stop()
		if errors.Is(lost, lease.ErrLost) {
			w.logger.Warn("stopped deciding: "+lost.Error(), "partition", p)
		}
		w.ended <- p
		return err
	})
	return nil
}
