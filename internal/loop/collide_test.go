package loop

import (
	"strconv"
	"testing"
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

// Rounds whose ids collide without a seed lie apart in a joiner that has one.
func TestRoundsCollisions(t *testing.T) {
	const n = 1000
	longest := func(seed uint64) (most int) {
		c := &caller{t: t, j: NewJoiner(1, unlimited, seed, boundsRules)}
		for i, id := range collide(n) {
			c.decide(Place{0, int64(i)}, 1, handDecision(int64(i+1), id))
		}
		run := 0
		for _, s := range c.j.rounds.index {
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
