package lease

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// value is what an entry says.
type value struct {
	Holder string `json:"holder"`          // for people
	Nonce  string `json:"nonce"`           // of the keeper
	Since  uint64 `json:"since,omitempty"` // revision at which it was made; 0: the entry's own
}

// Claim is a lease that a process holds.
type Claim struct {
	Key    string
	Holder string // for people
	Nonce  string // of the keeper that holds it
	Since  uint64 // older claims have less
}

// Keeper keeps the leases of one process.
type Keeper struct {
	store  Store
	holder string
	nonce  string

	mu   sync.Mutex
	seen map[string]sight // of entries by key
}

// sight is when an entry was first seen as it is.
type sight struct {
	revision uint64
	at       time.Time
}

// NewKeeper returns a keeper; holder names the process for people.
func NewKeeper(store Store, holder string) *Keeper {
	return &Keeper{store: store, holder: holder, nonce: rand.Text(), seen: map[string]sight{}}
}

// Nonce names the keeper in claims.
func (k *Keeper) Nonce() string { return k.nonce }

// TTL is how long a lease outlives its holder.
func (k *Keeper) TTL() time.Duration { return k.store.TTL() }

// Beat is how often one looks whether a lease is free.
func (k *Keeper) Beat() time.Duration { return max(k.TTL()/10, time.Millisecond) }

// Claims returns the leases that are held now, by anybody.
func (k *Keeper) Claims(ctx context.Context) ([]Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, k.TTL()/2)
	defer cancel()
	entries, err := k.store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("leases: %w", err)
	}
	k.forget(entries)
	claims := make([]Claim, 0, len(entries))
	for _, e := range entries {
		var v value
		if k.over(e) || json.Unmarshal(e.Value, &v) != nil { // or not ours
			continue
		}
		if v.Since == 0 {
			v.Since = e.Revision
		}
		claims = append(claims, Claim{Key: e.Key, Holder: v.Holder, Nonce: v.Nonce, Since: v.Since})
	}
	return claims, nil
}

// over reports whether an entry was not renewed for its TTL by our own clock, while we looked. The store's clock may
// be another server's from now on, which is behind, and lets entries live for as long as that.
func (k *Keeper) over(e Entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.seen[e.Key]; ok && s.revision == e.Revision {
		return time.Since(s.at) > k.TTL()
	}
	k.seen[e.Key] = sight{e.Revision, time.Now()}
	return false
}

// unchanged returns the revision of an entry when it was seen last, and whether it is over if it has that still.
func (k *Keeper) unchanged(key string) (revision uint64, over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.seen[key]
	return s.revision, ok && time.Since(s.at) > k.TTL()
}

// forget drops what was seen of entries that are there no longer.
func (k *Keeper) forget(there []Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.seen, func(key string, _ sight) bool {
		return !slices.ContainsFunc(there, func(e Entry) bool { return e.Key == key })
	})
}

// Held is a lease that is kept up until it is released or lost.
type Held struct {
	key    string
	k      *Keeper
	ctx    context.Context
	cancel context.CancelCauseFunc

	since    uint64
	revision uint64
	until    time.Time // by our clock, held longer than that
	release  chan struct{}
	once     sync.Once
	done     chan struct{}
}

// Context ends when the lease is lost, with ErrLost as its cause, or released, or
// when the context of Try or Acquire ends. The lease is renewed until Release all the
// same.
func (h *Held) Context() context.Context { return h.ctx }

