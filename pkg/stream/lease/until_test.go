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
