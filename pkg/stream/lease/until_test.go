package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/testkit/leasetest"
	"hindsight/pkg/stream/lease"
)

// slow is one keeper's way to a store: changes arrive at once, their answers come later, and while it
// is away nothing arrives.
type slow struct {
	lease.Store
	delay time.Duration
	away  atomic.Bool
	sent  time.Time // of the last update that arrived
}

func (s *slow) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	next, err := s.Store.Create(ctx, key, value)
	time.Sleep(s.delay)
	return next, err
}

func (s *slow) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if s.away.Load() {
		return 0, errors.New("away")
	}
	s.sent = time.Now()
	next, err := s.Store.Update(ctx, key, value, revision)
	time.Sleep(s.delay)
	return next, err
}

// TestOneHolder holds that nobody else can have a lease while its context lives, also when the
// store goes away just after a renewal.
func TestOneHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(ttl)
		way := &slow{Store: store}
		h := try(t, lease.NewKeeper(way, "a"), "joiner")
		time.Sleep(ttl/3 + 1)
		way.away.Store(true)
		other := lease.NewKeeper(store, "b")
		for {
			held := h.Context().Err() == nil
			got, err := other.Try(t.Context(), "joiner")
			if err == nil {
				if held {
					t.Error("two have the lease")
				}
				got.Release()
				break
			}
			time.Sleep(ttl / 100)
		}
		h.Release()
	})
}

// TestSlowAnswer holds that a renewal counts from when it was asked for: the store does not count
// from its answer.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &slow{Store: leasetest.NewMemory(ttl), delay: ttl / 4}
		h := try(t, lease.NewKeeper(way, "a"), "joiner")
		time.Sleep(ttl)
		if lost(h) {
			t.Fatal("lost by slow answers")
		}
		way.away.Store(true)
		<-h.Context().Done()
		if took := time.Since(way.sent); took > ttl*7/8 {
			t.Errorf("it ended %v after the last renewal was asked for", took)
		}
		h.Release()
	})
}

// TestSlowTry holds that a lease that was taken counts from when it was asked for.
func TestSlowTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &slow{Store: leasetest.NewMemory(ttl), delay: ttl / 4}
		way.away.Store(true) // of renewals
		start := time.Now()
		h := try(t, lease.NewKeeper(way, "a"), "joiner")
		<-h.Context().Done()
		if took := time.Since(start); took != ttl*7/8 || !lost(h) {
			t.Errorf("it ended %v after it was asked for", took)
		}
		h.Release()
	})
}

// TestEntryGone holds that a lease whose entry the store has dropped is lost at the next renewal: another can have it.
func TestEntryGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(ttl)
		start := time.Now()
		h := try(t, lease.NewKeeper(store, "a"), "joiner")
		e, err := store.Get(t.Context(), "joiner")
		if err == nil {
			err = store.Delete(t.Context(), "joiner", e.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-h.Context().Done()
		if took := time.Since(start); took != ttl/3 || !lost(h) {
			t.Errorf("it ended after %v", took)
		}
		h.Release()
	})
}

// TestContextOfTry holds that a lease's context ends with that of Try, and the lease is kept until its release.
func TestContextOfTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(ttl)
		ctx, cancel := context.WithCancel(t.Context())
		h, err := lease.NewKeeper(store, "a").Try(ctx, "joiner")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if h.Context().Err() == nil || lost(h) {
			t.Errorf("the context of a lease outlives that of Try, or is lost: %v", context.Cause(h.Context()))
		}
		time.Sleep(2 * ttl)
		if _, err := lease.NewKeeper(store, "b").Try(t.Context(), "joiner"); !errors.Is(err, lease.ErrTaken) {
			t.Errorf("not kept: %v", err)
		}
		h.Release()
	})
}
