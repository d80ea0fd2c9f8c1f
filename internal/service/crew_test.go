package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/internal/testkit/leasetest"
	"hindsight/pkg/stream/lease"
)

// roster knows who works on what, and objects to two on one partition.
type roster struct {
	t    *testing.T
	mu   sync.Mutex
	work map[int]string
}

func (r *roster) run(who string, slow time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, p int) error {
		r.mu.Lock()
		if other := r.work[p]; other != "" {
			r.t.Errorf("%s takes partition %d from %s", who, p, other)
		}
		r.work[p] = who
		r.mu.Unlock()
		<-ctx.Done()
		time.Sleep(slow) // a clean stop takes its time
		r.mu.Lock()
		delete(r.work, p)
		r.mu.Unlock()
		return nil
	}
}

// counts returns how many partitions each has, in order.
func (r *roster) counts() (all []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[string]int{}
	for _, who := range r.work {
		n[who]++
	}
	for _, k := range n {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// dead is the store of a process that died: nothing of it arrives any more.
type dead struct {
	lease.Store
	mu   sync.Mutex
	gone bool
}

var errDead = errors.New("dead")

func (d *dead) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
}

func (d *dead) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if d.isGone() {
		return 0, errDead
	}
	return d.Store.Update(ctx, key, value, revision)
}

func (d *dead) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	if d.isGone() {
		return 0, errDead
	}
	return d.Store.Create(ctx, key, value)
}

func (d *dead) Delete(ctx context.Context, key string, revision uint64) error {
	if d.isGone() {
		return errDead
	}
	return d.Store.Delete(ctx, key, revision)
}

func (d *dead) isGone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone
}

// TestCrewShares lets processes come, go and die, and holds that partitions are
// shared evenly, never worked on by two, and taken over in time.
func TestCrewShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(LeaseTTL)
		r := &roster{t: t, work: map[int]string{}}
		var group sync.WaitGroup
		start := func(who string, s lease.Store) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			group.Go(func() {
				if err := runCrew(ctx, lease.NewKeeper(s, who), 4, slog.New(slog.DiscardHandler),
					r.run(who, time.Second)); err != nil {
					t.Errorf("%s: %v", who, err)
				}
			})
			return cancel
		}
		is := func(when string, want ...int) {
			t.Helper()
			if got := r.counts(); !slices.Equal(got, want) {
				t.Errorf("%s: shares %v, want %v", when, got, want)
			}
		}
		stopA := start("a", store)
		time.Sleep(3 * time.Second)
		is("alone", 4)
		mortal := &dead{Store: store}
		stopB := start("b", mortal)
		time.Sleep(5 * time.Second)
		is("two", 2, 2)
		stopC := start("c", store)
		time.Sleep(6 * time.Second)
		is("three", 1, 1, 2)
		time.Sleep(time.Minute)
		is("three, later", 1, 1, 2)
		stopC()
		time.Sleep(5 * time.Second)
		is("one went", 2, 2)
		mortal.die()
		time.Sleep(LeaseTTL + 4*time.Second)
		is("one died", 4)
		stopA()
		stopB()
		group.Wait()
		is("none")
		if claims, err := lease.NewKeeper(store, "").Claims(context.Background()); err != nil || len(claims) != 0 {
			time.Sleep(LeaseTTL)
			t.Errorf("leases are left: %v %v", claims, err)
		}
	})
}

// TestCrewFails holds that a decider that cannot go on ends the process, and that its
// leases are free at once.
func TestCrewFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(LeaseTTL)
		want := errors.New("refused")
		err := runCrew(t.Context(), lease.NewKeeper(store, "a"), 2, slog.New(slog.DiscardHandler),
			func(ctx context.Context, p int) error {
				if p == 1 {
					return fmt.Errorf("decider: %w", want)
				}
				<-ctx.Done()
				return nil
			})
		if !errors.Is(err, want) {
			t.Error(err)
		}
		if claims, err := lease.NewKeeper(store, "").Claims(t.Context()); err != nil || len(claims) != 0 {
			t.Errorf("leases are left: %v %v", claims, err)
		}
	})
}
