package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"hindsight/internal/testkit/leasetest"
	"hindsight/pkg/stream/lease"
)

const ttl = 10 * time.Second

func try(t *testing.T, k *lease.Keeper, key string) *lease.Held {
	t.Helper()
	h, err := k.Try(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHeld holds that a lease that is renewed is kept, for others too, and that one
// that is released is free at once.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(ttl)
		a, b := lease.NewKeeper(store, "a"), lease.NewKeeper(store, "b")
		h := try(t, a, "joiner")
		for range 20 {
			time.Sleep(ttl / 2)
			if _, err := b.Try(t.Context(), "joiner"); !errors.Is(err, lease.ErrTaken) {
				t.Fatalf("b gets the lease of a: %v", err)
			}
		}
		claims, err := a.Claims(t.Context())
		if err != nil || len(claims) != 1 || claims[0].Holder != "a" || claims[0].Nonce != a.Nonce() ||
			claims[0].Since != 1 {
			t.Fatal(claims, err)
		}
		h.Release()
		if h.Context().Err() == nil || lost(h) {
			t.Error("a released lease is not over, or lost")
		}
		try(t, b, "joiner").Release()
	})
}

// TestStandby holds that one who waits gets the lease of a dead holder within the
// TTL and a beat, and that of one who goes within a beat.
func TestStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(ttl)
		b := lease.NewKeeper(store, "b")
		acquire := func() *lease.Held {
			told := ""
			h, err := b.Acquire(t.Context(), "joiner", func(holder string, err error) {
				told += fmt.Sprint(holder, err)
			})
			if err != nil || told != "a<nil>" {
				t.Fatal(told, err)
			}
			return h
		}
		start := time.Now()
		if _, err := store.Create(t.Context(), "joiner", []byte(`{"holder":"a"}`)); err != nil { // dead at once
			t.Fatal(err)
		}
		h := acquire()
		if took := time.Since(start); took < ttl || took > ttl+ttl/5 {
			t.Errorf("took over after %v", took)
		}
		h.Release()
		a := try(t, lease.NewKeeper(store, "a"), "joiner")
		start = time.Now()
		go func() {
			time.Sleep(3 * ttl)
			a.Release()
		}()
		h = acquire()
		if took := time.Since(start) - 3*ttl; took < 0 || took > ttl/5 {
			t.Errorf("took over %v after the release", took)
		}
		h.Release()
	})
}

// TestLost holds that a lease is lost, before anybody else can have it, when the
// store is away for the TTL, and at once when somebody else has it.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(ttl)
		h := try(t, lease.NewKeeper(store, "a"), "joiner")
		time.Sleep(ttl / 2) // renewed at a third
		away := errors.New("away")
		store.Fail(away)
		time.Sleep(ttl / 2)
		store.Fail(nil) // a short absence does no harm
		time.Sleep(3 * ttl)
		if lost(h) {
			t.Fatal("lost by a short absence")
		}
		store.Fail(away)
		start := time.Now()
		<-h.Context().Done()
		if took := time.Since(start); took > ttl || took < ttl/2 || !lost(h) {
			t.Errorf("lost after %v: %v", took, context.Cause(h.Context()))
		}
		h.Release()
		store.Fail(nil)
		time.Sleep(ttl)
		h = try(t, lease.NewKeeper(store, "a"), "joiner")
		e, err := store.Get(t.Context(), "joiner")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Update(t.Context(), "joiner", []byte(`{"holder":"b"}`), e.Revision); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		<-h.Context().Done()
		if took := time.Since(start); took > ttl/2 || !lost(h) {
			t.Errorf("lost after %v: %v", took, context.Cause(h.Context()))
		}
		h.Release()
		if e, err := store.Get(t.Context(), "joiner"); err != nil || string(e.Value) != `{"holder":"b"}` {
			t.Errorf("the release of a lost lease took away another's: %s %v", e.Value, err)
		}
	})
}

// lossy loses the answer to one renewal.
type lossy struct {
	lease.Store
	lose atomic.Bool
}

func (l *lossy) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	n, err := l.Store.Update(ctx, key, value, revision)
	if l.lose.Swap(false) {
		return 0, errors.New("no answer")
	}
	return n, err
}

