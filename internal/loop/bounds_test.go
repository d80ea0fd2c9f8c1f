package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// boundsRules are of rounds that an outcome releases at once, or that wait for long.
func boundsRules(int64) *Rules {
	return &Rules{Range: Range{Max: 1}, Window: Window{Nanos: 1 << 40}, Arrival: true}
}

// TestMarkOfManyAhead holds that a mark can be written, and is read back to the same joiner,
// with the 300,000 rounds ahead of one that waits that order: arrival makes of an outcome that
// does not come: 209,000 of them were more than a record holds.
func TestMarkOfManyAhead(t *testing.T) {
	n := int64(300_000)
	if testing.Short() {
		n = 30_000
	}
	j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 1000, Dedup: 10, MaxSpan: 4_000_000}, boundsRules)
	released := int64(0)
	round := func(j *Joiner, n int64, observed bool) {
		d := handDecision(n, strconv.FormatInt(n, 10))
		if err := j.AddDecision(Place{0, n}, n, codec.AppendDecision(nil, &d)); err != nil {
			t.Fatal(err)
		}
		if observed {
			j.AddOutcome(Place{0, n}, n, codec.AppendOutcome(nil, &codec.Outcome{ID: d.ID, Kind: codec.Loss}), "")
		}
		if n%1000 == 0 {
			released += int64(len(j.AppendReady(nil)))
		}
	}
	for i := range n {
		round(j, i+1, i > 0)
	}
	if released != n-1 || j.Pending() != 1 {
		t.Fatalf("%d rounds released, %d wait", released, j.Pending())
	}
	m := j.Mark()
	b := codec.AppendFeedbackMark(nil, &m)
	if int64(len(b)) > n/8+1000 {
		t.Errorf("a mark of %d bytes, more than a bit a round", len(b))
	}
	m, err := codec.ParseFeedbackMark(b)
	if err != nil {
		t.Fatal(err)
	}
	k := NewJoiner(j.o, boundsRules)
	k.Restore(&m)
	for i := range int64(1000) { // some of what a restart reads again
		round(k, i+1, false)
	}
	if again := k.Mark(); k.Pending() != 1 || again.Positions[0].Released != 0 || int64(len(again.Positions[0].Ahead)) != n-1 {
		t.Errorf("%d rounds wait after a restart", k.Pending())
	}
	k.AddOutcome(Place{0, n + 1}, n, codec.AppendOutcome(nil, &codec.Outcome{ID: "1", Kind: codec.Loss}), "")
	if f := k.AppendReady(nil); len(f) != 1 || f[0].N != n || k.Released(0) != n {
		t.Errorf("%d feedbacks, rounds released through %d", len(f), k.Released(0))
	}
}

// boundedWorld is one whose rounds differ in size, and a joiner with limits that they meet.
func boundedWorld(t *rapid.T) (*world, JoinerOptions) {
	w := genWorld(worldOptions{rounds: 12, memory: true, unique: true, noOrphans: true}).Draw(t, "world")
	o := JoinerOptions{Partitions: w.partitions, MaxPending: w.maxPending, Dedup: w.dedup}
	if rapid.Bool().Draw(t, "bytes") {
		o.MaxPendingBytes = rapid.IntRange(100, 2000).Draw(t, "most bytes")
	} else {
		o.MaxSpan = rapid.IntRange(1, 8).Draw(t, "most rounds")
	}
	w.options = &o
	return w, o
}

// What waits stays within limits on bytes and on rounds since the oldest, each round keeps
// its one fate, and a joiner that is restarted closes the same rounds.
func TestJoinerBounds(t *testing.T) {
	overflowed := 0
	check(t, 3, func(t *rapid.T) {
		w, o := boundedWorld(t)
		want := drive(t, w, func() bool { return true })
		onceEach(t, w, want.feedback)
		j := w.joiner()
		for _, s := range w.script() {
			if err := give(j, &s); err != nil {
				t.Fatal(err)
			}
			bytes, span := 0, map[int]int64{}
			for i := range j.queue.len() {
				if p := *j.queue.at(i); p != nil {
					bytes += p.weigh() - p.idBytes
					for _, id := range p.ids {
						bytes += nameBytes + len(id)
					}
					for id := range p.more {
						bytes += nameBytes + len(id)
					}
					if part := p.d.Partition; span[part] == 0 {
						span[part] = j.parts[part].next - p.d.N
					}
				}
			}
			total := 0
			for _, n := range span {
				total += int(n)
			}
			if bytes != j.bytes || total != j.span {
				t.Fatalf("%d bytes wait and %d are counted, over %d rounds, counted %d", bytes, j.bytes, total, j.span)
			}
			if decided := !s.outcome && s.ctl == nil && !s.pass && s.from == 0; decided && (o.MaxPendingBytes > 0 && bytes > o.MaxPendingBytes || o.MaxSpan > 0 && total > o.MaxSpan) {
				t.Fatalf("%d bytes over %d rounds wait, the limits are %+v", bytes, total, o)
			}
		}
		for _, b := range want.feedback {
			var f codec.Feedback
			if codec.ParseFeedback(&f, b) == nil && f.Reason == codec.ReasonOverflow {
				overflowed++
			}
		}
		restarts(t, w, want)
	})
	if overflowed == 0 {
		t.Error("no round met a limit")
	}
}

