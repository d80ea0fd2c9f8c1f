package loop

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/codec"
)

// long reports whether to take more cases than fit an ordinary run.
func long() bool { return os.Getenv("HINDSIGHT_LONG") != "" }

// check runs a property on some hundreds of cases, or many.
func check(t *testing.T, hundreds int, prop func(*rapid.T)) {
	t.Helper()
	if long() {
		hundreds *= 50
	}
	for range hundreds {
		rapid.Check(t, prop)
	}
}

// emitted is what came out of a joiner.
type emitted struct {
	feedback [][]byte
	rejects  []codec.Reject
	losses   LateLosses
}

func (e *emitted) take(t *rapid.T, j *Joiner) {
	for _, f := range j.AppendReady(nil) {
		if err := f.Validate(); err != nil {
			t.Fatalf("feedback %d: %v", f.N, err)
		}
		e.feedback = append(e.feedback, codec.AppendFeedback(nil, &f))
	}
	e.rejects = j.AppendRejects(e.rejects)
}

// drive gives a world to a joiner and takes what it emits in batches that end where
// often says.
func drive(t *rapid.T, w *world, often func() bool) *emitted {
	j, e := w.joiner(), new(emitted)
	steps := w.script()
	for i := range steps {
		if err := give(j, &steps[i]); err != nil {
			t.Fatal(err)
		}
		invariants(t, j)
		if often() {
			e.take(t, j)
			j.Mark()
		}
	}
	e.take(t, j)
	e.losses = j.LateLosses()
	if j.LastN() != int64(len(e.feedback)) {
		t.Fatalf("LastN is %d after %d feedbacks", j.LastN(), len(e.feedback))
	}
	return e
}

// print says what a feedback is, for people.
func print(b []byte) string {
	var f codec.Feedback
	if err := codec.ParseFeedback(&f, b); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d: %d/%d %q epoch %d %v %q loss %v by %d@%d closed at %d", f.N, f.Partition, f.Round, f.ID, f.Epoch,
		f.Fate, f.Reason, f.Loss, f.OutcomePartition, f.OutcomeOffset, f.ClosedAt)
}

// same fails unless two runs gave the same feedback.
func same(t *rapid.T, got, want [][]byte) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("missing: %s", print(want[i]))
		case i >= len(want):
			t.Fatalf("too many: %s", print(got[i]))
		case !bytes.Equal(got[i], want[i]):
			t.Fatalf("feedback differs\n got %s\nwant %s", print(got[i]), print(want[i]))
		}
	}
}

func sortRejects(rs []codec.Reject) []codec.Reject {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].Detail = ""
	}
	slices.SortFunc(rs, func(a, b codec.Reject) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return rs
}

func sameRejects(t *rapid.T, got, want []codec.Reject) {
	t.Helper()
	got, want = sortRejects(got), sortRejects(want)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("missing reject: %+v", want[i])
		case i >= len(want):
			t.Fatalf("too many rejects: %+v", got[i])
		}
		g, w := got[i], want[i]
		if g.Partition != w.Partition || g.Offset != w.Offset || g.Reason != w.Reason || g.ID != w.ID || g.Time != w.Time || !bytes.Equal(g.Bytes, w.Bytes) {
			t.Fatalf("reject differs\n got %+v\nwant %+v", g, w)
		}
	}
}

// The joiner equals the dumb twin, whatever the batches.
func TestJoinerTwin(t *testing.T) {
	world := genWorld(worldOptions{rounds: 12})
	check(t, 20, func(t *rapid.T) {
		w := world.Draw(t, "world")
		tw := runTwin(w)
		for _, batch := range []int{1, 3, 1000} {
			e := drive(t, w, func() bool { return rapid.IntRange(1, batch).Draw(t, "batch") == 1 })
			same(t, e.feedback, tw.feedback())
			sameRejects(t, e.rejects, tw.rejects)
			onceEach(t, w, e.feedback)
			on, late := tw.lateLosses()
			sameMoments(t, "on time", &e.losses.OnTime, on)
			sameMoments(t, "late", &e.losses.Late, late)
		}
	})
}

// onceEach fails unless every decision has at most one feedback, in the order of N
// for each partition if the model says so, and exactly one if the file came to its
// end.
func onceEach(t *rapid.T, w *world, feedback [][]byte) {
	seen := map[string]bool{}
	last := make([]int64, w.partitions)
	fifo := !slices.ContainsFunc(w.rules, func(r *Rules) bool { return r.Arrival || r.Early })
	for _, b := range feedback {
		var f codec.Feedback
		if err := codec.ParseFeedback(&f, b); err != nil {
			t.Fatal(err)
		}
		round := fmt.Sprint(f.Partition, f.Round)
		if seen[round] {
			t.Fatalf("twice: %s", print(b))
		}
		seen[round] = true
		if fifo && f.Round <= last[f.Partition] {
			t.Fatalf("out of order: %s", print(b))
		}
		last[f.Partition] = f.Round
	}
	decided := 0
	for _, part := range w.decisions {
		for _, r := range part {
			if !r.pass && r.from == 0 {
				decided++
			}
		}
	}
	if end := w.controls[len(w.controls)-1]; end.time == End && len(seen) != decided {
		t.Fatalf("%d feedbacks of %d decisions", len(seen), decided)
	}
}

// invariants checks what must hold of a joiner after each call.
func invariants(t *rapid.T, j *Joiner) {
	waiting, held := 0, 0
	for i := range j.queue.len() {
		p := *j.queue.at(i)
		switch {
		case p == nil && i == 0 || p != nil && i == 0 && p.ready:
			t.Fatal("the head of the line has its fate and waits")
		case p == nil:
			continue
		case p.count == 0 && !p.activated && !p.ready && len(p.outs) > 0:
			t.Fatalf("round %q needs outcomes %v and has none", p.d.ID, p.outs)
		case p.ready && p.outPart >= 0 && len(p.outs) == 0 || p.count > 0 && len(p.outs) == 0:
			t.Fatalf("round %q does not need its outcome", p.d.ID)
		}
		waiting++
		if p.ready {
			held++
		}
	}
	if n, wait := j.Held(); n != held || wait < 0 {
		t.Fatalf("%d rounds with a fate wait, and %d are counted, for %d ns", held, n, wait)
	}
	if waiting != j.waiting || waiting > j.o.MaxPending {
		t.Fatalf("%d of %d rounds wait, and %d are counted", waiting, j.o.MaxPending, j.waiting)
	}
	if j.old.len() > j.o.Dedup || j.rounds.live > j.o.Dedup+waiting {
		t.Fatalf("%d rounds are remembered and %d wait", j.rounds.live, waiting)
	}
}
