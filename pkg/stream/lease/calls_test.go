package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/testkit/leasetest"
	"hindsight/pkg/stream/lease"
)

// scripted notes what is asked of a store, and answers with an error where its script has one.
type scripted struct {
	lease.Store
	script map[string]error // by call
	asked  []string
}

func (s *scripted) ask(call string) error {
	s.asked = append(s.asked, call)
	return s.script[call]
}

func (s *scripted) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := s.ask("create"); err != nil {
		return 0, err
	}
	return s.Store.Create(ctx, key, value)
}

func (s *scripted) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := s.ask("update"); err != nil {
		return 0, err
	}
	return s.Store.Update(ctx, key, value, revision)
}

func (s *scripted) Delete(ctx context.Context, key string, revision uint64) error {
	if err := s.ask("delete"); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key, revision)
}

func (s *scripted) Get(ctx context.Context, key string) (lease.Entry, error) {
	if err := s.ask("get"); err != nil {
		return lease.Entry{}, err
	}
	return s.Store.Get(ctx, key)
}

// TestCalls holds what is asked of a store, in which order: no more than has to be.
func TestCalls(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		name   string
		taken  bool // somebody has the entry
		seen   bool // and it was seen, longer ago than its TTL
		script map[string]error
		want   []string
		err    error
	}{
		{"free", false, false, nil, []string{"create", "delete"}, nil},
		{"away", false, false, map[string]error{"create": away}, []string{"create"}, away},
		{"away, seen before", true, true, map[string]error{"create": away}, []string{"create"}, away},
		{"taken by one who was not seen", true, false, nil, []string{"create"}, lease.ErrTaken},
		{"over", true, true, nil, []string{"create", "update", "delete"}, nil},
		{"over, but renewed meanwhile", true, true, map[string]error{"update": lease.ErrTaken},
			[]string{"create", "update"}, lease.ErrTaken},
		{"free, and seen before", false, true, nil, []string{"create", "delete"}, nil},
		{"away at its release", false, false, map[string]error{"delete": away}, []string{"create", "delete"}, nil},
		{"another's at its release", false, false, map[string]error{"delete": lease.ErrTaken, "get": lease.ErrNone},
			[]string{"create", "delete", "get"}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{Store: lateClock{leasetest.NewMemory(time.Hour)}, script: c.script}
			k := lease.NewKeeper(s, "a")
			if c.taken || c.seen {
				n, err := s.Store.Create(t.Context(), "joiner", []byte(`{"holder":"b"}`))
				if err == nil && c.seen {
					_, err = k.Claims(t.Context())
					time.Sleep(ttl + 1)
				}
				if err == nil && !c.taken {
					err = s.Store.Delete(t.Context(), "joiner", n)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			h, err := k.Try(t.Context(), "joiner")
			if !errors.Is(err, c.err) || (h == nil) != (c.err != nil) {
				t.Errorf("%s: %v", c.name, err)
			}
			if err == nil {
				h.Release()
			}
			if !slices.Equal(s.asked, c.want) {
				t.Errorf("%s: asked for %v, want %v", c.name, s.asked, c.want)
			}
		})
	}
}

// TestOverAtItsTTL holds that an entry that is not renewed is over when its TTL has passed, and not at its end.
func TestOverAtItsTTL(t *testing.T) {
	for _, wait := range []time.Duration{ttl - 1, ttl, ttl + 1} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{Store: lateClock{leasetest.NewMemory(time.Hour)}}
			k := lease.NewKeeper(s, "a")
			if _, err := s.Create(t.Context(), "joiner", []byte(`{"holder":"b"}`)); err != nil {
				t.Fatal(err)
			}
			first, err := k.Claims(t.Context())
			time.Sleep(wait)
			then, again := k.Claims(t.Context())
			if err != nil || again != nil || len(first) != 1 || (len(then) == 0) != (wait > ttl) {
				t.Errorf("after %v: %v, %v; then %v, %v", wait, first, err, then, again)
			}
			h, err := k.Try(t.Context(), "joiner")
			if (err == nil) != (wait > ttl) {
				t.Errorf("after %v: %v", wait, err)
			}
			if err == nil {
				h.Release()
			}
		})
	}
}

// TestFirstRevision holds that an entry that was never seen is not over, whatever its revision is.
func TestFirstRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unborn{leasetest.NewMemory(ttl)}
		if all, err := lease.NewKeeper(s, "a").Claims(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("claims %v, %v", all, err)
		}
		// A beat is at least a millisecond, however short the TTL is.
		if beat := lease.NewKeeper(leasetest.NewMemory(9), "a").Beat(); beat != time.Millisecond {
			t.Errorf("a beat of %v", beat)
		}
	})
}

// unborn is a store that has an entry of revision 0.
type unborn struct{ lease.Store }

func (unborn) List(context.Context) ([]lease.Entry, error) {
	return []lease.Entry{{Key: "joiner", Value: []byte(`{"holder":"b"}`)}}, nil
}

// TestWaitingIsTold holds what one who waits is told of a store that cannot be asked, and that nothing is told
// to one who gave up.
func TestWaitingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		s := &scripted{Store: leasetest.NewMemory(ttl), script: map[string]error{"create": away}}
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		waiting := func(holder string, err error) {
			told = append(told, fmt.Sprintf("%q %v", holder, err))
			cancel()
		}
		for range 2 {
			if _, err := lease.NewKeeper(s, "a").Acquire(ctx, "joiner", waiting); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if want := []string{`"" lease joiner: away`}; !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
		}
	})
}

// TestNotAfterItsEnd holds that a lease is not asked for any more at its end: another may have it.
func TestNotAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Store: leasetest.NewMemory(ttl), fails: 1 << 30}
		start := time.Now()
		h := try(t, lease.NewKeeper(c, "a"), "joiner")
		<-h.Context().Done()
		if took := time.Since(start); took != ttl*7/8 || !lost(h) {
			t.Errorf("lost after %v", took)
		}
		h.Release()
		if last := c.updates[len(c.updates)-1].Sub(start); len(c.updates) != 11 || last >= ttl*7/8 {
			t.Errorf("%d renewals, the last after %v", len(c.updates), last)
		}
	})
}

// TestRefusedAndAway holds that a lease whose renewal was refused is not lost while nobody says whose it is.
func TestRefusedAndAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := map[string]error{"update": lease.ErrTaken, "get": errors.New("away")}
		s := &scripted{Store: leasetest.NewMemory(ttl), script: refused}
		start := time.Now()
		h := try(t, lease.NewKeeper(s, "a"), "joiner")
		<-h.Context().Done()
		if took := time.Since(start); took != ttl*7/8 || !lost(h) {
			t.Errorf("lost after %v", took)
		}
		h.Release()
	})
}