func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lossy{Store: leasetest.NewMemory(ttl)}
		store.lose.Store(true)
		h := try(t, lease.NewKeeper(store, "a"), "joiner")
		time.Sleep(5 * ttl)
		if store.lose.Load() || lost(h) {
			t.Error("a lease is lost with an answer")
		}
		h.Release()
		if _, err := store.Get(t.Context(), "joiner"); !errors.Is(err, lease.ErrNone) {
			t.Errorf("released, but %v", err)
		}
	})
}

// lost reports whether a lease was lost.
func lost(h *lease.Held) bool { return errors.Is(context.Cause(h.Context()), lease.ErrLost) }

// TestShare holds that shares add up to all parts, differ by one at most, and that a
// newcomer takes from others only what makes shares even.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, members := rapid.IntRange(1, 20).Draw(t, "parts"), rapid.IntRange(1, 8).Draw(t, "members")
		claims := []lease.Claim{{Key: "joiner", Nonce: "x", Since: 1}, {Key: "decider.0", Nonce: "y", Since: 2}}
		for i := range members {
			claims = append(claims, lease.Claim{Key: fmt.Sprint("member.", i), Nonce: fmt.Sprint(i),
				Since: uint64(rapid.IntRange(3, 50).Draw(t, "since"))})
		}
		shuffled := rapid.Permutation(claims).Draw(t, "order")
		sum, least, most := 0, n, 0
		for i := range members {
			s := lease.Share(n, shuffled, "member.", fmt.Sprint(i))
			sum, least, most = sum+s, min(least, s), max(most, s)
		}
		if sum != n || most-least > 1 {
			t.Fatalf("%d parts for %d members: %d in all, from %d to %d each", n, members, sum, least, most)
		}
		if lease.Share(n, shuffled, "member.", "x") != 0 {
			t.Fatal("one who is no member has a share")
		}
		late := append(shuffled, lease.Claim{Key: "member.a", Nonce: "new", Since: 99})
		for i := range members {
			if lease.Share(n, late, "member.", fmt.Sprint(i)) > lease.Share(n, claims, "member.", fmt.Sprint(i)) {
				t.Fatal("a newcomer moves parts between others")
			}
		}
	})
}

// lateClock is a store whose clock was an hour ahead when its entries were made: they live that much longer.
type lateClock struct{ *leasetest.Memory }

func (lateClock) TTL() time.Duration { return ttl }

// TestClockBack holds that a lease of a dead holder is over by the clock of one who waits, and its share of the work
// is given to others, while the store keeps the entry; and that one that is renewed is kept.
func TestClockBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lateClock{leasetest.NewMemory(time.Hour)}
		b, c := lease.NewKeeper(store, "b"), lease.NewKeeper(store, "c")
		if _, err := store.Create(t.Context(), "member.a", []byte(`{"holder":"a"}`)); err != nil {
			t.Fatal(err)
		}
		claims := func() int {
			all, err := c.Claims(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		if claims() != 1 {
			t.Error("the claim of a is not there")
		}
		start := time.Now()
		h, err := b.Acquire(t.Context(), "member.a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < ttl || took > ttl+ttl/5 {
			t.Errorf("took over after %v", took)
		}
		e, err := store.Get(t.Context(), "member.a")
		all, listed := c.Claims(t.Context())
		if err != nil || listed != nil || len(all) != 1 || all[0].Since != e.Revision || e.Revision < 2 {
			t.Errorf("b claims since its takeover at %d: %+v, %v, %v", e.Revision, all, err, listed)
		}
		for range 20 {
			time.Sleep(ttl / 2)
			if claims() != 1 {
				t.Fatal("the claim of b is not there")
			}
			if _, err := c.Try(t.Context(), "member.a"); !errors.Is(err, lease.ErrTaken) {
				t.Fatalf("c gets the lease of b: %v", err)
			}
		}
		h.Release()
		if _, err := store.Create(t.Context(), "member.d", []byte(`{"holder":"d"}`)); err != nil || claims() != 1 {
			t.Fatal(err)
		}
		time.Sleep(2 * ttl)
		if claims() != 0 {
			t.Error("a member that died still has a share")
		}
	})
}
