package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

func (w *world) run(log stream.Log) (*Report, error) {
	return Run(w.ctx, Config{Log: log, Name: worldName, Seed: worldSeed(), Build: model.Epoch, Dedup: worldDedup})
}

// dropAll drops all records of a topic.
func (w *world) dropAll(topic string, partitions int) {
	for p := range partitions {
		_, end, err := w.log.Bounds(w.ctx, topic, p)
		w.no(err)
		w.no(w.log.Truncate(topic, p, end))
	}
}

// drop drops the first n records of a partition.
func (w *world) drop(topic string, p, n int) {
	w.no(w.log.Truncate(topic, p, w.records(topic, p)[n].Offset))
}

// TestVerifyWhileDropping holds that it does not matter where a running system drops records
// in the midst of verifying.
func TestVerifyWhileDropping(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(w *world) string // before a reader of that topic is made
		skip int                   // but for so many
		drop func(w *world)
	}{
		{"feedback that follows the snapshot to begin with", func(w *world) string { return w.ts.Feedback }, 3,
			func(w *world) { w.drop(w.ts.Feedback, 0, 40) }},
		{"the first decisions ever dropped", func(w *world) string { return w.ts.Decisions }, 2, func(w *world) {
			w.drop(w.ts.Decisions, 0, 30)
		}},
		{"all contexts", func(w *world) string { return w.ts.Contexts }, 0, func(w *world) {
			w.dropAll(w.ts.Contexts, w.parts)
		}},
		{"all outcomes", func(w *world) string { return w.ts.Outcomes }, 0, func(w *world) {
			w.dropAll(w.ts.Outcomes, w.parts)
		}},
		{"all rejects", func(w *world) string { return w.ts.Rejects }, 0,
			func(w *world) { w.dropAll(w.ts.Rejects, 1) }},
		{"all decisions", func(w *world) string { return w.ts.Decisions }, 2, func(w *world) {
			w.dropAll(w.ts.Decisions, w.parts)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := cutWorld(t)
			dropped := false
			r, err := w.run(&hookedLog{Log: w.log, before: c.read(w), skip: c.skip,
				hook: func() { c.drop(w); dropped = true }})
			w.no(err)
			if !dropped || r.ExitCode() != TooOld {
				t.Errorf("dropped %v: %s", dropped, r.text())
			}
		})
	}
}

// TestChangedBehindDropped: that retention has dropped the first outcomes excuses no change of a later one.
func TestChangedBehindDropped(t *testing.T) {
	w := liveWorld(t, 1, 3, 25)
	all := w.records(w.ts.Outcomes, 0)
	w.drop(w.ts.Outcomes, 0, len(all)/10)
	whole, err := w.run(w.log)
	w.no(err)
	for i := len(all) / 10; i < len(all); i += 7 {
		undo := w.edit(w.ts.Outcomes, 0, all[i].Offset, func(r *stream.Record) { r.Value = append(r.Value, 0) })
		r, err := w.run(w.log)
		if w.no(err); r.Differences == 0 && r.Cuts != whole.Cuts {
			t.Errorf("%d was changed: %s", all[i].Offset, r.text())
		}
		undo()
	}
}

// TestFeedbackDropped: that retention has dropped feedback, though decisions that learned it are kept, or marks that
// tell of lost tails, is no difference.
func TestFeedbackDropped(t *testing.T) {
	failed := failedWorld(t, 2, 104)
	failed.drop(failed.ts.Decisions, 0, 40)
	for _, w := range []*world{warmWorld(t), failed} {
		all := w.records(w.ts.Feedback, 0)
		for i := len(all) / 2; i < len(all); i++ {
			if all[i].Type == codec.TypeMark || all[i].Type == codec.TypeCut && all[i-1].Type == "" {
				w.no(w.log.Truncate(w.ts.Feedback, 0, all[i].Offset))
				if r, err := w.run(w.log); err != nil || r.ExitCode() != TooOld {
					t.Errorf("from %d on: %v %s", all[i].Offset, err, r.text())
				}
			}
		}
		w.no(w.log.Edit(w.ts.Feedback, 0, func([]stream.Record) []stream.Record { return all }))
	}
}

// eagerLog drops contexts of partition 0 before they are read.
type eagerLog struct {
	stream.Log
	w     *world
	times int  // for so many readers
	later bool // when a reader has its first record
	read  int  // readers made
}

