package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// attempt verifies a world and returns what it knows then.
func (w *world) attempt() *verification {
	v, err := Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
		Dedup: worldDedup}.attempt(w.ctx)
	w.no(err)
	return v
}

// TestBeginAtSnapshot: recomputing that begins at a snapshot goes on at the first feedback that it has not learned, or
// at the first later epoch.
func TestBeginAtSnapshot(t *testing.T) {
	w := liveWorld(t, 1, 3, 25)
	v := w.attempt()
	fed := w.records(w.ts.Feedback, 0)
	tried := 0
	begins := func(epoch, through int64) { // as if the snapshot were of that place
		d := &decisionCheck{v: v, audit: follow.New(w.log, worldName, model.Epoch, w.parts)}
		c, err := v.openCursor(w.ctx, w.ts.Feedback, 0)
		w.no(err)
		defer c.close()
		d.feedback = c
		s := *v.snapshots[0]
		s.epoch, s.through = epoch, through
		w.no(d.beginSnapshot(w.ctx, &s))
		got, err := d.feedback.head(w.ctx)
		w.no(err)
		for _, r := range fed {
			var f codec.Feedback
			rec, err := codec.ParseEpoch(r.Value)
			if r.Type == codec.TypeEpoch && err == nil && rec.Epoch > epoch ||
				r.Type == "" && codec.ParseFeedback(&f, r.Value) == nil && f.N > through {
				if tried++; got == nil || got.Offset != r.Offset {
					t.Errorf("from epoch %d, feedback %d on: %+v, want offset %d", epoch, through, got, r.Offset)
				}
				return
			}
		}
	}
	for _, r := range fed {
		if rec, err := codec.ParseEpoch(r.Value); r.Type == codec.TypeEpoch && err == nil {
			begins(rec.Epoch-1, rec.Through)
			begins(rec.Epoch-1, rec.Through-1)
			begins(rec.Epoch, rec.Through+5)
		}
	}
	if tried < 3*len(worldModels) {
		t.Errorf("%d places were tried", tried)
	}
}

// TestErasOfMarks: a mark tells of a loss if it says so, or if its era is later than the last that is known. That of
// the first mark of a log that has lost its beginning may have begun at any time before.
func TestErasOfMarks(t *testing.T) {
	mark := func(era, lost int64) codec.FeedbackMark {
		return codec.FeedbackMark{Era: era, Lost: lost, Limits: codec.Limits{Heart: 1}}
	}
	for _, c := range []struct {
		first int64 // offset that is kept
		marks []codec.FeedbackMark
		want  int
	}{
		{1, []codec.FeedbackMark{mark(0, 0)}, 0}, {1, []codec.FeedbackMark{mark(1, 0)}, 1},
		{9, []codec.FeedbackMark{mark(0, 0)}, 0}, {9, []codec.FeedbackMark{mark(1, 0)}, 1},
		{9, []codec.FeedbackMark{mark(1, 0), mark(1, 0)}, 1}, {9, []codec.FeedbackMark{mark(1, 0), mark(2, 0)}, 2},
		{9, []codec.FeedbackMark{mark(0, 3)}, 1},
	} {
		d := &decisionCheck{v: &verification{}, feedback: &logCursor{first: c.first}, since: 5, anyEra: true}
		for i := range c.marks {
			d.mark(&stream.Record{}, &c.marks[i])
		}
		all := d.v.losses.all
		if got := len(all); got != c.want || got > 0 && (all[0].since == 0) != (c.first > 1) || d.anyEra {
			t.Errorf("%+v: losses %+v, any era %t", c, all, d.anyEra)
		}
	}
}

