package service

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hindsight/pkg/stream/lease"
)

// crew is the deciders of one process that shares the partitions with others: each
// process that is alive takes its share, gives back what is too much when another
// one comes, and takes over what one leaves that goes or dies.
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
func runCrew(ctx context.Context, k *lease.Keeper, partitions int, logger *slog.Logger, run func(ctx context.Context, p int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	w := &crew{keeper: k, partitions: partitions, logger: logger, run: run, g: g, hands: map[int]*hand{}, ended: make(chan int, partitions)}
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
			w.tell(slog.LevelWarn, "the leases cannot be asked for; trying on", "error", err)
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

// once returns a function that calls f the first time it is called.
func once(f func()) func() {
	var done atomic.Bool
	return func() {
		if !done.Swap(true) {
			f()
		}
	}
}
