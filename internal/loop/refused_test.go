package loop

import (
	"testing"

	"hindsight/pkg/codec"
)

// refusedWorld is one epoch whose rounds take the first outcome.
func refusedWorld(partitions int) *world {
	return &world{partitions: partitions, maxPending: 10, dedup: 10, rules: []*Rules{{Range: Range{Max: 1}, Window: Window{Nanos: 100}}}}
}

func refusedDecision(p int, n int64, id string) []byte {
	return codec.AppendDecision(nil, &codec.Decision{Partition: p, N: n, ID: id, Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1}})
}

func refusedOutcome(id string, loss float64) []byte {
	return codec.AppendOutcome(nil, &codec.Outcome{ID: id, Kind: codec.Loss, Value: loss})
}

// restored returns a joiner that goes on behind a mark as the log has it, and knows of
// stored rejects.
func restored(t *testing.T, w *world, m codec.FeedbackMark, stored []codec.Reject) *Joiner {
	t.Helper()
	m, err := codec.ParseFeedbackMark(codec.AppendFeedbackMark(nil, &m))
	if err != nil {
		t.Fatal(err)
	}
	j := w.joiner()
	j.Restore(&m)
	for i := range stored {
		j.Refuse(&stored[i])
	}
	return j
}

// An outcome that was an orphan when it was read stays one, though a joiner after a
// restart finds its decision: told by the mark before its reject, by the reject, or both.
func TestOrphanStaysRejected(t *testing.T) {
	w := refusedWorld(1)
	j := w.joiner()
	fresh := j.Mark()
	j.AddOutcome(Place{0, 0}, 5, refusedOutcome("x", .5), "")
	_, seq := j.Parked()
	j.Orphans(seq)
	if !j.NeedsMark() {
		t.Fatal("the reject could be stored without a mark")
	}
	told := j.Mark()
	rejects := j.AppendRejects(nil)
	if len(rejects) != 1 || j.NeedsMark() {
		t.Fatalf("%+v", rejects)
	}
	passed := j.Mark()
	passed.Positions[0].OutcomesFrom, passed.Positions[0].OutcomesTime = 0, 0 // as for another round
	for name, k := range map[string]struct {
		m      codec.FeedbackMark
		stored []codec.Reject
		again  int // rejects
	}{
		"told":             {told, nil, 1},
		"stored":           {fresh, rejects, 0},
		"told and stored":  {told, rejects, 0},
		"passed by a mark": {passed, rejects, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := restored(t, w, k.m, k.stored)
			if m := j.Mark(); name == "told" {
				j = restored(t, w, m, nil) // and once more
			}
			if err := j.AddDecision(Place{0, 0}, 5, refusedDecision(0, 1, "x")); err != nil {
				t.Fatal(err)
			}
			j.AddOutcome(Place{0, 0}, 5, refusedOutcome("x", .5), "")
			j.Advance(End)
			rs, fs := j.AppendRejects(nil), j.AppendReady(nil)
			if len(fs) != 1 || fs[0].Fate != codec.Skipped {
				t.Errorf("it counted: %+v", fs)
			}
			if len(rs) != k.again || len(rs) > 0 && rs[0].Reason != codec.ReasonOrphan {
				t.Errorf("rejects: %+v", rs)
			}
		})
	}
	// Another record at that place, which a lost tail has left, is another outcome.
	j = restored(t, w, fresh, rejects)
	if err := j.AddDecision(Place{0, 0}, 6, refusedDecision(0, 1, "x")); err != nil {
		t.Fatal(err)
	}
	j.AddOutcome(Place{0, 0}, 5, refusedOutcome("x", .75), "")
	if fs := j.AppendReady(nil); len(fs) != 1 || fs[0].Fate != codec.Observed {
		t.Errorf("%+v", fs)
	}
}