// TestMarksBehindDecisions: behind the last decision a mark that can be read tells of eras, and nothing else does.
func TestMarksBehindDecisions(t *testing.T) {
	good := codec.AppendFeedbackMark(nil, &codec.FeedbackMark{Era: 2, Limits: codec.Limits{Heart: 1}})
	topic := join.TopicsOf(worldName).Feedback
	log := logOf(t, topic, []stream.Record{{Type: codec.TypeMark, Value: good}, {Type: codec.TypeMark, Value: []byte("{}")},
		{Type: "of others", Value: codec.AppendFeedbackMark(nil, &codec.FeedbackMark{Era: 7})}})
	v := &verification{Config: Config{Log: log}, found: map[site]Difference{}}
	v.models = newModelReader(v)
	d := &decisionCheck{v: v}
	var err error
	if d.feedback, err = v.openCursor(t.Context(), topic, 0); err != nil {
		t.Fatal(err)
	}
	if err := d.rest(t.Context()); err != nil || d.eras.Era != 2 {
		t.Errorf("era %d, %v", d.eras.Era, err)
	}
}

// TestLostContextOfRequest: a decision of a request had read the contexts before it: that the last of them is lost
// excuses it.
func TestLostContextOfRequest(t *testing.T) {
	for through, excused := range map[int64]bool{3: false, 4: true, 6: true, 7: false} {
		v := &verification{found: map[site]Difference{}, rejects: &rejectIndex{}}
		l := &decisionLane{v: v, decisions: &logCursor{}, rec: &stream.Record{},
			head: codec.Decision{Source: loop.RequestSource, ContextsThrough: through}, heart: &loop.Decider{}}
		if l.wrong("n", 1, 2); l.heart != nil {
			t.Error("what is wrong is remembered")
		}
		l.lost = append(l.lost, codec.DecisionMark{ContextsThrough: 3, ContextsLost: 6})
		if v.settle(); (v.report.Differences == 0) != excused {
			t.Errorf("contexts were read to %d: %+v", through, v.report.First)
		}
	}
}

// TestDecidedTwice: a decision that is stored twice has a wrong number, and not an id of an earlier round.
func TestDecidedTwice(t *testing.T) {
	w := liveWorld(t, 1, 3, 5)
	recs := w.records(w.ts.Decisions, 0)
	last := recs[len(recs)-1]
	for i := range recs {
		if recs[i].Type == "" {
			last.Key, last.Value = recs[i].Key, recs[i].Value
		}
	}
	last.Offset, last.Type = last.Offset+1, ""
	w.no(w.log.Edit(w.ts.Decisions, 0, func([]stream.Record) []stream.Record { return append(recs, last) }))
	at := site{topic: w.ts.Decisions, offset: last.Offset, field: "n"}
	found := w.attempt().found
	_, number := found[at]
	at.field = "id"
	if _, id := found[at]; !number || id {
		t.Errorf("%+v", found)
	}
}

// TestNewHeart: a heart that decides again remembers the id of the last round alone: of those before it the log tells.
func TestNewHeart(t *testing.T) {
	w := liveWorld(t, 1, 3, 5)
	v := w.attempt()
	l := &decisionLane{v: v, units: loop.NewUnits(1), head: codec.Decision{N: 5}}
	h := l.newHeart(v.models.epochs[v.models.last].replica)
	if h.Next() != 5 || h.ContextsThrough() != 0 {
		t.Errorf("round %d, contexts to %d", h.Next(), h.ContextsThrough())
	}
	for i, id := range []string{"a", "b", "a"} {
		var d codec.Decision
		res := h.Decide(&d, []byte(`{"features":{},"actions":["a","b"]}`), id,
			loop.Source{Offset: int64(i), Through: int64(i) + 1})
		if res.Verdict != loop.Decided || d.N != int64(5+i) || d.ContextsThrough != int64(i)+1 {
			t.Errorf("%d: %+v, %+v", i, res, d)
		}
	}
}

