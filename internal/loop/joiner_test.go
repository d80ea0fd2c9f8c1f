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

// print says what a feedback is, for people.
func print(b []byte) string {
	var f codec.Feedback
	if err := codec.ParseFeedback(&f, b); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d: %d/%d %q epoch %d %v %q loss %v by %d@%d closed at %d", f.N, f.Partition, f.Round,
		f.ID, f.Epoch, f.Fate, f.Reason, f.Loss, f.OutcomePartition, f.OutcomeOffset, f.ClosedAt)
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
		if g.Partition != w.Partition || g.Offset != w.Offset || g.Reason != w.Reason || g.ID != w.ID ||
			g.Time != w.Time || !bytes.Equal(g.Bytes, w.Bytes) {
			t.Fatalf("reject differs\n got %+v\nwant %+v", g, w)
		}
	}
}

// TestJoinerTwin: the joiner equals the dumb twin, which judges by the order of the cuts, wherever they
// lie.
func TestJoinerTwin(t *testing.T) {
	checkWorlds(t, 10, func(t *rapid.T) {
		w := genWorld(12).Draw(t, "world")
		l := newCutLog(w)
		cuts := drawCuts(t, l, rapid.Bool().Draw(t, "legal"), int64(rapid.IntRange(0, 5).Draw(t, "lead")))
		got, rejects := l.join(t, cuts, w.limits(), 1)
		tw := runTwin(w, l.script(cuts))
		sameFeedback(t, got, tw.feedback())
		sameRejects(t, rejects, tw.rejects)
		onceEach(t, w, got)
	})
}

// TestJoinerSeed: what a joiner emits is the same whatever the seed of its hashes.
func TestJoinerSeed(t *testing.T) {
	checkWorlds(t, 3, func(t *rapid.T) {
		w := genWorld(12).Draw(t, "world")
		l := newCutLog(w)
		cuts := drawCuts(t, l, true, 3)
		want, rejected := l.join(t, cuts, w.limits(), 0)
		got, rejects := l.join(t, cuts, w.limits(), rapid.Uint64().Draw(t, "seed"))
		sameFeedback(t, got, want)
		sameRejects(t, rejects, rejected)
	})
}

// join returns what a joiner emits that takes cuts of the log.
func (l *cutLog) join(t *rapid.T, cuts []cutAt, limits codec.Limits, seed uint64) (feedback [][]byte,
	rejects []codec.Reject) {
	j := NewJoiner(l.partitions, limits, seed, l.rules)
	for k, at := range cuts {
		prev := l.positions(j)
		if err := l.take(j, &cutEntry{cut: l.cut(int64(k+1), at.time, prev, at.next), prev: prev}); err != nil {
			t.Fatal(err)
		}
		cutInvariants(t, j)
		var ready Ready
		j.Ready(&ready)
		feedback, rejects = feedbackBytes(feedback, ready.Feedback), append(rejects, ready.Rejects...)
	}
	return feedback, rejects
}

// onceEach fails unless every decision has one feedback, in the order of N for each partition if the
// model says so.
func onceEach(t *rapid.T, w *world, feedback [][]byte) {
	t.Helper()
	seen := map[Place]bool{}
	last := make([]int64, w.partitions)
	fifo := !slices.ContainsFunc(w.rules, func(r *Rules) bool { return r.Arrival || r.Early })
	for _, b := range feedback {
		var f codec.Feedback
		if err := codec.ParseFeedback(&f, b); err != nil {
			t.Fatal(err)
		}
		if err := f.Validate(); err != nil {
			t.Fatalf("feedback %d: %v", f.N, err)
		}
		if at := (Place{f.Partition, f.Round}); seen[at] {
			t.Fatalf("twice: %s", print(b))
		} else {
			seen[at] = true
		}
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
	if len(seen) != decided {
		t.Fatalf("%d feedbacks of %d decisions", len(seen), decided)
	}
}