func (l *eagerLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	if err != nil || topic != l.w.ts.Contexts || partition != 0 || from != stream.Earliest {
		return r, err
	}
	l.read++
	switch drop := func() { l.w.drop(topic, partition, 1) }; {
	case l.read > l.times:
	case l.later:
		r = &overtakenReader{brokenReader{Reader: r, err: stream.ErrTruncated}, drop}
	default:
		drop()
	}
	return r, nil
}

type overtakenReader struct {
	brokenReader
	drop func()
}

func (r *overtakenReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if r.at > 0 {
		r.drop()
	}
	return r.brokenReader.Next(ctx, dst)
}

// onceOvertaken is a log whose first reader is overtaken by retention at once.
type onceOvertaken struct {
	stream.Log
	read int
}

func (l *onceOvertaken) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	if l.read++; err == nil && l.read == 1 {
		r = &brokenReader{Reader: r, err: stream.ErrTruncated, at: 1}
	}
	return r, err
}

// TestCursorOvertaken: who was about to read from the first record that is kept begins again there; who had come
// further does not.
func TestCursorOvertaken(t *testing.T) {
	w := newWorld(t, 1, 1)
	for range 3 {
		w.ask()
	}
	for further, want := range map[int64]error{0: nil, 1: stream.ErrTruncated} {
		v := &verification{Config: Config{Log: &onceOvertaken{Log: w.log}}}
		c, err := v.openCursor(w.ctx, w.ts.Contexts, 0)
		w.no(err)
		c.seek(c.first + further)
		if r, err := c.head(w.ctx); !errors.Is(err, want) || (r == nil) != (want != nil) {
			t.Errorf("%d further: %+v, %v", further, r, err)
		}
		c.close()
	}
}

// TestVerifyOvertaken: who meets a reader that retention overtakes begins again, some times.
func TestVerifyOvertaken(t *testing.T) {
	w, _ := cutWorld(t)
	for _, c := range []struct {
		times, most int
		later       bool
	}{{mostBegun - 1, mostBegun, false}, {mostAttempts - 1, mostAttempts, true}} {
		l := &eagerLog{Log: w.log, w: w, times: c.times, later: c.later}
		if r, err := w.run(l); err != nil || r.ExitCode() != TooOld || l.read != c.most {
			t.Errorf("%+v: %v, %d readers", c, err, l.read)
		}
	}
	for most, later := range map[int]bool{mostAttempts: true, mostAttempts * mostBegun: false} {
		l := &eagerLog{Log: w.log, w: w, times: most + 1, later: later}
		if _, err := w.run(l); !errors.Is(err, errDropped) || !errors.Is(err, stream.ErrTruncated) || l.read != most {
			t.Errorf("%v, %d readers", err, l.read)
		}
	}
}

// TestVerifyTruncated: a log that says that records are dropped, though it keeps as many as before, ends with its
// error, unless a record differs: it may have named them. The last of too many attempts says what it found.
func TestVerifyTruncated(t *testing.T) {
	w := liveWorld(t, 1, 1, 10)
	log := &hookedLog{Log: w.log, broken: w.ts.Contexts, err: stream.ErrTruncated}
	if r, err := w.run(log); !errors.Is(err, stream.ErrTruncated) {
		t.Errorf("%v %+v", err, r)
	}
	w.edit(w.ts.Snapshots, 0, w.records(w.ts.Snapshots, 0)[0].Offset, func(r *stream.Record) { r.Key = []byte("key") })
	if r, err := w.run(log); err != nil || r.ExitCode() != Different {
		t.Errorf("%v %+v", err, r)
	}
	v := verification{report: Report{First: &Difference{Topic: "d", Partition: 1, Offset: 7, Field: "n", Want: "1",
		Got: "2"}}}
	err := v.tooFast(nil)
	if !errors.Is(err, errDropped) || !strings.HasSuffix(err.Error(), ": d[1]@7 n: want 1, got 2") {
		t.Error(err)
	}
}

// TestMostSuspects: what is suspected beyond the number that is kept is a difference at once.
func TestMostSuspects(t *testing.T) {
	for kept, want := range map[int]int64{mostSuspects - 1: 0, mostSuspects: 1} {
		v := verification{suspects: make([]suspicion, kept), found: map[site]Difference{}}
		if v.suspect(Difference{}, nil, nil); v.report.Differences != want || len(v.suspects) != mostSuspects {
			t.Errorf("%d are kept: %d differences, %d kept", kept, v.report.Differences, len(v.suspects))
		}
	}
}