// TestDecidedAgain: where a context cannot be decided again, what became of it is told.
func TestDecidedAgain(t *testing.T) {
	w := liveWorld(t, 1, 3, 5)
	v := w.attempt()
	d := &decisionCheck{v: v}
	l := &decisionLane{v: v, units: loop.NewUnits(1), decisions: &logCursor{}, rec: &stream.Record{Offset: 7},
		head: codec.Decision{N: 5}}
	h := l.newHeart(v.models.epochs[v.models.last].replica)
	for i, c := range []struct{ raw, want string }{{`{"features":{},"actions":["a","b"]}`, ""},
		{`{"features":{},"actions":["a","b"]}`, "a repeat of round 5"}, {"{", "context: "}} {
		v.report, v.suspects, l.raw = Report{}, nil, []byte(c.raw)
		ok, err := d.again(l, h, loop.Source{Offset: int64(i), Through: int64(i) + 1}, "x")
		v.settle()
		if x := v.report.First; err != nil || ok != (c.want == "") || (x == nil) != ok ||
			x != nil && (x.Field != "context" || !strings.HasPrefix(x.Got, c.want)) {
			t.Errorf("%s: %v, %v, %+v", c.raw, ok, err, x)
		}
	}
}

// TestFollowNoFurther: the replica learns no more than a decision had, though there it is not in the epoch of that.
func TestFollowNoFurther(t *testing.T) {
	w := liveWorld(t, 1, 3, 10)
	v := w.attempt()
	v.models = newModelReader(v)
	c, err := v.openCursor(w.ctx, w.ts.Feedback, 0)
	w.no(err)
	defer c.close()
	d := &decisionCheck{v: v, audit: follow.New(w.log, worldName, model.Epoch, w.parts), feedback: c}
	for _, to := range []place{{0, 5, 99}, {0, 3, 1}, {0, 6, 1}} {
		lost, err := d.follow(w.ctx, to)
		if got := d.audit.Replica().LearnedThrough(); err != nil || lost || got != max(5, to.through) {
			t.Errorf("%v: %v, %v, learned %d", to, lost, err, got)
		}
	}
}

// TestNumberedFeedback: where the replay cannot stand, feedback is numbered on from what is known.
func TestNumberedFeedback(t *testing.T) {
	for _, c := range []struct {
		n, got int64
		ok     bool
	}{{-1, 7, true}, {0, 1, true}, {0, 2, false}, {3, 4, true}, {3, 5, false}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		v.Build = model.Epoch
		f := v.newFates(&logCursor{}, nil)
		f.n, f.begun = c.n, true
		x := codec.Feedback{N: c.got, ID: "a", Epoch: 1, Fate: codec.Skipped, Round: 1, OutcomePartition: -1,
			OutcomeOffset: -1, Actions: []string{"a"}, Propensities: []float64{1}}
		err := f.odd(t.Context(), &stream.Record{Value: codec.AppendFeedback(nil, &x)}, nil)
		if d := v.report.First; err != nil || (d == nil) != c.ok ||
			d != nil && (d.Field != "n" || d.Want != i64(c.n+1) || d.Got != i64(c.got)) || f.first != c.got {
			t.Errorf("%+v: %v, %+v, the first %d", c, err, d, f.first)
		}
		x.N, v.report = c.got+1, Report{}
		err = errors.Join(f.odd(t.Context(), &stream.Record{Value: codec.AppendFeedback(nil, &x)}, nil),
			f.odd(t.Context(), &stream.Record{Value: []byte("{")}, nil))
		if d := v.report.First; err != nil || v.report.Differences != 1 || d.Field != "bytes" || d.Round != x.N ||
			f.first != c.got || f.checked.TooOld != 2 {
			t.Errorf("%+v: %v, %+v, the first %d, %+v", c, err, d, f.first, f.checked)
		}
	}
}

