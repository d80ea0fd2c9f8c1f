package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/codec"
)

// boundsRules are of rounds that an outcome releases at once, or that wait for long.
func boundsRules(int64) *Rules {
	return &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 1 << 40}, Arrival: true}
}

// Memory of released rounds is kept for others only as far as those need it.
func TestJoinerGivesBack(t *testing.T) {
	c := newCaller(t, 1, codec.Limits{Heart: Heart, Pending: 1 << 20}, boundsRules)
	j := c.j
	n := int64(0)
	round := func(context string, time int64) {
		n++
		d := handDecision(n, fmt.Sprint(n))
		d.Context = []byte(context)
		c.decide(Place{0, n}, time, d)
	}
	large := strings.Repeat("x", 1<<20-8<<10)
	for range 100 {
		round(large, 1)
	}
	c.advance(1 << 41)
	c.advance(1 << 41) // the caller has done with them
	if j.pool.spare > maxSpare || len(j.pool.free) == 0 || len(j.pool.free) > 16 {
		t.Errorf("%d bytes of %d rounds are kept", j.pool.spare, len(j.pool.free))
	}
	for range 100 {
		round("{}", 1<<41)
	}
	if j.Pending() != 100 {
		t.Fatalf("%d rounds wait", j.Pending())
	}
	for i := range j.queue.len() {
		if p := j.queue.at(i).p; cap(p.raw) > 1000 {
			t.Fatalf("a round of %d bytes lies in %d", len(p.raw), cap(p.raw))
		}
	}
}

// TestManyOutcomes holds that an outcome takes as long however many its round has: its id is
// looked for among theirs, one by one where there are few. Ten thousand of one round took
// ninety times as long as of rounds with twenty where it always was so. Each counts once.
func TestManyOutcomes(t *testing.T) {
	const all = 10_000
	take := func(rounds int64) time.Duration {
		rules := &Rules{Range: Range{Max: float64(all / rounds)}, Window: Window{Nanos: 1 << 40}, Outcomes: Sum}
		c := newCaller(t, 1, codec.Limits{Heart: Heart, Pending: all, Dedup: all}, func(int64) *Rules { return rules })
		for i := range rounds {
			c.decide(Place{0, i}, 0, handDecision(i+1, fmt.Sprint(i)))
		}
		give := func(from int64) time.Duration {
			began := time.Now()
			for i := range int64(all) {
				c.outcome(Place{0, from + i}, i, codec.Outcome{ID: fmt.Sprint(i % rounds),
					OutcomeID: fmt.Sprintf("o%06d", i), Kind: codec.Loss, Value: 1})
			}
			return time.Since(began)
		}
		took := give(0)
		size := c.j.PendingBytes()
		if give(all); c.j.PendingBytes() != size || size < all*nameBytes {
			t.Errorf("rounds with %d outcomes hold %d bytes, and %d when all came twice", all, size, c.j.PendingBytes())
		}
		rejects := c.rejected()
		for i, r := range rejects {
			if r.Reason != codec.ReasonDuplicate || r.Offset != all+int64(i) {
				t.Fatalf("reject %d: %+v", i, r)
			}
		}
		c.advance(End)
		ready := c.ready()
		if len(ready) != int(rounds) || len(rejects) != all ||
			slices.ContainsFunc(ready, func(f codec.Feedback) bool { return f.Loss != 1 }) {
			t.Errorf("%d outcomes came twice, %d are rejected; %d rounds: %+v", all, len(rejects), len(ready), ready[0])
		}
		return took
	}
	least := func(rounds int64) time.Duration { return min(take(rounds), take(rounds), take(rounds)) }
	const some = 20
	if many, one := least(all/some), least(1); one > 30*many {
		t.Errorf("%d outcomes took %v where rounds have %d, and %v of one round", all, many, some, one)
	}
}

// TestOutcomeIDs holds how many outcomes with ids of their own count for a round, and that
// those without are not bounded.
func TestOutcomeIDs(t *testing.T) {
	rules := &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 1 << 40}, Outcomes: Last}
	j := newCaller(t, 1, codec.Limits{Heart: Heart, Pending: 1, Dedup: 1}, func(int64) *Rules { return rules })
	j.decide(Place{0, 0}, 0, handDecision(1, "a"))
	at := int64(0)
	outcome := func(id string, loss float64) {
		j.outcome(Place{0, at}, at, codec.Outcome{ID: "a", OutcomeID: id, Kind: codec.Loss, Value: loss})
		at++
	}
	for i := range MaxOutcomeIDs {
		outcome(fmt.Sprint(i), 0.25)
	}
	if r := j.rejected(); len(r) > 0 {
		t.Fatalf("%d are rejected at the limit: %+v", len(r), r[0])
	}
	outcome("one more", 1)
	outcome("0", 1)
	outcome("", 0.75)
	r := j.rejected()
	if len(r) != 2 || r[0].Reason != codec.ReasonMalformed || r[0].Detail != errManyIDs.Error() ||
		r[1].Reason != codec.ReasonDuplicate {
		t.Errorf("over it: %+v", r)
	}
	j.advance(End)
	if f := j.ready(); len(f) != 1 || f[0].Loss != 0.75 {
		t.Errorf("%+v", f)
	}
}
