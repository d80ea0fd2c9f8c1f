package loop

import (
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// collide returns n ids that a table without a seed of so many has next to each other.
func collide(n int) (ids []string) {
	size := uint64(64)
	for size < uint64(2*n) {
		size *= 2
	}
	for i := 0; len(ids) < n; i++ {
		if id := strconv.Itoa(i); hashString(0, id)&(size-1) < size/64 {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestParkedCollisions holds that outcomes of no round whose ids somebody chose to collide do
// not take longer than others. They took ten times as long where their hashes were known.
func TestParkedCollisions(t *testing.T) {
	const n = 8000
	took := func(ids []string) time.Duration {
		j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 10}, boundsRules)
		from := time.Now()
		for i, id := range ids {
			j.AddOutcome(Place{0, int64(i)}, int64(i), codec.AppendOutcome(nil, &codec.Outcome{ID: id, Kind: codec.Loss}), "")
		}
		_, seq := j.Parked()
		j.Orphans(seq)
		return time.Since(from)
	}
	chosen, usual := collide(n), make([]string, n)
	for i := range usual {
		usual[i] = strconv.Itoa(i)
	}
	least := func(ids []string) time.Duration { return min(took(ids), took(ids), took(ids)) }
	if a, b := least(usual), least(chosen); b > 4*a {
		t.Errorf("%d outcomes took %v, and %v with ids that collide", n, a, b)
	}
}

// Rounds whose ids collide without a seed lie apart in a joiner that has one.
func TestRoundsCollisions(t *testing.T) {
	const n = 1000
	longest := func(seed uint64) (most int) {
		j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: n, Seed: seed}, boundsRules)
		for i, id := range collide(n) {
			d := handDecision(int64(i+1), id)
			if err := j.AddDecision(Place{0, int64(i)}, 1, codec.AppendDecision(nil, &d)); err != nil {
				t.Fatal(err)
			}
		}
		run := 0
		for _, s := range j.rounds.index {
			if run++; s == 0 {
				run = 0
			}
			most = max(most, run)
		}
		return most
	}
	if known, secret := longest(0), longest(TableSeed([]byte("secret"))); known < n/2 || secret > n/8 {
		t.Errorf("%d of %d in a row without a seed, %d with one", known, n, secret)
	}
}

// What a joiner emits is the same whatever the seed of its hashes.
func TestJoinerSeed(t *testing.T) {
	check(t, 3, func(t *rapid.T) {
		w := genWorld(worldOptions{rounds: 12, memory: true}).Draw(t, "world")
		o := JoinerOptions{Partitions: w.partitions, MaxPending: w.maxPending, Dedup: w.dedup}
		w.options = &o
		want := drive(t, w, func() bool { return true })
		o.Seed = rapid.Uint64().Draw(t, "seed")
		if got := drive(t, w, func() bool { return true }); !reflect.DeepEqual(got, want) {
			t.Fatalf("with the seed %d\n%+v\nwithout\n%+v", o.Seed, got, want)
		}
	})
}