// TestOddFeedback: where the log does not hold the feedback that is due, what it holds is told, and the rest is due
// from there on.
func TestOddFeedback(t *testing.T) {
	feedback := func(n int64) *codec.Feedback {
		return &codec.Feedback{N: n, ID: "a", Epoch: 1, Fate: codec.Skipped, Round: n, OutcomePartition: -1,
			OutcomeOffset: -1, Actions: []string{"a"}, Propensities: []float64{1}}
	}
	for _, c := range []struct {
		got, n  int64
		left    int
		field   string
		checked int64
	}{{5, 5, 2, "", 1}, {4, 5, 2, "n", 1}, {6, 6, 1, "n", 1}, {7, 7, 0, "n", 1}, {8, 7, 0, "n", 1},
		{0, 4, 3, "bytes", 0}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.heart, f.n = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10}), 4
		f.due = []codec.Feedback{*feedback(5), *feedback(6), *feedback(7)}
		r := stream.Record{Key: []byte("a"), Value: codec.AppendFeedback(nil, feedback(c.got))}
		if c.got == 0 {
			r.Value = r.Value[:len(r.Value)-1]
		}
		err := f.round(t.Context(), &r)
		if d := v.report.First; err != nil || f.n != c.n || len(f.due) != c.left || (d == nil) != (c.field == "") ||
			d != nil && (d.Field != c.field || c.got > 0 && d.Round != c.got) ||
			f.checked != (Tally{Records: 1, Checked: c.checked}) {
			t.Errorf("%+v: %v, n %d, %d are due, %+v, %+v", c, err, f.n, len(f.due), f.checked, d)
		}
	}
	for begun, field := range map[bool]string{true: "", false: "round"} { // a cut that cannot be read may have given it
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.heart = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10})
		f.begun, f.unread = true, begun
		err := f.round(t.Context(), &stream.Record{Key: []byte("a"), Value: codec.AppendFeedback(nil, feedback(5))})
		if d := v.report.First; err != nil || (d == nil) != (field == "") || d != nil && d.Field != field {
			t.Errorf("%v: %v, %+v", begun, err, d)
		}
	}
}

// TestTailsOfEras: the mark of an era stands where each input that has lost its tail ends.
func TestTailsOfEras(t *testing.T) {
	v := &verification{found: map[site]Difference{}, partitions: 2}
	f := v.newFates(&logCursor{}, nil)
	f.heart = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10})
	for _, topic := range []string{"decisions", "outcomes"} {
		for p := range 2 {
			for _, c := range []struct {
				offset, was int64
				ok          bool
			}{{0, 1, true}, {0, 0, false}, {1, 2, false}} {
				v.report = Report{}
				f.survives(&stream.Record{}, &codec.FeedbackMark{LostTails: []codec.LostTail{
					{Topic: "rejects", Offset: 5}, {Topic: topic, Partition: p, Offset: c.offset, Was: c.was}}})
				if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "lost" {
					t.Errorf("%s[%d] %+v: %+v", topic, p, c, d)
				}
			}
		}
	}
}