// Try takes a lease if it is free, and fails with ErrTaken if it is not. Release
// must be called, even after a loss.
func (k *Keeper) Try(ctx context.Context, key string) (*Held, error) {
	h := &Held{key: key, k: k, release: make(chan struct{}), done: make(chan struct{})}
	limited, cancel := context.WithTimeout(ctx, k.TTL()/2)
	defer cancel()
	sent := time.Now()
	var err error
	if h.revision, err = k.store.Create(limited, key, h.value(0)); errors.Is(err, ErrTaken) {
		if revision, over := k.unchanged(key); over {
			h.revision, err = k.store.Update(limited, key, h.value(0), revision)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", key, err)
	}
	h.since, h.until = h.revision, h.end(sent)
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	go h.keep()
	return h, nil
}

// Acquire waits for a lease and takes it. waiting is called when it has to wait, with
// the holder or with why the store cannot be asked, each time that changes; it may be
// nil.
func (k *Keeper) Acquire(ctx context.Context, key string, waiting func(holder string, err error)) (*Held, error) {
	last := ""
	for {
		h, err := k.Try(ctx, key)
		if err == nil {
			return h, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		holder := ""
		if errors.Is(err, ErrTaken) {
			holder, err = k.holderOf(ctx, key), nil
		}
		if now := fmt.Sprint(holder, err); waiting != nil && now != last {
			last = now
			waiting(holder, err)
		}
		if err := k.waitFree(ctx, key); err != nil {
			return nil, err
		}
	}
}

// waitFree waits until an entry seems to be gone.
func (k *Keeper) waitFree(ctx context.Context, key string) error {
	tick := time.NewTicker(k.Beat())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if e, err := k.get(ctx, key); err != nil || k.over(e) {
			return nil // gone, or not to be asked: Create says which
		}
	}
}

func (k *Keeper) get(ctx context.Context, key string) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, k.TTL()/2)
	defer cancel()
	return k.store.Get(ctx, key)
}

func (k *Keeper) holderOf(ctx context.Context, key string) string {
	var v value
	e, _ := k.get(ctx, key) // an error leaves nothing to read
	if json.Unmarshal(e.Value, &v) != nil {
		return "another process"
	}
	return v.Holder
}

func (h *Held) value(since uint64) []byte {
	b, _ := json.Marshal(value{Holder: h.k.holder, Nonce: h.k.nonce, Since: since}) // never fails
	return b
}

// keep renews the lease until it is released or lost.
func (h *Held) keep() {
	defer close(h.done)
	ttl := h.k.TTL()
	next := ttl / 3
	for {
		select {
		case <-h.release:
			h.free()
			return
		case <-time.After(min(next, time.Until(h.until))):
		}
		switch err := h.renew(); {
		case err == nil:
			next = ttl / 3
		case errors.Is(err, ErrTaken), !time.Now().Before(h.until):
			h.cancel(fmt.Errorf("%w: %s: %w", ErrLost, h.key, err))
			return
		default:
			next = ttl / 20
		}
	}
}

// renew asks for another TTL.
func (h *Held) renew() error {
	ctx, cancel := context.WithDeadline(context.Background(), h.until)
	defer cancel()
	limited, cancel := context.WithTimeout(ctx, h.k.TTL()/3)
	defer cancel()
	sent := time.Now()
	if !sent.Before(h.until) {
		return errors.New("not renewed in time")
	}
	revision, err := h.k.store.Update(limited, h.key, h.value(h.since), h.revision)
	if errors.Is(err, ErrTaken) { // perhaps by ourselves, and the answer got lost
		e, got := h.k.store.Get(limited, h.key)
		if e.Revision > h.revision && bytes.Equal(e.Value, h.value(h.since)) {
			h.revision = e.Revision
			return errors.New("an answer was lost")
		}
		if got != nil && !errors.Is(got, ErrNone) {
			return got
		}
		return err
	}
	if err != nil {
		return err
	}
	h.revision, h.until = revision, h.end(sent)
	return nil
}

// end returns when a lease that was asked for at a time counts as lost: a bit before
// anybody else can have it, so that what is done under it can stop.
func (h *Held) end(sent time.Time) time.Time { return sent.Add(h.k.TTL() * 7 / 8) }

// free removes the entry, so that no process has to wait for it.
func (h *Held) free() {
	ctx, cancel := context.WithTimeout(context.Background(), h.k.TTL()/3)
	defer cancel()
	if err := h.k.store.Delete(ctx, h.key, h.revision); errors.Is(err, ErrTaken) {
		e, _ := h.k.store.Get(ctx, h.key) // an error leaves nothing that is ours
		if bytes.Equal(e.Value, h.value(h.since)) {
			_ = h.k.store.Delete(ctx, h.key, e.Revision) // else it expires
		}
	}
}

// Release gives the lease back. What was done under it must have stopped.
func (h *Held) Release() {
	h.once.Do(func() { close(h.release) })
	<-h.done
	h.cancel(context.Canceled)
}
