package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/testkit/leasetest"
	"hindsight/pkg/stream/lease"
)

// hung is a store some of whose calls get no answer.
type hung struct {
	lease.Store
	mu    sync.Mutex
	hangs map[string]bool
	began []time.Time // calls that got none
}

func newHung(calls ...string) *hung {
	h := &hung{Store: leasetest.NewMemory(ttl), hangs: map[string]bool{}}
	h.hang(calls...)
	return h
}

func (h *hung) hang(calls ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.hangs)
	for _, c := range calls {
		h.hangs[c] = true
	}
}

func (h *hung) wait(ctx context.Context, call string) error {
	h.mu.Lock()
	hangs := h.hangs[call]
	if hangs {
		h.began = append(h.began, time.Now())
	}
	h.mu.Unlock()
	if !hangs {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hung) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := h.wait(ctx, "create"); err != nil {
		return 0, err
	}
	return h.Store.Create(ctx, key, value)
}

func (h *hung) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := h.wait(ctx, "update"); err != nil {
		return 0, err
	}
	return h.Store.Update(ctx, key, value, revision)
}

func (h *hung) Delete(ctx context.Context, key string, revision uint64) error {
	if err := h.wait(ctx, "delete"); err != nil {
		return err
	}
	return h.Store.Delete(ctx, key, revision)
}

func (h *hung) Get(ctx context.Context, key string) (lease.Entry, error) {
	if err := h.wait(ctx, "get"); err != nil {
		return lease.Entry{}, err
	}
	return h.Store.Get(ctx, key)
}

func (h *hung) List(ctx context.Context) ([]lease.Entry, error) {
	if err := h.wait(ctx, "list"); err != nil {
		return nil, err
	}
	return h.Store.List(ctx)
}

// TestHungStore holds how long each call waits for a store that does not answer.
func TestHungStore(t *testing.T) {
	for name, c := range map[string]struct {
		hangs string
		call  func(t *testing.T, h *hung, k *lease.Keeper)
		want  time.Duration
	}{
		"Claims": {"list", func(t *testing.T, _ *hung, k *lease.Keeper) {
			if _, err := k.Claims(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}, ttl / 2},
		"Try": {"create", func(t *testing.T, _ *hung, k *lease.Keeper) {
			if _, err := k.Try(t.Context(), "joiner"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}, ttl / 2},
		"Release": {"delete", func(t *testing.T, _ *hung, k *lease.Keeper) { try(t, k, "joiner").Release() }, ttl / 3},
		"a renewal": {"update", func(t *testing.T, _ *hung, k *lease.Keeper) {
			h := try(t, k, "joiner")
			<-h.Context().Done()
			if !lost(h) {
				t.Error("not lost")
			}
			h.Release()
		}, ttl * 7 / 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHung(c.hangs)
				start := time.Now()
				c.call(t, h, lease.NewKeeper(h, "a"))
				if took := time.Since(start); took != c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestRenewals holds when a lease is renewed: after a third of its TTL; where the store does not answer for
// another third, a twentieth later.
func TestRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHung("update")
		start := time.Now()
		held := try(t, lease.NewKeeper(h, "a"), "joiner")
		<-held.Context().Done()
		held.Release()
		want := []time.Duration{ttl / 3, ttl/3 + ttl/3 + ttl/20}
		var got []time.Duration
		for _, at := range h.began {
			got = append(got, at.Sub(start))
		}
		if !slices.Equal(got, want) {
			t.Errorf("renewed after %v, want %v", got, want)
		}
	})
}

// TestWaitingIsToldOnce holds that one who waits is told of a holder once, however often the store does not
// answer, and need not be told at all.
func TestWaitingIsToldOnce(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newHung("get")
			other := lease.NewKeeper(h.Store, "a")
			held := try(t, other, "joiner")
			defer held.Release()
			ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
			defer cancel()
			told := map[string]int{}
			waiting := func(holder string, err error) { told[holder]++ }
			if silent {
				waiting = nil
			}
			if _, err := lease.NewKeeper(h, "b").Acquire(ctx, "joiner", waiting); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Error(err)
			}
			if !silent && (len(told) != 1 || told["another process"] != 1) {
				t.Errorf("told %v", told)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			// Each turn asks for the holder for half a TTL, waits a beat and asks for the entry for half a TTL.
			want := []time.Duration{0, ttl/2 + ttl/10, ttl + ttl/10, ttl + ttl/2 + 2*(ttl/10)}
			for i, d := range want {
				if got := h.began[i].Sub(h.began[0]); got != d {
					t.Errorf("silent %v: call %d began after %v, want %v", silent, i, got, d)
				}
			}
		})
	}
}

// TestReleaseAfterLostAnswer holds that a release frees a lease whose last renewal was stored and not
// answered, and leaves alone what somebody else has by now.
func TestReleaseAfterLostAnswer(t *testing.T) {
	for _, other := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &lossy{Store: leasetest.NewMemory(ttl)}
			store.lose.Store(true)
			h := try(t, lease.NewKeeper(store, "a"), "joiner")
			time.Sleep(ttl/3 + 1)
			if store.lose.Load() {
				t.Fatal("not renewed")
			}
			if other {
				e, err := store.Get(t.Context(), "joiner")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.Store.Update(t.Context(), "joiner", []byte(`{"holder":"b"}`),
					e.Revision); err != nil {
					t.Fatal(err)
				}
			}
			h.Release()
			e, err := store.Get(t.Context(), "joiner")
			if other != (err == nil) || other && string(e.Value) != `{"holder":"b"}` {
				t.Errorf("another has it: %v; left: %s, %v", other, e.Value, err)
			}
		})
	}
}