// TestRemembersOfMarks: a mark says of how much feedback the ids are remembered; of none it may say any number beyond.
func TestRemembersOfMarks(t *testing.T) {
	for _, c := range []struct {
		fed, remembers int64
		ok             bool
	}{{0, 1, true}, {0, 2, true}, {1, 1, true}, {1, 2, false}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.heart = loop.NewJoiner(1, codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10}, 1,
			func(int64) *loop.Rules { return &loop.Rules{Impute: true} })
		if c.fed > 0 {
			event := loop.DecisionEvent{Offset: 1, Time: 10, D: codec.Decision{N: 1, ID: "a", Epoch: 1,
				Actions: []string{"a"}, Propensities: []float64{1}}}
			for _, cut := range []struct {
				codec.Cut
				batches []loop.Batch
			}{{codec.Cut{Cut: 1, Time: 10, Decisions: []codec.Range{{Next: 2}}},
				[]loop.Batch{{Decisions: []loop.DecisionEvent{event}}}}, {codec.Cut{Cut: 2, Time: 1000}, nil}} {
				if err := f.heart.Take(&cut.Cut, cut.batches); err != nil {
					t.Fatal(err)
				}
				f.heart.Ready(&f.ready)
			}
		}
		var m codec.FeedbackMark
		if f.heart.Mark(&m); m.N != c.fed || m.Remembers != 1 {
			t.Fatalf("%+v", m)
		}
		m.Remembers = c.remembers
		f.compare(&stream.Record{Value: codec.AppendFeedbackMark(nil, &m)}, &m)
		if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "remembers" {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestNumbersOfEpochs: epochs are numbered one after the other. Behind a beginning that is lost, and in a new era, the
// first may have any number.
func TestNumbersOfEpochs(t *testing.T) {
	for _, c := range []struct {
		first, last, epoch int64
		others, ok         bool
	}{{1, 0, 1, false, true}, {1, 0, 2, false, false}, {9, 0, 2, false, true}, {9, 3, 4, false, true},
		{9, 3, 5, false, false}, {1, 3, 5, true, true}, {1, 3, 3, true, false}} {
		v := &verification{Config: Config{Name: worldName, Seed: worldSeed()}, partitions: 1,
			found: map[site]Difference{}}
		v.models = newModelReader(v)
		v.models.last = c.last
		m := codec.FeedbackMark{From: -1, FromCut: -1}
		if m.Memory = -1; c.others {
			m.Era, m.Eras = 1, []codec.EraStart{{Era: 1}}
		}
		mark := stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, &m)}
		if err := v.models.take(&logCursor{first: c.first}, &mark); err != nil || v.models.era != m.Era {
			t.Fatal(err)
		}
		rec := codec.Epoch{Epoch: c.epoch, Name: worldName, Partitions: 1, SeedHash: loop.SeedHash(v.Seed)}
		r := stream.Record{Type: codec.TypeEpoch, Offset: c.first, Value: codec.AppendEpoch(nil, &rec)}
		err := v.models.take(&logCursor{first: c.first}, &r)
		if _, found := v.found[site{offset: c.first, field: "epoch"}]; err != nil || found == c.ok ||
			v.models.others {
			t.Errorf("%+v: %v, %+v", c, err, v.found)
		}
	}
}

// TestFilesAreGone: of an epoch whose class records may be gone with the beginning of the log the model is too old.
// Any other has its files.
func TestFilesAreGone(t *testing.T) {
	for _, c := range []struct {
		kept, first int64 // offsets of the log, and of what announces the model
		old         bool
	}{{1, 1, false}, {1, 9, false}, {9, 9, true}, {9, 10, false}} {
		v := &verification{Config: Config{Name: worldName, Seed: worldSeed()}, partitions: 1,
			found: map[site]Difference{}}
		v.models = newModelReader(v)
		rec := codec.Epoch{Version: 1, Epoch: 1, Name: worldName, Partitions: 1, SeedHash: loop.SeedHash(v.Seed)}
		err := v.models.epoch(&logCursor{first: c.kept}, &stream.Record{Value: codec.AppendEpoch(nil, &rec)}, c.first)
		want := Tally{Records: 1}
		if c.old {
			want.TooOld = 1
		}
		if d := v.report.First; err != nil || v.report.Epochs != want || (d == nil) != c.old ||
			d != nil && d.Field != "files" {
			t.Errorf("%+v: %v, %+v, %+v", c, err, v.report.Epochs, d)
		}
	}
}

