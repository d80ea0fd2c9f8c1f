package nats

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/lease"
	"hindsight/pkg/stream/natstest"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestLeases runs the contract of a lease store on a bucket.
func TestLeases(t *testing.T) {
	s := natstest.Start(t, natstest.Options{})
	c, err := (&Access{URL: s.URL()}).Dial("test", Options{APITimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	const ttl = 2 * time.Second
	store, err := c.Leases(ctx, "m_leases", ttl)
	if err != nil || store.TTL() != ttl {
		t.Fatal(err)
	}
	if again, err := c.Leases(ctx, "m_leases", time.Hour); err != nil || again.TTL() != ttl {
		t.Fatalf("opened again: %v", err)
	}
	js, err := jetstream.New(c.log.conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "endless"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Leases(ctx, "endless", ttl); err == nil || !strings.Contains(err.Error(), "has no TTL") {
		t.Errorf("leases that never end: %v", err)
	}
	list := func(want ...string) {
		t.Helper()
		all, err := store.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, e := range all {
			got[e.Key] = true
		}
		for _, k := range want {
			if !got[k] {
				t.Errorf("%s is not listed: %v", k, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	}
	list()
	a, err := store.Create(ctx, "decider.0", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(ctx, "decider.0", []byte("b")); !errors.Is(err, lease.ErrTaken) {
		t.Errorf("made twice: %v", err)
	}
	if _, err := store.Create(ctx, "joiner", []byte("j")); err != nil {
		t.Fatal(err)
	}
	list("decider.0", "joiner")
	a2, err := store.Update(ctx, "decider.0", []byte("a"), a)
	if err != nil || a2 <= a {
		t.Fatal(a2, err)
	}
	if _, err := store.Update(ctx, "decider.0", []byte("b"), a); !errors.Is(err, lease.ErrTaken) {
		t.Errorf("changed at an old revision: %v", err)
	}
	if err := store.Delete(ctx, "decider.0", a); !errors.Is(err, lease.ErrTaken) {
		t.Errorf("removed at an old revision: %v", err)
	}
	if e, err := store.Get(ctx, "decider.0"); err != nil || string(e.Value) != "a" || e.Revision != a2 {
		t.Error(e, err)
	}
	if err := store.Delete(ctx, "decider.0", a2); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(ctx, "decider.0"); !errors.Is(err, lease.ErrNone) {
		t.Errorf("removed, but %v", err)
	}
	list("joiner")
	n, err := store.Create(ctx, "decider.0", []byte("b"))
	if err != nil {
		t.Errorf("made after a removal: %v", err)
	}
	waitFor(t, func() bool { // all expire
		_, err := store.Get(ctx, "decider.0")
		return errors.Is(err, lease.ErrNone)
	})
	list()
	if _, err := store.Update(ctx, "decider.0", []byte("b"), n); !errors.Is(err, lease.ErrTaken) {
		t.Errorf("changed after it expired: %v", err)
	}
	s.Kill()
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := store.Create(limited, "joiner", nil); err == nil || errors.Is(err, lease.ErrTaken) ||
		!errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("made with the server away: %v", err)
	}
	if _, err := store.Get(limited, "joiner"); err == nil || errors.Is(err, lease.ErrNone) {
		t.Errorf("read with the server away: %v", err)
	}
}

// TestTwoMakeLeases: of two that make a bucket at once the second takes that of the first.
func TestTwoMakeLeases(t *testing.T) {
	ctx, s := t.Context(), natstest.Start(t, natstest.Options{})
	first, conn := dialTest(t, s.URL(), Options{}), dialTest(t, s.URL(), Options{}).log.conn
	var made atomic.Bool
	hear(t, conn, "late.>", func(m *natsgo.Msg) {
		answer, err := conn.Request(DefaultAPIPrefix+strings.TrimPrefix(m.Subject, "late"), m.Data, 10*time.Second)
		if err == nil && !made.Swap(true) {
			_, err = first.Leases(ctx, "m_leases", time.Minute)
		}
		if err != nil {
			t.Error(err)
			return
		}
		_ = m.Respond(answer.Data) // the first says that there is no bucket
	})
	store, err := dialTest(t, s.URL(), Options{APIPrefix: "late"}).Leases(ctx, "m_leases", time.Hour)
	if err != nil || store.TTL() != time.Minute {
		t.Fatal(store, err)
	}
}

func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	limit, tick := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("not within 20 s")
		}
	}
}
