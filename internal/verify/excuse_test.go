package verify

import (
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// insert puts a record behind the first of a partition that is not older than a log time.
func (w *world) insert(topic string, p int, time int64, r stream.Record) (restore func()) {
	was := w.records(topic, p)
	w.no(w.log.Edit(topic, p, func(recs []stream.Record) []stream.Record {
		i := slices.IndexFunc(recs, func(r stream.Record) bool { return r.Time >= time })
		r.Offset, r.Time = recs[i].Offset+1, recs[i].Time
		return slices.Insert(recs, i+1, r)
	}))
	return func() { w.no(w.log.Edit(topic, p, func([]stream.Record) []stream.Record { return was })) }
}

// lossyWorld is a world after a power failure, nil if no log tells of what that took.
func lossyWorld(t *testing.T, seed uint64) *world {
	w := newWorld(t, 1, seed)
	w.use(3)
	w.rounds(60)
	w.powerLoss()
	w.rounds(20)
	if !w.tellsOfLoss() {
		return nil
	}
	return w
}

// TestVerifyLossExcusesLittle holds that a loss excuses what it may have taken, and nothing
// that lies long before it.
func TestVerifyLossExcusesLittle(t *testing.T) {
	tried := 0
	for seed := uint64(0); tried < 3; seed++ {
		w := lossyWorld(t, seed)
		if w == nil {
			continue
		}
		tried++
		if r := w.verify(); r.Differences > 0 {
			t.Fatalf("seed %d: %s", seed, r.text())
		}
		decisions, contexts := w.records(w.ts.Decisions, 0), w.records(w.ts.Contexts, 0)
		early := decisions[5].Time
		var decided codec.Decision
		var of stream.Record
		for _, r := range decisions {
			if r.Type == "" && r.Time > early && codec.ParseDecision(&decided, r.Value) == nil && decided.Source >= 0 {
				of = contexts[slices.IndexFunc(contexts, func(c stream.Record) bool {
					return c.Offset == decided.Source
				})]
				break
			}
		}
		reject := func(offset, time int64, bytes []byte) stream.Record {
			return stream.Record{Value: codec.AppendReject(nil, &codec.Reject{Topic: "contexts", Offset: offset,
				Time: time, Reason: codec.ReasonMalformed, Bytes: bytes})}
		}
		for _, plant := range []struct {
			what, topic string
			rec         stream.Record
			found       [2]string // where, and in which field
		}{
			{"an undecided context", w.ts.Contexts,
				stream.Record{Value: []byte(`{"id":"forgotten","features":{"x":1},"actions":["a","b","c"]}`)},
				[2]string{w.ts.Contexts, "decision"}},
			{"an outcome without fate", w.ts.Outcomes, stream.Record{Value: []byte(`{"id":"nobody","loss":0.5}`)},
				[2]string{w.ts.Feedback, "outcomes[0].sum"}},
			{"a reject of nothing", w.ts.Rejects, reject(contexts[1].Offset+1, early, nil), [2]string{w.ts.Rejects,
				"offset"}},
			{"a reject of what was decided", w.ts.Rejects, reject(of.Offset, of.Time, of.Value),
				[2]string{w.ts.Decisions, "source"}},
		} {
			restore := w.insert(plant.topic, 0, early, plant.rec)
			r := w.verify()
			if f := r.First; r.ExitCode() != Different || f.Topic != plant.found[0] || f.Field != plant.found[1] {
				t.Errorf("seed %d: %s went unnoticed: %+v\n%s", seed, plant.what, f, r.text())
			}
			restore()
		}
	}
}

// TestVerifyLossCounts holds that what a loss excuses is not called checked.
func TestVerifyLossCounts(t *testing.T) {
	var contexts, rejects int64
	for seed := uint64(0); seed < 30 && (contexts == 0 || rejects == 0); seed++ {
		w := lossyWorld(t, seed)
		if w == nil {
			continue
		}
		r := w.verify()
		if r.Differences > 0 {
			t.Fatalf("seed %d: %s", seed, r.text())
		}
		if old := r.Contexts.TooOld + r.Rejects.TooOld; old > 0 &&
			(r.ExitCode() != TooOld || !strings.Contains(r.text(), "too old")) {
			t.Errorf("seed %d: exit code %d\n%s", seed, r.ExitCode(), r.text())
		}
		contexts, rejects = contexts+r.Contexts.TooOld, rejects+r.Rejects.TooOld
	}
	if contexts == 0 || rejects == 0 {
		t.Errorf("after losses %d contexts and %d rejects are counted as not checked", contexts, rejects)
	}
}

// TestVerifyCutRepeats holds that a round which has its feedback twice is a difference in a
// log that has lost its beginning, before the first mark too.
func TestVerifyCutRepeats(t *testing.T) {
	w, _ := cutWorld(t)
	cut, behind := int64(0), 0
	for _, r := range w.records(w.ts.Feedback, 0) {
		if behind++; r.Type != "" {
			cut, behind = r.Offset+1, 0
		} else if behind == 3 {
			break // of two partitions
		}
	}
	w.no(w.log.Truncate(w.ts.Feedback, 0, cut))
	if r := w.verify(); r.Differences > 0 {
		t.Fatal(r.text())
	}
	first := map[int]codec.Feedback{} // of a partition
	for _, r := range w.records(w.ts.Feedback, 0) {
		if r.Type == codec.TypeMark {
			t.Fatal("there is a mark before two feedbacks of a partition")
		}
		var f codec.Feedback
		if r.Type != "" || codec.ParseFeedback(&f, r.Value) != nil {
			continue
		}
		if g, ok := first[f.Partition]; !ok {
			first[f.Partition] = f
		} else {
			n := f.N
			f = g
			f.N = n
			w.edit(w.ts.Feedback, 0, r.Offset, func(r *stream.Record) {
				r.Key, r.Value = []byte(f.ID), codec.AppendFeedback(nil, &f)
			})
			break
		}
	}
	if d := w.verify().First; d == nil || d.Topic != w.ts.Feedback || d.Field != "round" {
		t.Errorf("a round that has its feedback twice: %+v", d)
	}
}