// TestClassesOfEpochs: class records belong to the next epoch, unless feedback or an epoch comes between.
func TestClassesOfEpochs(t *testing.T) {
	epoch := stream.Record{Type: codec.TypeEpoch, Offset: 20, Value: codec.AppendEpoch(nil, &codec.Epoch{Version: 1,
		Epoch: 1, Name: worldName, Partitions: 1, SeedHash: loop.SeedHash(worldSeed())})}
	class := stream.Record{Type: codec.TypeClass, Offset: 9}
	for i, c := range []struct {
		before []stream.Record
		tooOld int64 // its class record may not be the first
	}{{nil, 0}, {[]stream.Record{class}, 1}, {[]stream.Record{class, {Type: codec.TypeClass, Offset: 10}}, 1},
		{[]stream.Record{class, {}}, 0}, {[]stream.Record{class, epoch}, 1}, {[]stream.Record{{}, epoch}, 0}} {
		v := &verification{Config: Config{Name: worldName, Seed: worldSeed()}, partitions: 1,
			found: map[site]Difference{}}
		v.models = newModelReader(v)
		for _, r := range append(c.before, epoch) {
			if err := v.models.take(&logCursor{first: 9}, &r); err != nil {
				t.Fatal(err)
			}
		}
		if v.report.Epochs.TooOld != c.tooOld || v.report.Epochs.Checked != 0 {
			t.Errorf("%d: %+v, %+v", i, v.report.Epochs, v.found)
		}
	}
}

// TestEvidenceOfEpochs: evidence goes on in an epoch that goes on with the learner, and begins anew in another.
func TestEvidenceOfEpochs(t *testing.T) {
	v := &verification{found: map[site]Difference{}, partitions: 1}
	f := v.newFates(&logCursor{}, nil)
	f.rules = func(int64) *loop.Rules { return &loop.Rules{} }
	f.heart = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10})
	for _, c := range []struct{ epoch, continues, since int64 }{{1, 0, 1}, {2, 1, 1}, {3, 0, 3}, {4, 1, 3}} {
		f.begin(&stream.Record{Value: codec.AppendEpoch(nil, &codec.Epoch{Epoch: c.epoch, Continues: c.continues})})
		if since := f.heart.Judge().Since(); since != c.since {
			t.Errorf("%+v: since epoch %d", c, since)
		}
	}
}

// TestOldestEpoch: the oldest epoch that a log keeps is the first whose model is known; the last is the current one.
func TestOldestEpoch(t *testing.T) {
	v := &verification{found: map[site]Difference{}, partitions: 1}
	f := v.newFates(&logCursor{}, nil)
	f.rules = func(epoch int64) *loop.Rules {
		if epoch < 3 {
			return nil
		}
		return &loop.Rules{}
	}
	for _, epoch := range []int64{2, 3, 4, 3} {
		f.begin(&stream.Record{Value: codec.AppendEpoch(nil, &codec.Epoch{Epoch: epoch})})
	}
	if f.oldest != 3 || f.epoch != 4 {
		t.Errorf("the oldest %d, the last %d", f.oldest, f.epoch)
	}
}

// TestMissingFeedback: of feedback that a cut gave and the log does not hold the first is told, once, by what stands
// behind it. What follows is numbered behind all of it.
func TestMissingFeedback(t *testing.T) {
	epoch := codec.AppendEpoch(nil, &codec.Epoch{Epoch: 1, Through: 6})
	for name, meet := range map[string]func(f *fateCheck) error{
		"":      func(f *fateCheck) error { f.complete(&stream.Record{}); return nil },
		"epoch": func(f *fateCheck) error { f.begin(&stream.Record{Offset: 9, Value: epoch}); return nil },
		"cut": func(f *fateCheck) error {
			return f.takeCut(t.Context(), &stream.Record{Value: codec.AppendCut(nil, &codec.Cut{Cut: 1})})
		},
	} {
		for due := range int64(3) {
			v := &verification{found: map[site]Difference{}, partitions: 1}
			f := v.newFates(&logCursor{}, nil)
			f.n, f.due = 6-due, []codec.Feedback{{N: 5}, {N: 6}}[2-due:]
			for range 2 {
				if err := meet(f); err != nil {
					t.Fatal(err)
				}
				f.cut = 0
			}
			if d := v.report.First; v.report.Differences != min(due, 1) || d != nil && (d.Field != "feedback" ||
				d.Want != fmt.Sprintf("feedback %d before it", 7-due)) || f.n != 6 || f.epochs[9] != (name == "epoch") {
				t.Errorf("%s: %d due: behind feedback %d, %+v", name, due, f.n, v.report)
			}
		}
	}
}