// TestVerifyDifferentWhileDropping: a difference that has nothing to do with what is dropped is
// told, and it alone.
func TestVerifyDifferentWhileDropping(t *testing.T) {
	w, _ := cutWorld(t)
	var at int64
	for _, r := range w.records(w.ts.Decisions, 0) {
		if r.Type == "" {
			at = r.Offset
		}
	}
	w.edit(w.ts.Decisions, 0, at, func(r *stream.Record) {
		var d codec.Decision
		w.no(codec.ParseDecision(&d, r.Value))
		d.Learned++
		r.Value = codec.AppendDecision(nil, &d)
	})
	// Decisions are looked over and then read, in an attempt.
	first := &hookedLog{Log: w.log, before: w.ts.Decisions, skip: 2, hook: func() { w.drop(w.ts.Decisions, 0, 30) }}
	second := &hookedLog{Log: first, before: w.ts.Decisions, skip: 2 + 4,
		hook: func() { w.drop(w.ts.Decisions, 1, 30) }}
	r, err := w.run(second)
	w.no(err)
	if f := r.First; r.ExitCode() != Different || r.Differences != 1 || f.Offset != at || f.Field != "learned" {
		t.Errorf("%+v\n%s", f, r.text())
	}
	if first.hook != nil || second.hook != nil {
		t.Error("nothing was dropped")
	}
}

// TestVerifySnapshotGone: a snapshot that was too large to be kept in memory is read again, and is
// a dropped record where the log keeps it no more.
func TestVerifySnapshotGone(t *testing.T) {
	w, _ := cutWorld(t)
	v := w.attempt()
	d := &decisionCheck{v: v, audit: follow.New(w.log, worldName, model.Epoch, w.parts)}
	s := v.snapshots[len(v.snapshots)-1]
	s.stored = nil
	w.no(d.restore(w.ctx, s))
	if d.audit.Replica().LearnedThrough() != s.through {
		t.Errorf("restored %d of %d", d.audit.Replica().LearnedThrough(), s.through)
	}
	w.dropAll(w.ts.Snapshots, 1)
	err := d.restore(w.ctx, s)
	if dropped, failed := v.dropped(w.ctx); !v.doubtful(err) || !dropped || failed != nil {
		t.Errorf("%v, dropped %v, %v", err, dropped, failed)
	}
}

// loseFeedback ends everybody, loses the feedback log from a feedback on, and starts everybody again.
func (w *world) loseFeedback(from int64) {
	w.j.Close()
	w.j = nil
	for p, d := range w.d {
		d.Close()
		w.d[p] = nil
	}
	at := w.fedBack(from)
	for _, r := range w.records(w.ts.Feedback, 0) {
		if r.Time == at {
			w.no(w.log.DropTail(w.ts.Feedback, 0, r.Offset))
		}
	}
	w.openJoiner()
	for p := range w.parts {
		w.openDecider(p)
	}
	w.pump()
}

// TestVerifyDroppedBesideEra: wherever retention has dropped the feedback before, in a log that had lost its tail
// behind a snapshot, nothing is different. Recomputing begins at that snapshot also where the era's mark is gone, and
// contexts that wait may be refused by a model whose record is.
func TestVerifyDroppedBesideEra(t *testing.T) {
	const linear = "oracle: linear\n"
	w := newWorld(t, 1, 1)
	w.useModel(warmBase + linear + "version: 1\n")
	w.rounds(60)
	v := w.attempt()
	last := v.snapshots[len(v.snapshots)-1]
	w.loseFeedback(last.through) // which follows from its cut, and comes again
	w.rounds(2)
	w.announced(warmBase+linear+"warm: keep\nversion: 2\nactions: [a, c]\n", 8)
	if eras := w.attempt().models.eras; len(eras) != 1 || eras[0].N != last.through || last.era > 0 {
		t.Fatalf("eras %v, the snapshot is of feedback %d in era %d", eras, last.through, last.era)
	}
	began, waits := map[bool]int{}, 0
	for i, r := range w.records(w.ts.Feedback, 0)[1:] {
		w.no(w.log.Truncate(w.ts.Feedback, 0, r.Offset))
		v := w.attempt()
		if v.report.Differences > 0 {
			t.Errorf("from record %d on: %+v", i+1, v.report.First)
		}
		if len(v.models.starts) == 0 {
			waits++
		}
		if strings.HasSuffix(v.report.Start, fmt.Sprint(" after feedback ", last.through)) {
			began[v.models.firstN > last.through]++
		}
	}
	if began[false] == 0 || began[true] == 0 || waits == 0 {
		t.Errorf("begun at the snapshot %v times, without a model's record %d times", began, waits)
	}
}

