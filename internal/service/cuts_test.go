package service

import (
	"errors"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// cutMark is a mark of a joiner that logs its cuts, after feedback n and rounds.
func cutMark(t *testing.T, v *visited, n, rounds int64, eras ...codec.EraStart) codec.FeedbackMark {
	t.Helper()
	_, was, err := join.LastMark(t.Context(), v.log, v.topics.Feedback)
	must(t, 0, err)
	return codec.FeedbackMark{N: n, Cut: 1, Era: int64(len(eras)), Eras: eras, From: -1,
		Limits:    codec.Limits{Heart: 1, Pending: 1000, Bytes: 1 << 30, Dedup: 100},
		Positions: []codec.Position{{Round: rounds, Decisions: rounds + 1, Outcomes: rounds + 1}}, Epochs: was.Epochs}
}

func (v *visited) writeMark(m codec.FeedbackMark) {
	v.Helper()
	v.write(v.topics.Feedback, stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, &m)})
}

// next decides one round and returns it.
func (v *visited) next() (d codec.Decision) {
	v.Helper()
	v.rounds++
	v.write(v.topics.Contexts, stream.Record{Value: []byte(`{"features":{"x":1},"actions":["a","b"]}`)})
	must(v.T, 0, v.decide())
	must(v.T, 0, stream.Scan(v.Context(), v.log, v.topics.Decisions, 0, stream.Earliest, 1<<40,
		func(r *stream.Record) error {
			if r.Type != "" {
				return nil
			}
			return codec.ParseDecision(&d, append([]byte(nil), r.Value...))
		}))
	return d
}

// decide lets the decider work alone.
func (v *visited) decide() error {
	ctx := v.Context()
	for {
		b1, err1 := v.d.StepFeedback(ctx, 0)
		b2, err2 := v.d.StepContexts(ctx, 10)
		if err := errors.Join(err1, err2, v.d.out.Flush(ctx), v.d.Err(), v.d.WriteSnapshots(ctx)); err != nil ||
			!b1 && !b2 {
			return err
		}
	}
}

func (v *visited) reopenDecider() error {
	v.d.Close()
	d, err := OpenDecider(v.Context(), v.dc)
	if err == nil {
		v.d = d
	}
	return err
}

// feedbackOf closes a round that waits.
func feedbackOf(n int64, d *codec.Decision) []byte {
	return codec.AppendFeedback(nil, &codec.Feedback{N: n, Round: d.N, ID: d.ID, Epoch: d.Epoch,
		LearnedThrough: d.LearnedThrough, Time: d.Time,
		Actions: d.Actions, Propensities: d.Propensities, Action: d.Action, Fate: codec.Observed, Loss: 0.5,
		Context: d.Context})
}

// TestCutsRead: a decider goes on, live and opened anew, over cuts and marks of version 4, and says
// their era.
func TestCutsRead(t *testing.T) {
	v := newVisited(t, mem.New(mem.Options{}))
	v.play(12)
	v.j.Close()
	v.dc.SnapshotEvery = 1
	must(t, 0, v.reopenDecider())
	first := v.next()
	if first.LearnedThrough != 12 || first.Era != 0 {
		t.Fatalf("%+v", first)
	}
	cut := codec.Cut{Cut: 1, Time: 1, Decisions: []codec.Range{{Next: 14, Sum: 1}}}
	v.write(v.topics.Feedback, stream.Record{Type: codec.TypeCut, Value: codec.AppendCut(nil, &cut)})
	v.writeMark(cutMark(t, v, 12, 50, codec.EraStart{Era: 1, N: 12}))
	v.write(v.topics.Feedback, stream.Record{Type: codec.TypeCut, Value: codec.AppendCut(nil, &cut)})
	v.write(v.topics.Feedback, stream.Record{Key: []byte(first.ID), Value: feedbackOf(13, &first)})
	if d := v.next(); d.N != 14 || d.LearnedThrough != 13 || d.Era != 1 {
		t.Errorf("behind the mark: %+v", d)
	}
	for range 2 { // from the snapshot that it wrote
		if err := v.reopenDecider(); err != nil {
			t.Fatal(err)
		}
		if d := v.next(); d.LearnedThrough != 13 || d.Era != 1 || d.N < 51 { // the mark told of round 50
			t.Errorf("opened anew: %+v", d)
		}
	}
	var last *follow.Snapshot
	must(t, 0, follow.ReadSnapshots(t.Context(), v.log, v.topics, func(s *follow.Snapshot, err error) error {
		last = s
		return err
	}))
	if last.Through != 13 || last.Era != 1 {
		t.Errorf("the last snapshot is of feedback %d in era %d", last.Through, last.Era)
	}
	_, m, err := join.LastMark(t.Context(), v.log, v.topics.Feedback)
	if err != nil || m.V != 4 || len(m.Epochs) == 0 {
		t.Errorf("the last mark: %+v, %v", m, err)
	}
	if n, err := topics.Partitions(t.Context(), v.log, "m"); n != 1 || err != nil {
		t.Errorf("%d partitions, %v", n, err)
	}
	if n := v.counted(); n > 0 {
		t.Errorf("%v foreign records", n)
	}
}

// TestEraVoids: a decider that learned feedback which a later era says is gone ends, and the
// snapshots of it are passed over.
func TestEraVoids(t *testing.T) {
	v := newVisited(t, mem.New(mem.Options{}))
	v.play(12)
	v.j.Close()
	m := cutMark(t, v, 12, 12, codec.EraStart{Era: 1, N: 12})
	v.writeMark(m)
	was := v.next()
	if was.Era != 1 || was.LearnedThrough != 12 {
		t.Fatalf("%+v", was)
	}
	m = cutMark(t, v, 5, 12, codec.EraStart{Era: 1, N: 12}, codec.EraStart{Era: 2, N: 5})
	v.writeMark(m)
	v.write(v.topics.Contexts, stream.Record{Value: []byte(`{"features":{"x":1},"actions":["a","b"]}`)})
	if err := v.decide(); !errors.Is(err, follow.ErrVoid) {
		t.Errorf("who learned more goes on: %v", err)
	}
	void, used := 0, 0
	must(t, 0, stream.Scan(t.Context(), v.log, v.topics.Snapshots, 0, stream.Earliest, 1<<40,
		func(r *stream.Record) error {
			if s, err := codec.ParseSnapshot(r.Value); err == nil && s.LearnedThrough > 5 {
				void++
			}
			return nil
		}))
	must(t, 0, follow.ReadSnapshots(t.Context(), v.log, v.topics, func(s *follow.Snapshot, err error) error {
		if s.Through > 5 {
			used++
		}
		return err
	}))
	if void == 0 || used > 0 {
		t.Errorf("%d snapshots of feedback that is gone, of which %d are used", void, used)
	}
	f := follow.New(v.log, "m", nil, 1)
	for _, x := range []struct {
		era, n int64
		want   bool
	}{{0, 5, false}, {0, 6, true}, {1, 6, true}, {2, 6, false}} {
		if got, err := f.Announced(t.Context(), x.era, x.n); err != nil || got != x.want {
			t.Errorf("feedback %d of era %d is announced lost: %v, %v", x.n, x.era, got, err)
		}
	}
}