// TestNumbersOfCuts: cuts are numbered one after the other; behind one that cannot be read feedback may be its.
func TestNumbersOfCuts(t *testing.T) {
	for _, c := range []struct {
		last, cut int64
		field     string
	}{{3, 4, ""}, {3, 5, "cut"}, {3, 3, "cut"}, {0, 5, ""}, {3, 0, "bytes"}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.heart, f.cut, f.met = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10}), c.last, 3
		if c.field == "" {
			f.heart = nil
		}
		r := stream.Record{Value: codec.AppendCut(nil, &codec.Cut{Cut: max(c.cut, 1)})}
		if c.cut == 0 {
			r.Value = r.Value[:len(r.Value)-1]
		}
		err := f.takeCut(t.Context(), &r)
		if d := v.report.First; err != nil || v.report.Cuts.Records != 1 || f.unread != (c.cut == 0) ||
			f.cut != max(c.last, c.cut) || v.report.Cuts.TooOld != min(1, c.cut) || (d == nil) != (c.field == "") ||
			v.report.Differences > 1 || d != nil && (d.Field != c.field || d.Round != 0 || c.cut > 0 && d.Want != "4") {
			t.Errorf("%+v: %v, %+v, %+v", c, err, v.report.Cuts, d)
		}
	}
}

// TestLostRecords: where a cut took what the log does not hold as it was, that is a difference of its input, unless
// retention has dropped it, or a later era tells of the loss.
func TestLostRecords(t *testing.T) {
	inputs := []codec.LostTail{{Topic: "decisions"}, {Topic: "decisions", Partition: 1}, {Topic: "outcomes"},
		{Topic: "outcomes", Partition: 1}}
	for i, in := range inputs {
		topic := in.Topic[:1]
		for _, c := range []struct {
			first, tail int64 // offsets that are kept, and lost in an era behind it; 0: none is
			found       bool
		}{{0, 0, true}, {5, 0, false}, {0, 8, true}, {0, 7, true}, {0, 6, false}} {
			for k, tail := range inputs {
				v := &verification{Config: Config{Log: firstKept{of: map[stream.Place]int64{{Topic: topic,
					Partition: in.Partition}: c.first}}}, found: map[site]Difference{}, partitions: 2,
					topics: join.Topics{Decisions: "d", Outcomes: "o"}}
				f := v.newFates(&logCursor{}, nil)
				f.heart = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10})
				tail.Offset = 1
				f.tails = append(f.tails, tail) // of an earlier era
				err := f.fail(t.Context(), &stream.Record{}, &stream.Error{Topic: topic, Partition: in.Partition,
					Offset: 7, Err: join.ErrLost})
				if tail.Offset = c.tail; c.tail > 0 {
					f.tails = append(f.tails, tail, codec.LostTail{Topic: "rejects", Offset: 1})
				}
				v.settle()
				d, found := v.report.First, c.found || c.first == 0 && k != i
				if err != nil || (d != nil) != found || f.heart != nil || f.lost != (c.first == 0) ||
					d != nil && d.Field != fmt.Sprintf("%s[%d].sum", in.Topic, in.Partition) {
					t.Errorf("%+v %+v, tail of %+v: %v, %+v", in, c, tail, err, d)
				}
			}
		}
	}
	// of feedback that is damaged no tail of rejects tells
	v := &verification{found: map[site]Difference{}, partitions: 2}
	f := v.newFates(&logCursor{}, nil)
	err := f.fail(t.Context(), &stream.Record{}, &stream.Error{Topic: "f", Offset: 7, Err: codec.ErrCorrupt})
	f.tails = append(f.tails, codec.LostTail{Topic: "rejects", Offset: 1})
	if v.settle(); err != nil || v.report.First == nil || v.report.First.Field != "sum" {
		t.Errorf("%v, %+v", err, v.report.First)
	}
}