// TestRejectsOfLostCuts: what a cut refused that the feedback log has lost is not taken for a reject of a later cut
// that has its number, also where retention has dropped the mark of the era in which that was taken.
func TestRejectsOfLostCuts(t *testing.T) {
	w := newWorld(t, 1, 4)
	w.use(4)
	w.rounds(120)
	w.loseFeedback(10)
	w.rounds(5)
	recs := w.records(w.ts.Feedback, 0)
	w.drop(w.ts.Feedback, 0, 1+slices.IndexFunc(recs, func(r stream.Record) bool {
		m, err := codec.ParseFeedbackMark(r.Value)
		return r.Type == codec.TypeMark && err == nil && m.Era > 0
	}))
	if r := w.verify(); r.Differences > 0 || r.Rejects.Checked == 0 {
		t.Errorf("%+v\n%s", r.First, r.text())
	}
}

// TestRoundsBeforeEpoch: a snapshot tells of the last round of each partition that has feedback, also if all of one is
// older than the epoch at which recomputing begins.
func TestRoundsBeforeEpoch(t *testing.T) {
	w := newWorld(t, 2, 1)
	const text = warmBase + "oracle: linear\nversion: "
	rounds := func(p, n int) {
		for range n {
			w.asked++
			_, err := w.in[p].Append(w.ctx,
				&stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","features":{"x":1},"actions":["a","b"]}`, w.asked)})
			w.no(err)
		}
		w.pump()
		w.idle()
		w.pump()
	}
	w.useModel(text + "1\n")
	rounds(0, 1)
	w.useModel(text + "2\n")
	rounds(1, 40)
	w.drop(w.ts.Feedback, 0, slices.IndexFunc(w.records(w.ts.Feedback, 0), func(r stream.Record) bool {
		rec, err := codec.ParseEpoch(r.Value)
		return r.Type == codec.TypeEpoch && err == nil && rec.Epoch == 2
	}))
	if r := w.verify(); r.Differences > 0 || r.Snapshots.Checked == 0 || r.Start != "epoch 2, after feedback 1" {
		t.Errorf("%+v\n%s", r.First, r.text())
	}
}

// TestVerifyBesideRepeat: a context may repeat a round that came while the ends were fetched.
func TestVerifyBesideRepeat(t *testing.T) {
	w := liveWorld(t, 1, 5, 20)
	l := &growingLog{Log: w.log, topic: w.ts.Decisions}
	var grow func()
	times := 0
	grow = func() {
		for range 2 {
			_, err := w.in[0].Append(w.ctx,
				&stream.Record{Value: fmt.Appendf(nil, `{"id":"repeat%d","features":{},"actions":["a","b"]}`, times)})
			w.no(err)
		}
		w.pump()
		l.grow = grow
		times++
	}
	l.grow = grow
	r, err := w.run(l)
	w.no(err)
	if r.ExitCode() != Identical || times == 0 {
		t.Errorf("%d repeats: %+v\n%s", times, r.First, r.text())
	}
}

// TestVerifyBesideAll verifies systems at work all the while, whose retention is far quicker
// than real ones. Nothing is different then.
func TestVerifyBesideAll(t *testing.T) {
	long := os.Getenv("HINDSIGHT_LONG") != ""
	for _, c := range []struct {
		rounds  int
		kept    int64 // log time that is kept, from half of the rounds on
		systems int
	}{{100, math.MaxInt64, 200}, {400, 400, 60}, {1500, 3000, 10}} {
		if !long {
			c.rounds, c.systems = c.rounds/5, 1
		}
		codes := map[int]int{}
		for seed := range uint64(c.systems) {
			w := newWorld(t, 1+int(seed%3), seed)
			w.overflow = 12
			w.use(int(seed % 4))
			w.overflow = 1000
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range c.rounds {
					if c.kept == math.MaxInt64 {
						w.rounds(1)
						continue
					}
					w.ask() // and nobody opens anew: who does finds the feedback gone that no snapshot has
					if i%4 > 0 {
						w.pump()
					}
					w.answer()
					if i > c.rounds/2 && i%5 == 0 {
						w.retain(c.kept)
					}
				}
			}()
			for working := true; working; {
				select {
				case <-done:
					working = false
				default:
				}
				r, err := w.run(w.log)
				if err != nil || r.ExitCode() == Different {
					t.Fatalf("%+v, system %d: %v\n%+v", c, seed, err, r)
				}
				codes[r.ExitCode()]++
			}
		}
		t.Logf("%+v: %v", c, codes)
	}
}