// stale is a store one of whose servers has not heard of the last change.
type stale struct {
	lease.Store
	old atomic.Pointer[lease.Entry] // nil: all have heard of all
}

func (s *stale) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if s.old.Load() != nil {
		return 0, lease.ErrTaken
	}
	return s.Store.Update(ctx, key, value, revision)
}

func (s *stale) Get(ctx context.Context, key string) (lease.Entry, error) {
	if old := s.old.Load(); old != nil {
		return *old, nil
	}
	return s.Store.Get(ctx, key)
}

// TestStaleRead holds that a lease that was refused to its holder is lost at once, though another server
// still shows the holder's own entry.
func TestStaleRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stale{Store: leasetest.NewMemory(ttl)}
		start := time.Now()
		h := try(t, lease.NewKeeper(s, "a"), "joiner")
		time.Sleep(ttl/3 + 1)
		old, err := s.Store.Get(t.Context(), "joiner")
		if err != nil {
			t.Fatal(err)
		}
		s.old.Store(&old)
		<-h.Context().Done()
		if took := time.Since(start); took != ttl/3+ttl/3 || !lost(h) {
			t.Errorf("lost after %v: %v", took, context.Cause(h.Context()))
		}
		h.Release()
	})
}

// counted counts what is asked of a store, and says when.
type counted struct {
	lease.Store
	creates int
	updates []time.Time
	fails   int // updates that fail yet
}

func (c *counted) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	c.creates++
	return c.Store.Create(ctx, key, value)
}

func (c *counted) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	c.updates = append(c.updates, time.Now())
	if c.fails > 0 {
		c.fails--
		return 0, errors.New("away")
	}
	return c.Store.Update(ctx, key, value, revision)
}

// TestWaitingOnlyLooks holds that one who waits does not try to take a lease while its entry is there.
func TestWaitingOnlyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Store: leasetest.NewMemory(ttl)}
		held := try(t, lease.NewKeeper(c.Store, "a"), "joiner")
		defer held.Release()
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		if _, err := lease.NewKeeper(c, "b").Acquire(ctx, "joiner", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if c.creates != 1 {
			t.Errorf("it tried %d times", c.creates)
		}
	})
}

// TestRenewedEachThird holds that a lease is renewed each third of its TTL, also after one renewal failed.
func TestRenewedEachThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Store: leasetest.NewMemory(ttl), fails: 1}
		start := time.Now()
		held := try(t, lease.NewKeeper(c, "a"), "joiner")
		time.Sleep(ttl * 13 / 10)
		held.Release()
		const third = ttl / 3
		for i, want := range []time.Duration{third, third + ttl/20, 2*third + ttl/20, 3*third + ttl/20} {
			if i >= len(c.updates) || c.updates[i].Sub(start) != want {
				t.Fatalf("renewals at %v, want the %dth after %v", c.updates, i+1, want)
			}
		}
		if len(c.updates) != 4 {
			t.Errorf("%d renewals", len(c.updates))
		}
	})
}

// foreign is a store in which somebody else has an entry, too: the first.
type foreign struct{ lease.Store }

func (f foreign) List(ctx context.Context) ([]lease.Entry, error) {
	own, err := f.Store.List(ctx)
	return append([]lease.Entry{{Key: "other", Value: []byte("not ours"), Revision: 9}}, own...), err
}

// TestClaims holds what claims say: since when each was held, however often it was renewed; what is not a
// claim is passed over.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := foreign{leasetest.NewMemory(ttl)}
		k := lease.NewKeeper(store, "a")
		first, second := try(t, k, "one"), try(t, k, "two")
		defer first.Release()
		defer second.Release()
		for range 2 {
			claims, err := k.Claims(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			since := map[string]uint64{}
			for _, c := range claims {
				since[c.Key] = c.Since
			}
			if len(since) != 2 || since["one"] != 1 || since["two"] != 2 {
				t.Errorf("claims since %v", since)
			}
			time.Sleep(ttl)
		}
		if k.Beat() != ttl/10 {
			t.Errorf("it looks every %v", k.Beat())
		}
	})
}

// TestMemoryExpires holds that an entry of the store for tests is gone when its TTL is over, and not before.
func TestMemoryExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leasetest.NewMemory(ttl)
		if _, err := m.Create(t.Context(), "joiner", []byte("v")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			wait time.Duration
			left int
		}{{ttl - 1, 1}, {1, 0}} {
			time.Sleep(c.wait)
			all, err := m.List(t.Context())
			_, got := m.Get(t.Context(), "joiner")
			if err != nil || len(all) != c.left || errors.Is(got, lease.ErrNone) != (c.left == 0) {
				t.Errorf("%d entries, %v, %v", len(all), err, got)
			}
		}
	})
}