// Of two outcomes of equal log time in two partitions the one that was read first
// counts, also if a joiner after a restart reads them the other way round.
func TestEqualTimesStayRejected(t *testing.T) {
	w := refusedWorld(2)
	begin := func(j *Joiner) {
		for n, id := range []string{"slow", "x"} { // slow holds x back
			if err := j.AddDecision(Place{0, int64(n)}, int64(n+1), refusedDecision(0, int64(n+1), id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	j := w.joiner()
	begin(j)
	j.AddOutcome(Place{1, 0}, 5, refusedOutcome("x", .25), "")
	j.AddOutcome(Place{0, 0}, 5, refusedOutcome("x", .75), "")
	if !j.NeedsMark() {
		t.Fatal("the reject could be stored without a mark")
	}
	told := j.Mark()
	rejects := j.AppendRejects(nil)
	if len(rejects) != 1 || rejects[0].Reason != codec.ReasonDuplicate || rejects[0].Partition != 0 {
		t.Fatalf("%+v", rejects)
	}
	j.AddOutcome(Place{0, 1}, 6, refusedOutcome("x", .5), "") // its round was taken earlier
	if !j.NeedsMark() {
		t.Error("the reject could be stored without a mark")
	}
	for _, k := range []*Joiner{restored(t, w, told, nil), restored(t, w, told, rejects)} {
		begin(k)
		k.AddOutcome(Place{0, 0}, 5, refusedOutcome("x", .75), "")
		k.AddOutcome(Place{1, 0}, 5, refusedOutcome("x", .25), "")
		k.AddOutcome(Place{0, 1}, 6, refusedOutcome("x", .5), "")
		k.Advance(End)
		fs := k.AppendReady(nil)
		if len(fs) != 2 || fs[1].Loss != .25 || fs[1].OutcomePartition != 1 {
			t.Errorf("%+v", fs)
		}
	}
}

// What counted is not rejected after a restart.
func TestCountedStaysCounted(t *testing.T) {
	w := refusedWorld(2)
	j := w.joiner()
	m := j.Mark()
	if err := j.AddDecision(Place{0, 0}, 1, refusedDecision(0, 1, "x")); err != nil {
		t.Fatal(err)
	}
	j.AddOutcome(Place{1, 0}, 5, refusedOutcome("x", .25), "")
	fs := j.AppendReady(nil)
	k := restored(t, w, m, nil)
	k.Resume(&fs[0])
	if err := k.AddDecision(Place{0, 0}, 1, refusedDecision(0, 1, "x")); err != nil {
		t.Fatal(err)
	}
	k.AddOutcome(Place{0, 0}, 5, refusedOutcome("x", .75), "") // was not there before
	k.AddOutcome(Place{1, 0}, 5, refusedOutcome("x", .25), "")
	rs := k.AppendRejects(nil)
	if again := k.AppendReady(nil); len(again) > 0 || len(rs) != 1 || rs[0].Partition != 0 {
		t.Errorf("%+v, %+v", again, rs)
	}
}

// A mark that tells of rejects has a restart read what the last mark had it read; but from the
// start where decisions are read from there again.
func TestMarkRejects(t *testing.T) {
	j := refusedWorld(1).joiner()
	give := func(from, to int64) {
		for n := from; n <= to; n++ {
			if err := j.AddDecision(Place{0, n}, n, refusedDecision(0, n, string(rune('a'+n)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	from := func(m codec.FeedbackMark) int64 { return m.Positions[0].DecisionsFrom }
	give(1, 2)
	j.AddOutcome(Place{0, 0}, 3, refusedOutcome("b", .5), "") // of the first, which waits no more
	if was := from(j.Mark()); was != 1 {                      // it has no feedback yet
		t.Fatal(was)
	}
	j.AppendReady(nil)
	if told, is := from(j.MarkRejects()), from(j.Mark()); told != 1 || is != 2 {
		t.Errorf("a restart reads from %d and %d, not 1 and 2", told, is)
	}
	j.Rewind(0)
	if told := from(j.MarkRejects()); told != 0 {
		t.Errorf("after a rewind a restart reads from %d", told)
	}
}