// retain drops all records that are older than the last of feedback by more than so much.
func (w *world) retain(kept int64) {
	recs := w.records(w.ts.Feedback, 0)
	last := recs[len(recs)-1].Time
	for topic, n := range map[string]int{w.ts.Contexts: w.parts, w.ts.Decisions: w.parts, w.ts.Outcomes: w.parts,
		w.ts.Feedback: 1, w.ts.Rejects: 1} {
		for p := range n {
			for _, r := range w.records(topic, p) {
				if r.Time >= last-kept {
					w.no(w.log.Truncate(topic, p, r.Offset))
					break
				}
			}
		}
	}
}

// TestVerifyClockGone: where the clock of a log went back, what is taken after that has the log time of a record before
// it. Retention may drop that record: then what is kept is no difference.
func TestVerifyClockGone(t *testing.T) {
	w, _ := cutWorld(t)
	decided := map[int64]bool{}
	for _, r := range w.records(w.ts.Decisions, 0) {
		var d codec.Decision
		if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil {
			decided[d.Source] = true
		}
	}
	for _, topic := range []string{w.ts.Contexts, w.ts.Decisions} {
		recs := w.records(topic, 0)
		for n := 1; n < len(recs); n += len(recs) / 7 {
			if topic == w.ts.Contexts && !decided[recs[n].Offset] {
				continue // a reject tells of its log time
			}
			kept := slices.Clone(recs[n:])
			kept[0].Time -= 3
			w.no(w.log.Edit(topic, 0, func([]stream.Record) []stream.Record { return kept }))
			if r := w.verify(); r.Differences > 0 {
				t.Errorf("%s from %d on: %+v", topic, n, r.First)
			}
		}
		w.no(w.log.Edit(topic, 0, func([]stream.Record) []stream.Record { return recs }))
	}
}

// TestVerifyRulesGone: behind the first mark that can be restored a decider may decide yet by an epoch that is gone,
// and so are its rules: the cut that takes its decision is too old, and so are those behind it, to the next mark.
func TestVerifyRulesGone(t *testing.T) {
	w := newWorld(t, 1, 7)
	w.use(3)
	w.rounds(30)
	w.idle()
	w.name(worldModels[4])
	w.openJoiner() // its deciders have not learned of the epoch
	for range 3 {
		w.ask()
	}
	_, err := w.d[0].StepContexts(w.ctx, 3)
	w.no(err)
	w.rounds(20)
	w.idle()
	last := len(w.records(w.ts.Feedback, 0))
	w.rounds(10)
	w.dropAll(w.ts.Snapshots, 1)
	w.drop(w.ts.Feedback, 0, 5) // the first epoch
	checked := int64(0)
	for _, r := range w.records(w.ts.Feedback, 0)[last-5:] {
		if r.Type == codec.TypeCut {
			checked++
		}
	}
	r := w.verify()
	if c := r.Cuts; r.Differences > 0 || checked == 0 || c.Checked != checked || c.TooOld != c.Records-checked {
		t.Errorf("%d cuts behind the last mark\n%s", checked, r.text())
	}
}

// TestBeginAtEpoch: the beginning of a log is its first epoch. What was decided before another is too old, though no
// feedback had come.
func TestBeginAtEpoch(t *testing.T) {
	for _, c := range []struct {
		startPoint
		from place
		said string
	}{{startPoint{epoch: 1}, place{}, "the beginning"},
		{startPoint{epoch: 2}, place{0, 0, 2}, "epoch 2, after feedback 0"},
		{startPoint{epoch: 3, through: 7}, place{0, 7, 3}, "epoch 3, after feedback 7"}} {
		v := &verification{models: modelReader{starts: []startPoint{c.startPoint}, firstN: c.through + 1}}
		v.models.v = v
		d := &decisionCheck{v: v, feedback: &logCursor{first: 9}}
		if err := d.begin(t.Context()); err != nil || d.from != c.from || v.report.Start != c.said {
			t.Errorf("%+v: %v, %+v, %s", c, err, d.from, v.report.Start)
		}
	}
}