// Memory of released rounds is kept for others only as far as those need it.
func TestJoinerGivesBack(t *testing.T) {
	j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 1 << 20}, boundsRules)
	n := int64(0)
	round := func(context string, time int64) {
		n++
		d := handDecision(n, fmt.Sprint(n))
		d.Context = []byte(context)
		if err := j.AddDecision(Place{0, n}, time, codec.AppendDecision(nil, &d)); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("x", 1<<20-8<<10)
	for range 100 {
		round(large, 1)
	}
	j.Advance(1 << 41)
	j.AppendReady(nil)
	j.AppendReady(nil) // the caller has done with them
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
		if p := *j.queue.at(i); cap(p.raw) > 1000 {
			t.Fatalf("a round of %d bytes lies in %d", len(p.raw), cap(p.raw))
		}
	}
}

// TestManyOrphans holds that outcomes of no round do not slow down the decisions behind them:
// each looks for its own. That took some hundred times as long where it looked at all of them.
func TestManyOrphans(t *testing.T) {
	const rounds = 2000
	decide := func(orphans int64) time.Duration {
		j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 1 << 20}, boundsRules)
		var b []byte
		for i := range orphans {
			b = codec.AppendOutcome(b[:0], &codec.Outcome{ID: fmt.Sprint("none", i), Kind: codec.Loss})
			j.AddOutcome(Place{0, i}, i, b, "")
		}
		from := time.Now()
		for i := range int64(rounds) {
			d := handDecision(i+1, fmt.Sprint(i))
			if i%100 == 0 && i < orphans {
				d.ID = fmt.Sprint("none", i)
			}
			if err := j.AddDecision(Place{0, i}, rounds, codec.AppendDecision(b[:0], &d)); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(from)
		found := int((orphans + 99) / 100)
		if left, _ := j.Parked(); left != int(orphans)-found || len(j.AppendReady(nil)) != found {
			t.Errorf("%d outcomes of %d wait, %d had their decision", left, orphans, found)
		}
		return took
	}
	least := func(orphans int64) time.Duration { return min(decide(orphans), decide(orphans), decide(orphans)) }
	if none, many := least(0), least(rounds); many > 20*none {
		t.Errorf("%d decisions took %v, and %v behind as many orphans", rounds, none, many)
	}
}

// TestManyOutcomes holds that an outcome takes as long however many its round has: its id is
// looked for among theirs, one by one where there are few. Ten thousand of one round took
// ninety times as long as of rounds with twenty where it always was so. Each counts once,
// also after a restart.
func TestManyOutcomes(t *testing.T) {
	const all = 10_000
	take := func(rounds int64) time.Duration {
		rules := &Rules{Range: Range{Max: float64(all / rounds)}, Window: Window{Nanos: 1 << 40}, Outcomes: Sum}
		j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: all, Dedup: all}, func(int64) *Rules { return rules })
		var outs [][]byte
		for i := range int64(all) {
			outs = append(outs, codec.AppendOutcome(nil, &codec.Outcome{ID: fmt.Sprint(i % rounds), OutcomeID: fmt.Sprintf("o%06d", i), Kind: codec.Loss, Value: 1}))
		}
		outs = append(outs, outs...)
		give := func(j *Joiner, to int64) time.Duration {
			for i := range rounds {
				d := handDecision(i+1, fmt.Sprint(i))
				if err := j.AddDecision(Place{0, i}, 0, codec.AppendDecision(nil, &d)); err != nil {
					t.Fatal(err)
				}
			}
			from := time.Now()
			for i := range to {
				j.AddOutcome(Place{0, i}, i, outs[i], "")
			}
			return time.Since(from)
		}
		took := give(j, all)
		m := j.Mark()
		k := NewJoiner(j.o, j.rules)
		k.Restore(&m)
		give(k, 2*all)
		if size, again := j.PendingBytes(), k.PendingBytes(); again != size || size < all*nameBytes {
			t.Errorf("rounds with %d outcomes hold %d bytes, after a restart %d", all, size, again)
		}
		rejects := k.AppendRejects(nil)
		for i, r := range rejects {
			if r.Reason != codec.ReasonDuplicate || r.Offset != all+int64(i) {
				t.Fatalf("reject %d: %+v", i, r)
			}
		}
		k.Advance(End)
		ready := k.AppendReady(nil)
		if len(ready) != int(rounds) || len(rejects) != all || slices.ContainsFunc(ready, func(f codec.Feedback) bool { return f.Loss != 1 }) {
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
	j := NewJoiner(JoinerOptions{Partitions: 1, MaxPending: 1, Dedup: 1}, func(int64) *Rules { return rules })
	d := handDecision(1, "a")
	if err := j.AddDecision(Place{0, 0}, 0, codec.AppendDecision(nil, &d)); err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	outcome := func(id string, loss float64) {
		j.AddOutcome(Place{0, at}, at, codec.AppendOutcome(nil, &codec.Outcome{ID: "a", OutcomeID: id, Kind: codec.Loss, Value: loss}), "")
		at++
	}
	for i := range MaxOutcomeIDs {
		outcome(fmt.Sprint(i), 0.25)
	}
	if r := j.AppendRejects(nil); len(r) > 0 {
		t.Fatalf("%d are rejected at the limit: %+v", len(r), r[0])
	}
	outcome("one more", 1)
	outcome("0", 1)
	outcome("", 0.75)
	r := j.AppendRejects(nil)
	if len(r) != 2 || r[0].Reason != codec.ReasonMalformed || r[0].Detail != errManyIDs.Error() || r[1].Reason != codec.ReasonDuplicate {
		t.Errorf("over it: %+v", r)
	}
	j.Advance(End)
	if f := j.AppendReady(nil); len(f) != 1 || f[0].Loss != 0.75 {
		t.Errorf("%+v", f)
	}
}