// TestCutMovesOn: a cut that names a partition that is none, or that moves one on by nothing, ends the replay.
func TestCutMovesOn(t *testing.T) {
	for _, c := range []struct {
		codec.Range
		field, want string
	}{{codec.Range{Partition: 2, Next: 9}, "partition", "less than 2"},
		{codec.Range{Partition: 1, Next: 3}, "next", "more than 3"}} {
		for topic, cut := range map[string]codec.Cut{"decisions[0].": {Cut: 2, Decisions: []codec.Range{c.Range}},
			"outcomes[0].": {Cut: 2, Outcomes: []codec.Range{c.Range}}} {
			v := &verification{found: map[site]Difference{}, partitions: 2}
			f := v.newFates(&logCursor{}, nil)
			f.heart, f.met = f.history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10}), 7
			was := []codec.Range{{Partition: 1, Next: 3}}
			err := f.heart.Take(&codec.Cut{Cut: 1, Decisions: was, Outcomes: was}, make([]loop.Batch, 2))
			if err != nil {
				t.Fatal(err)
			}
			err = f.takeCut(t.Context(), &stream.Record{Value: codec.AppendCut(nil, &cut)})
			if d := v.report.First; err != nil || v.report.Differences != 1 || d.Field != topic+c.field ||
				d.Want != c.want || f.heart != nil || f.rejects.lost != 7 {
				t.Errorf("%s%+v: %v, %+v, rejects behind cut %d", topic, c, err, d, f.rejects.lost)
			}
		}
	}
}

// deafLog keeps a partition from offset 5 on, and may fail.
type deafLog struct {
	stream.Log
	bounds []error // in turn
	read   error
}

func (l *deafLog) Bounds(context.Context, string, int) (first, next int64, err error) {
	err, l.bounds = l.bounds[0], l.bounds[1:]
	return 5, 100, err
}

func (l *deafLog) Read(context.Context, string, int, int64) (stream.Reader, error) {
	return nil, l.read
}

// TestRejectOfUnreadable: where the log cannot be asked for the record that a reject tells of, nothing is said of the
// reject: verifying ends with the error. A partition that does not exist holds no record.
func TestRejectOfUnreadable(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		log    deafLog
		offset int64
		err    error
		differ int64
	}{
		{deafLog{bounds: []error{nil, nil}, read: broken}, 1, broken, 0},
		{deafLog{bounds: []error{broken, nil}}, 1, broken, 0},
		{deafLog{bounds: []error{nil, broken}}, 1000, broken, 0},
		{deafLog{bounds: []error{stream.ErrNotFound, stream.ErrNotFound}}, 1, nil, 1},
	} {
		log := c.log
		v := &verification{Config: Config{Log: &log}, found: map[site]Difference{},
			rejects: &rejectIndex{c: &logCursor{}, all: map[rejectKey]*rejectInfo{{offset: c.offset}: {}}}}
		v.losses.add(0, 0)
		if err := v.finishRejects(t.Context()); !errors.Is(err, c.err) || v.report.Rejects.TooOld != 0 ||
			v.report.Differences != c.differ {
			t.Errorf("%+v: %v, %+v", c, err, v.report)
		}
	}
}

// TestStray: a record that the service did not write is a difference.
func TestStray(t *testing.T) {
	v := &verification{found: map[site]Difference{}}
	v.stray(Difference{Field: "type"})
	if r := v.report; r.Differences != 1 || r.Foreign != 1 || r.First == nil || r.First.Field != "type" {
		t.Errorf("%+v", r)
	}
}