// Outcomes of one round keep their order among others, wherever the others go.
func TestParkLot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newParkLot()
		var want []parked
		var ids []string
		check := func(k parked, id string, i int) {
			if k.seq != want[i].seq || id != ids[i] {
				t.Fatalf("%d of %q where %d of %q was due", k.seq, id, want[i].seq, ids[i])
			}
			want, ids = slices.Delete(want, i, i+1), slices.Delete(ids, i, i+1)
		}
		for seq := range uint64(rapid.IntRange(1, 60).Draw(t, "steps")) {
			id := strconv.Itoa(rapid.IntRange(0, 4).Draw(t, "id"))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if l.n > 0 {
					k, id := l.pop()
					check(k, id, 0)
				}
			case 1:
				l.take(id, func(k *parked) { check(*k, id, slices.Index(ids, id)) })
				if slices.Contains(ids, id) {
					t.Fatalf("of %q one is left", id)
				}
			default:
				k := parked{arrival: arrival{raw: make([]byte, seq)}, seq: seq}
				l.push(k, id)
				want, ids = append(want, k), append(ids, id)
			}
			bytes := 0
			for _, k := range want {
				bytes += len(k.raw)
			}
			if l.n != len(want) || l.bytes != bytes {
				t.Fatalf("%d of %d bytes, want %d of %d", l.n, l.bytes, len(want), bytes)
			}
		}
	})
}

// Where more outcomes wait for a decision than may, the older half are orphans, for good; a
// decision that comes later finds the younger ones.
func TestParkedBound(t *testing.T) {
	for name, o := range map[string]JoinerOptions{
		"count": {MaxParked: 9},
		"bytes": {MaxParkedBytes: 9 * len(refusedOutcome("o0", .5))},
	} {
		o.Partitions, o.MaxPending, o.Dedup = 1, 10, 10
		w := refusedWorld(1)
		j := NewJoiner(o, w.ruleOf)
		for i := range int64(10) {
			if n, _ := j.Parked(); n != int(i) || j.NeedsMark() {
				t.Fatalf("%s: %d wait after %d", name, n, i)
			}
			j.AddOutcome(Place{0, i}, i+1, refusedOutcome(fmt.Sprint("o", i), .5), "")
		}
		m := j.Mark()
		if !j.NeedsMark() {
			t.Errorf("%s: the rejects could be stored without a mark", name)
		}
		rejects := j.AppendRejects(nil)
		if n, _ := j.Parked(); n != 4 || len(rejects) != 6 || len(m.Positions[0].Refused) != 6 {
			t.Fatalf("%s: %d wait, %d are rejected, %d told in a mark", name, n, len(rejects), len(m.Positions[0].Refused))
		}
		for i, r := range rejects {
			if r.Reason != codec.ReasonOrphan || r.ID != fmt.Sprint("o", i) || string(r.Bytes) != string(refusedOutcome(r.ID, .5)) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		for i, id := range []string{"o5", "o6"} {
			if err := j.AddDecision(Place{0, int64(i)}, 20, refusedDecision(0, int64(i)+1, id)); err != nil {
				t.Fatal(err)
			}
		}
		j.Advance(End)
		if f := j.AppendReady(nil); len(f) != 2 || f[0].Fate != codec.Skipped || f[1].Fate != codec.Observed {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
