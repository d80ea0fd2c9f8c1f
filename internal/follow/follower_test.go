package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func follow(t *testing.T, log stream.Log) (*Follower, string, error) {
	t.Helper()
	return followBy(t, log, build)
}

func followBy(t *testing.T, log stream.Log, build Build) (*Follower, string, error) {
	t.Helper()
	var told strings.Builder
	metrics := watch.NewMetrics(prometheus.NewRegistry(), watch.NewHealth("decider"))
	f, err := Open(t.Context(), Config{Log: log, Name: "m", Partitions: 1, Build: build, Metrics: metrics,
		Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err == nil {
		t.Cleanup(f.Close)
		if _, end, _ := log.Bounds(t.Context(), f.topics.Feedback, 0); f.safe != end {
			t.Errorf("followed to offset %d of %d", f.safe, end)
		}
	}
	return f, told.String(), err
}

// learnedLog is a log in which n feedbacks were learned in epoch 1.
func learnedLog(t *testing.T, n int64) (*mem.Log, join.Topics) {
	t.Helper()
	records := record(1, "f", "x").Records()
	for i := range n {
		records = append(records, feedbackOf(i+1, 1, float64(i%5)/8))
	}
	return logOf(t, records...)
}

func state(t *testing.T, f *Follower) []byte {
	t.Helper()
	b, err := f.AppendState(nil)
	must(t, err)
	return b
}

// TestFollowerGoesOn: one that opens at a snapshot, or at the start, comes to the same bits as one that followed.
func TestFollowerGoesOn(t *testing.T) {
	log, topics := learnedLog(t, 30)
	f, _, err := follow(t, log)
	must(t, err)
	if f.Replica().LearnedThrough() != 30 || !slices.Equal(f.Rounds(), []int64{30}) || f.Epoch(1) == nil ||
		f.Rules(1) == nil {
		t.Fatalf("learned %d, rounds %v", f.Replica().LearnedThrough(), f.Rounds())
	}
	f.ChunkBytes = 100
	for i := range keepSnapshots + 3 {
		s := f.Snapshot()
		must(t, f.WriteSnapshot(t.Context(), s, fmt.Sprint("n", i)))
	}
	kept := 0
	must(t, ReadSnapshots(t.Context(), log, topics, func(s *Snapshot, err error) error {
		must(t, err)
		if kept++; s.Through != 30 || !bytes.Equal(s.Bytes, f.Snapshot().Bytes) || string(s.Files["f"]) != "x" {
			t.Errorf("%+v", s.Rec)
		}
		return nil
	}))
	if kept != keepSnapshots {
		t.Errorf("%d snapshots are kept", kept)
	}
	for i := range int64(5) {
		put(t, log, topics.Feedback, feedbackOf(31+i, 1, .25))
	}
	for len(f.In.Batch) > 0 || f.In.Poll(t.Context()) == nil && len(f.In.Batch) > 0 {
		must(t, f.TakeHead(t.Context()))
	}
	again, _, err := follow(t, log)
	must(t, err)
	if damaged, size, at := again.Found(); damaged != 0 || size == 0 || at == 0 || again.Told(0) != 30 {
		t.Errorf("found %d damaged, one of %d bytes at %d; told of %d", damaged, size, at, again.Told(0))
	}
	must(t, log.Truncate(topics.Snapshots, 0, 1<<40))
	anew, _, err := follow(t, log)
	must(t, err)
	if _, size, _ := anew.Found(); size != 0 || !bytes.Equal(state(t, again), state(t, f)) ||
		!bytes.Equal(state(t, anew), state(t, f)) || anew.Replica().LearnedThrough() != 35 {
		t.Errorf("states of %d, %d and %d feedbacks differ", f.Replica().LearnedThrough(),
			again.Replica().LearnedThrough(), anew.Replica().LearnedThrough())
	}
}

// TestSnapshotRecords: chunks that are lost, come twice or are mixed with others make no snapshot; damaged ones are
// told, and passed over where a follower opens.
func TestSnapshotRecords(t *testing.T) {
	log, topics := learnedLog(t, 10)
	f, _, err := follow(t, log)
	must(t, err)
	s := f.Snapshot()
	cut := func(nonce string) (out []codec.Snapshot) { return chunks(s, nonce, len(s.Bytes)/3+1) }
	for name, c := range map[string]struct {
		records func() []codec.Snapshot
		good    int
		bad     bool
	}{
		"whole":       {func() []codec.Snapshot { return cut("n") }, 1, false},
		"one":         {func() []codec.Snapshot { return chunks(s, "n", len(s.Bytes)) }, 1, false},
		"a byte more": {func() []codec.Snapshot { return chunks(s, "n", len(s.Bytes)-1) }, 1, false},
		"first lost":  {func() []codec.Snapshot { return cut("n")[1:] }, 0, false},
		"last lost":   {func() []codec.Snapshot { return cut("n")[:2] }, 0, false},
		"one lost":    {func() []codec.Snapshot { return slices.Delete(cut("n"), 1, 2) }, 0, false},
		"anew":        {func() []codec.Snapshot { return append(cut("n")[:2], cut("n")...) }, 1, false},
		"side by side": {func() []codec.Snapshot {
			a, b := cut("a"), cut("b")
			return []codec.Snapshot{a[0], b[0], a[1], b[1], b[2], a[2]}
		}, 2, false},
		"damaged": {func() []codec.Snapshot {
			c := cut("n")
			c[1].Bytes = bytes.Clone(c[1].Bytes)
			c[1].Bytes[3] ^= 1
			return c
		}, 0, true},
		"of more feedback": {func() []codec.Snapshot {
			c := chunks(s, "n", len(s.Bytes))
			c[0].LearnedThrough++
			return c
		}, 0, true},
		"of a later epoch": {func() []codec.Snapshot {
			c := chunks(s, "n", len(s.Bytes))
			c[0].Epoch++
			return c
		}, 0, true},
	} {
		log, topics := learnedLog(t, 10)
		for _, c := range c.records() {
			put(t, log, topics.Snapshots, stream.Record{Value: codec.AppendSnapshot(nil, &c)})
		}
		good, bad := 0, 0
		must(t, ReadSnapshots(t.Context(), log, topics, func(got *Snapshot, err error) error {
			if err == nil {
				good++
			} else if bad++; !errors.Is(err, errBadSnapshot) {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		}))
		again, told, err := follow(t, log)
		if must(t, err); good != c.good || (bad > 0) != c.bad || strings.Contains(told, "passed over") != c.bad ||
			!bytes.Equal(state(t, again), s.Bytes) {
			t.Errorf("%s: %d good, %d bad, told %q", name, good, bad, told)
		}
		if damaged, size, _ := again.Found(); damaged != bad || (size > 0) != (good > 0) {
			t.Errorf("%s: found %d damaged, one of %d bytes", name, damaged, size)
		}
	}
	put(t, log, topics.Snapshots, stream.Record{Value: []byte("x")})
	if _, told, err := follow(t, log); err != nil || !strings.Contains(told, "passed over") {
		t.Errorf("%v, told %q", err, told)
	}
}

// learnedSnapshot returns a log of five rounds, and the snapshot of its follower as bytes and parsed.
func learnedSnapshot(t *testing.T) (*mem.Log, *Snapshot, Snapshot) {
	t.Helper()
	log, _ := learnedLog(t, 5)
	f, _, err := follow(t, log)
	must(t, err)
	s := f.Snapshot()
	got, err := parseSnapshot(s.Bytes)
	must(t, err)
	return log, s, got
}

// TestParseSnapshot: however a snapshot is cut off it is refused, and nothing is allocated for what is not there.
func TestParseSnapshot(t *testing.T) {
	_, s, got := learnedSnapshot(t)
	if got.Through != 5 || !slices.Equal(got.Rounds, []int64{5}) || got.Rec.Epoch != 1 || len(got.learner) == 0 {
		t.Errorf("%+v", got)
	}
	for n := range len(s.Bytes) {
		if _, err := parseSnapshot(s.Bytes[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a snapshot", n, len(s.Bytes))
		}
	}
	later := bytes.Clone(s.Bytes)
	later[0] = codec.Newest + 1
	if _, err := parseSnapshot(later); !errors.Is(err, codec.ErrVersion) || !Newer(err) {
		t.Error(err)
	}
	many := append([]byte{codec.Version, 1}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)
	if _, err := parseSnapshot(many); !errors.Is(err, codec.ErrCorrupt) {
		t.Error(err)
	}
}

// TestLostFeedback: what snapshot a follower goes on from where the feedback log has lost its tail or its start.
func TestLostFeedback(t *testing.T) {
	log, topics := learnedLog(t, 10)
	f, _, err := follow(t, log)
	must(t, err)
	must(t, f.WriteSnapshot(t.Context(), f.Snapshot(), "n"))
	_, end, err := log.Bounds(t.Context(), topics.Feedback, 0)
	must(t, err)
	must(t, log.DropTail(topics.Feedback, 0, end-3))
	short, told, err := follow(t, log)
	if must(t, err); short.Replica().LearnedThrough() != 7 || !strings.Contains(told, "has lost its tail") {
		t.Errorf("learned %d; told %q", short.Replica().LearnedThrough(), told)
	}
	log, topics = learnedLog(t, 10)
	f, _, err = follow(t, log)
	must(t, err)
	s := f.Snapshot()
	s.FeedbackFrom++ // a hint that is wrong costs reading from the start
	must(t, f.WriteSnapshot(t.Context(), s, "n"))
	put(t, log, topics.Feedback, feedbackOf(11, 1, .5), feedbackOf(12, 1, .5))
	first, _, err := log.Bounds(t.Context(), topics.Feedback, 0)
	must(t, err)
	must(t, log.Truncate(topics.Feedback, 0, first+2+10)) // one class, one epoch
	on, _, err := follow(t, log)
	if must(t, err); on.Replica().LearnedThrough() != 12 {
		t.Errorf("learned %d", on.Replica().LearnedThrough())
	}
	must(t, log.Truncate(topics.Feedback, 0, first+2+11))
	if _, _, err := follow(t, log); !errors.Is(err, stream.ErrTruncated) ||
		!strings.Contains(err.Error(), "feedback 11…11") {
		t.Error(err)
	}
	put(t, log, topics.Feedback, feedbackOf(14, 1, .5), markOf(&codec.FeedbackMark{N: 14}))
	must(t, on.In.Await(t.Context()))
	if err := on.TakeHead(t.Context()); !errors.Is(err, stream.ErrTruncated) ||
		!strings.Contains(err.Error(), "feedback 13…13") {
		t.Error(err)
	}
	must(t, log.Truncate(topics.Feedback, 0, first+2+13)) // the mark is left
	if _, _, err := follow(t, log); !errors.Is(err, stream.ErrTruncated) ||
		!strings.Contains(err.Error(), "feedback 11…14") {
		t.Error(err)
	}
}

func markOf(m *codec.FeedbackMark) stream.Record {
	return stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, m)}
}

// TestBestSnapshot: a follower goes on from the snapshot that learned most, of several the last, and knows the highest
// round that the last mark and snapshots tell of.
func TestBestSnapshot(t *testing.T) {
	log, topics := learnedLog(t, 3)
	f, _, err := follow(t, log)
	must(t, err)
	early := f.Snapshot()
	for n := int64(4); n < 9; n++ {
		put(t, log, topics.Feedback, feedbackOf(n, 1, .5))
	}
	must(t, f.catchUp(t.Context()))
	for _, s := range []*Snapshot{early, f.Snapshot(), f.Snapshot(), early} {
		must(t, f.WriteSnapshot(t.Context(), s, fmt.Sprint("n", len(f.kept))))
	}
	written := f.kept
	for _, c := range []struct {
		mark codec.FeedbackMark
		told int64
	}{
		{codec.FeedbackMark{}, 8},
		{codec.FeedbackMark{Positions: []codec.Position{{Partition: 1, Round: 99}, {Partition: 0, Round: 10}}}, 10},
		{codec.FeedbackMark{Positions: []codec.Position{{Round: 7, Done: []codec.Run{{From: 9, To: 12}}}}}, 12},
		{codec.FeedbackMark{Positions: []codec.Position{{Round: 7, Done: []codec.Run{{From: 3, To: 4}}}}}, 8},
	} {
		put(t, log, topics.Feedback, markOf(&c.mark))
		again := New(log, "m", build, 1)
		best, err := again.bestSnapshot(t.Context())
		if must(t, err); best.Through != 8 || best.Offset != written[2] || !slices.Equal(again.kept, written) ||
			again.Told(0) != c.told {
			t.Errorf("%+v: from offset %d of %v, told of round %d", c.mark, best.Offset, again.kept, again.Told(0))
		}
	}
}

// TestForeignFeedback: what somebody else wrote into the feedback log is told with its place, and passed over.
func TestForeignFeedback(t *testing.T) {
	for _, kind := range []string{"", codec.TypeClass, codec.TypeEpoch, codec.TypeMark, "x"} {
		log, topics := learnedLog(t, 5)
		_, at, err := log.Bounds(t.Context(), topics.Feedback, 0)
		must(t, err)
		foreign := stream.Record{Type: kind, Value: []byte("x")}
		put(t, log, topics.Feedback, slices.Repeat([]stream.Record{foreign}, 40)...)
		if n, err := lastFeedback(t.Context(), log, topics.Feedback); n != 5 || err != nil {
			t.Errorf("behind records of type %q: feedback %d, %v", kind, n, err)
		}
		put(t, log, topics.Feedback, feedbackOf(6, 1, .5))
		f, told, err := follow(t, log)
		must(t, err)
		tells := kind != codec.TypeMark && kind != "x" // these are for others to tell
		if f.Replica().LearnedThrough() != 6 || tells != strings.Contains(told, fmt.Sprint("partition=0 offset=", at)) {
			t.Errorf("of type %q: learned %d, told %q", kind, f.Replica().LearnedThrough(), told)
		}
	}
}

// TestVoidSnapshot: a snapshot is not gone on from if a mark says that what it learned is no longer in the log.
func TestVoidSnapshot(t *testing.T) {
	eras, known := []codec.EraStart{{Era: 1, N: 5}}, []codec.EpochRef{{Epoch: 1}}
	for name, c := range map[string]struct {
		mark codec.FeedbackMark
		void bool
	}{
		"all is there":   {codec.FeedbackMark{Era: 1, Eras: eras, Epochs: known}, false},
		"of its era":     {codec.FeedbackMark{}, false},
		"feedback lost":  {codec.FeedbackMark{Era: 1, Eras: []codec.EraStart{{Era: 1, N: 4}}, Epochs: known}, true},
		"its epoch lost": {codec.FeedbackMark{Era: 1, Eras: eras}, true},
	} {
		log, topics := learnedLog(t, 5)
		f, _, err := follow(t, log)
		must(t, err)
		must(t, f.WriteSnapshot(t.Context(), f.Snapshot(), "n"))
		_, end, err := log.Bounds(t.Context(), topics.Feedback, 0)
		must(t, err)
		must(t, log.DropTail(topics.Feedback, 0, end-1))
		put(t, log, topics.Feedback, markOf(&c.mark), feedbackOf(5, 1, 1))
		read := 0
		must(t, ReadSnapshots(t.Context(), log, topics, func(*Snapshot, error) error {
			read++
			return nil
		}))
		best, err := f.bestSnapshot(t.Context())
		if must(t, err); (best == nil) != c.void || (read == 0) != c.void || f.broken != 0 {
			t.Errorf("%s: %d are read, goes on from %v, %d damaged", name, read, best != nil, f.broken)
		}
		if told, err := f.Announced(t.Context(), 0, 5); err != nil || told != (name == "feedback lost") {
			t.Errorf("%s: the loss of feedback 5 is announced: %v, %v", name, told, err)
		}
	}
}

// guesses is a class of two functions.
type guesses struct{}

func (guesses) Size() int                                  { return 2 }
func (guesses) Eval(dst []float64, _ *oracle.Input, _ int) { dst[0], dst[1] = .2, .8 }

// TestEarlierSnapshot: a snapshot of a program whose learners kept less is gone on from only where the first feedback
// is gone.
func TestEarlierSnapshot(t *testing.T) {
	watched := func(rec *codec.Epoch, _ map[string][]byte) (loop.Epoch, error) {
		ep, err := build(rec, nil)
		must(t, err)
		h, err := oracle.NewHedge(guesses{}, oracle.HedgeOptions{})
		must(t, err)
		models, err := learner.NewModels(guesses{}, learner.ModelsOptions{Alpha: .3})
		must(t, err)
		l := learner.NewDAFA(h, learner.Root{C: 20})
		ep.Learner = l
		return ep, l.Watch(models)
	}
	log, topics := learnedLog(t, 10)
	f, _, err := followBy(t, log, watched)
	must(t, err)
	b, err := f.AppendEarlierState(nil)
	must(t, err)
	s, err := parseSnapshot(b)
	must(t, err)
	s.FeedbackFrom = f.safe
	must(t, f.WriteSnapshot(t.Context(), &s, "n"))
	const says = "learning again from the first feedback"
	again, told, err := followBy(t, log, watched)
	if must(t, err); !strings.Contains(told, says) || !bytes.Equal(state(t, again), state(t, f)) {
		t.Errorf("the state differs; told %q", told)
	}
	first, _, err := log.Bounds(t.Context(), topics.Feedback, 0)
	must(t, err)
	for at, whole := range map[int64]bool{join.LogStart: true, join.LogStart + 1: false} {
		f := New(&beginning{log, at}, "m", watched, 1)
		if over, err := f.passOver(t.Context(), &s); over != whole || err != nil {
			t.Errorf("a log that begins at %d: passed over %v, %v", at, over, err)
		}
		if err := f.unlearned(t.Context(), 12, loop.ErrGap); errors.Is(err, stream.ErrTruncated) == whole {
			t.Errorf("a log that begins at %d has a gap: %v", at, err)
		}
		if err := CheckTaught(t.Context(), f.log, "m", 1); (err == nil) != whole {
			t.Errorf("a log that begins at %d is taught: %v", at, err)
		}
	}
	must(t, log.Truncate(topics.Feedback, 0, first+5))
	on, told, err := followBy(t, log, watched)
	if must(t, err); on.Replica().LearnedThrough() != 10 || strings.Contains(told, says) ||
		bytes.Equal(state(t, on), state(t, f)) {
		t.Errorf("learned %d, told %q", on.Replica().LearnedThrough(), told)
	}
}

// TestEraOfFollower: feedback that was learned and that the log has lost cannot be unlearned.
func TestEraOfFollower(t *testing.T) {
	for _, c := range []struct {
		mark codec.FeedbackMark
		void bool
	}{
		{codec.FeedbackMark{Era: 0}, false},
		{codec.FeedbackMark{Era: 1, Eras: []codec.EraStart{{Era: 1, N: 5}}, Epochs: []codec.EpochRef{{Epoch: 1}}},
			false},
		{codec.FeedbackMark{Era: 1, Eras: []codec.EraStart{{Era: 1, N: 4}}, Epochs: []codec.EpochRef{{Epoch: 1}}},
			true},
		{codec.FeedbackMark{Era: 1, Eras: []codec.EraStart{{Era: 1, N: 5}}}, true},
	} {
		log, topics := learnedLog(t, 5)
		f, _, err := follow(t, log)
		must(t, err)
		put(t, log, topics.Feedback, markOf(&c.mark))
		must(t, f.In.Await(t.Context()))
		err = f.TakeHead(t.Context())
		if errors.Is(err, ErrVoid) != c.void || err == nil && f.Replica().Era() != c.mark.Era {
			t.Errorf("%+v: %v", c.mark, err)
		}
	}
}

// TestSegments: what a learner starts from, by hand.
func TestSegments(t *testing.T) {
	p := past{first: 1, epochs: []codec.Epoch{{Epoch: 1}, {Epoch: 2, Through: 10}, {Epoch: 3, Through: 20,
		Continues: 2},
		{Epoch: 4, Through: 30, WarmFrom: 11, WarmTo: 15, WarmEpoch: 2}, {Epoch: 5, Through: 40, Mode: codec.Paused}}}
	for name, c := range map[string]struct {
		rec  codec.Epoch
		want []segment
		err  error
	}{
		"nothing": {codec.Epoch{Epoch: 6}, nil, nil},
		"refit":   {codec.Epoch{Epoch: 6, WarmFrom: 3, WarmTo: 9}, []segment{{from: 3, to: 9}}, nil},
		"a rollback": {codec.Epoch{Epoch: 6, WarmTo: 15, WarmEpoch: 2},
			[]segment{{since: 2, epoch: 2, from: 11, to: 15}}, nil},
		"one that went on": {codec.Epoch{Epoch: 6, WarmTo: 25, WarmEpoch: 3},
			[]segment{{since: 2, epoch: 2, from: 11, to: 20}, {since: 2, epoch: 3, from: 21, to: 25}}, nil},
		"of a rollback": {codec.Epoch{Epoch: 6, WarmTo: 35, WarmEpoch: 4},
			[]segment{{since: 2, epoch: 2, from: 11, to: 15}, {since: 4, epoch: 4, from: 31, to: 35}}, nil},
		"paused": {codec.Epoch{Epoch: 6, WarmTo: 45, WarmEpoch: 5},
			[]segment{{since: 5, epoch: 5, from: 41, to: 45, paused: true}}, nil},
		"goes on": {codec.Epoch{Epoch: 6, Through: 50, Continues: 5},
			[]segment{{since: 5, epoch: 5, from: 41, to: 50, paused: true}}, nil},
		"goes on after one": {codec.Epoch{Epoch: 6, Through: 41, Continues: 5},
			[]segment{{since: 5, epoch: 5, from: 41, to: 41, paused: true}}, nil},
		"goes on at once": {codec.Epoch{Epoch: 6, Through: 40, Continues: 5}, nil, nil},
		"with another":    {codec.Epoch{Epoch: 6, Through: 50, Continues: 4}, nil, stream.ErrTruncated},
		"of itself":       {codec.Epoch{Epoch: 6, WarmTo: 45, WarmEpoch: 6}, nil, codec.ErrCorrupt},
		"of one gone":     {codec.Epoch{Epoch: 9, WarmTo: 45, WarmEpoch: 7}, nil, stream.ErrTruncated},
		"goes on, gone":   {codec.Epoch{Epoch: 1, Continues: 1}, nil, stream.ErrTruncated},
	} {
		got, err := p.segments(&c.rec)
		if !errors.Is(err, c.err) || c.err == nil && (err != nil || !slices.Equal(got, c.want)) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	for n, want := range map[int64]int64{1: 1, 10: 1, 11: 2, 20: 2, 21: 3, 41: 5} {
		if e := p.at(n); e == nil || e.Epoch != want {
			t.Errorf("feedback %d is learned in %+v", n, e)
		}
	}
	if e := p.before(3); e.Epoch != 2 || p.before(1) != nil || p.epoch(7) != nil || p.at(0) != nil {
		t.Errorf("before 3: %+v", e)
	}
}

// TestPlan: a model that starts from earlier feedback is announced with what that is, or refused.
func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		warm model.Warm
		want [3]int64 // from, to, epoch
		says string
	}{
		"none":      {model.Warm{}, [3]int64{}, ""},
		"refit":     {model.Warm{Refit: true}, [3]int64{1, 12, 0}, ""},
		"rollback":  {model.Warm{Through: 7}, [3]int64{1, 7, 1}, ""},
		"the first": {model.Warm{Through: 1}, [3]int64{1, 1, 1}, ""},
		"the end":   {model.Warm{Through: 12}, [3]int64{1, 12, 1}, ""},
		"too far":   {model.Warm{Through: 13}, [3]int64{}, "the feedback log ends at 12"},
		"scaled":    {model.Warm{Refit: true}, [3]int64{}, "version 1 (epoch 1) are on another scale: reward: differs"},
	} {
		log, topics := learnedLog(t, 12)
		var told strings.Builder
		e := NewLoggedEpochs(log, topics, build, slog.New(slog.NewTextHandler(&told, nil)))
		must(t, e.Find(t.Context(), []codec.EpochRef{{Epoch: 1, Offset: stream.Earliest}}))
		s := &Source{Name: "m", Version: 2, Model: []byte("model 1\n"), Files: map[string][]byte{"f": []byte("x")},
			Order: []string{"f"}, Warm: c.warm}
		if name == "scaled" {
			put(t, log, topics.Feedback, feedbackOf(13, 0, .5)) // of an epoch whose record is gone
			s.Model = []byte("name: m\nversion: 2\nreward: {min: 0, max: 9}\n")
		}
		last, err := lastFeedback(t.Context(), log, topics.Feedback)
		must(t, err)
		rec, paused := s.Record(2, 1, "", last), 0
		err = e.Plan(t.Context(), s, &rec, func() error { paused++; return nil })
		if c.says != "" {
			if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := [3]int64{rec.WarmFrom, rec.WarmTo, rec.WarmEpoch}; err != nil || got != c.want ||
			rec.SHA256 != hexSum(rec.LoggedModel()) || (paused > 0) != (c.want[1] > 0) {
			t.Errorf("%s: %v, %v, paused %d times", name, got, err, paused)
		}
		if says := fmt.Sprintf("learned=%d passed_over=0", c.want[1]); strings.Contains(told.String(), says) !=
			(c.want[1] > 0) {
			t.Errorf("%s: told %q", name, told.String())
		}
		d := e.Last
		put(t, log, topics.Feedback, d.Records()...)
		f, _, err := follow(t, log)
		if must(t, err); f.Warmed != (c.want[1] > 0) || f.Replica().Epoch().Number != 2 ||
			f.Replica().Epoch().Learner.Learned() != c.want[1] {
			t.Errorf("%s: warmed %v, %d learned", name, f.Warmed, f.Replica().Epoch().Learner.Learned())
		}
		for stopped := errors.New("stopped"); paused > 0; paused-- { // at each of the calls
			rec, left := s.Record(3, 1, "", 12), paused
			err := e.Plan(t.Context(), s, &rec, func() error {
				if left--; left == 0 {
					return stopped
				}
				return nil
			})
			if !errors.Is(err, stopped) {
				t.Errorf("%s, stopped at call %d: %v", name, paused, err)
			}
			e.Undo(d)
		}
	}
}

// TestContinue: an epoch in another mode goes on with the learner and the model at work.
func TestContinue(t *testing.T) {
	log, topics := learnedLog(t, 12)
	e := NewLoggedEpochs(log, topics, build, slog.New(slog.DiscardHandler))
	must(t, e.Find(t.Context(), []codec.EpochRef{{Epoch: 1, Offset: stream.Earliest}}))
	must(t, e.Continue(2, 12, codec.Paused, "admin"))
	got := &e.Last.Rec
	if got.Epoch != 2 || got.Through != 12 || got.Continues != 1 || got.Mode != codec.Paused || got.Cause != "admin" ||
		got.WarmFrom|got.WarmTo|got.WarmEpoch != 0 {
		t.Errorf("%+v", got)
	}
	put(t, log, topics.Feedback, e.Last.Records()...)
	put(t, log, topics.Feedback, feedbackOf(13, 2, 1))
	f, _, err := follow(t, log)
	must(t, err)
	if now := f.Replica().Epoch(); f.Replica().LearnedThrough() != 13 || now.Since != 1 || now.Number != 2 {
		t.Errorf("%d feedbacks in epoch %+v", f.Replica().LearnedThrough(), now)
	}
}

// TestRollback: a learner that starts from the state after a feedback is the one that had learned it, whatever came
// before: late feedback of earlier learners, a pause, another rollback.
func TestRollback(t *testing.T) {
	log, topics := learnedLog(t, 4)
	e := NewLoggedEpochs(log, topics, build, slog.New(slog.DiscardHandler))
	must(t, e.Find(t.Context(), []codec.EpochRef{{Epoch: 1, Offset: stream.Earliest}}))
	f, _, err := follow(t, log)
	must(t, err)
	var states [][]byte // by the feedback learned last
	n := int64(4)
	take := func(records ...stream.Record) []byte {
		put(t, log, topics.Feedback, records...)
		for range records {
			for len(f.In.Batch) == 0 {
				must(t, f.In.Await(t.Context()))
			}
			must(t, f.TakeHead(t.Context()))
		}
		b, err := f.heart.Epoch().Learner.AppendBinary(nil)
		must(t, err)
		return b
	}
	learn := func(epochs ...int64) {
		for _, epoch := range epochs {
			n++
			states = append(states, take(feedbackOf(n, epoch, float64(n%5)/8)))
		}
	}
	plan := func(epoch int64, warm model.Warm) (codec.Epoch, []byte) {
		s := &Source{Name: "m", Version: epoch, Model: []byte("model 1\n"), Warm: warm}
		rec := s.Record(epoch, 1, "", n)
		must(t, e.Plan(t.Context(), s, &rec, nil))
		return rec, take(e.Last.Records()...)
	}
	plan(2, model.Warm{})
	learn(2, 1, 2, 2) // feedback 5 to 8
	must(t, e.Continue(3, n, codec.Paused, "admin"))
	take(e.Last.Records()...)
	learn(3, 2)
	must(t, e.Continue(4, n, codec.Live, "admin"))
	take(e.Last.Records()...)
	learn(4, 1, 2)
	plan(5, model.Warm{Through: 9})
	learn(5, 4, 5)
	for i, then := range states {
		rec, now := plan(int64(6+i), model.Warm{Through: int64(5 + i)})
		if !bytes.Equal(now, then) {
			t.Errorf("%+v: the learner differs", rec)
		}
	}
	s := &Source{Name: "m", Version: 99, Model: []byte("oracle: {kind: linear}\n"), Warm: model.Warm{Through: 12}}
	rec := s.Record(99, 1, "", n)
	if err := e.Plan(t.Context(), s, &rec, nil); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	first, _, err := log.Bounds(t.Context(), topics.Feedback, 0)
	must(t, err)
	must(t, log.Truncate(topics.Feedback, 0, first+2+3)) // one class, one epoch
	for _, n := range []int64{1, 3, 4} {
		s, rec := &Source{Warm: model.Warm{Through: n}}, codec.Epoch{Epoch: 100, Through: 16}
		if err := e.Plan(t.Context(), s, &rec, nil); !errors.Is(err, ErrModel) ||
			!strings.Contains(err.Error(), "no longer kept, the first that is kept is 4") {
			t.Errorf("back to %d: %v", n, err)
		}
	}
	if rec, now := plan(101, model.Warm{Through: 9}); !bytes.Equal(now, states[4]) {
		t.Errorf("%+v: the learner differs", rec)
	}
	if rec, _ := plan(102, model.Warm{Refit: true}); rec.WarmFrom != 4 || rec.WarmTo != 16 || rec.WarmEpoch != 0 {
		t.Errorf("%+v", rec)
	}
	put(t, log, topics.Feedback, record(103).Records()...)
	must(t, log.Truncate(topics.Feedback, 0, first+2+4+1+1)) // an epoch, feedback 5
	late := e.Last
	late.Rec.Epoch, late.Rec.Through = 104, 16
	put(t, log, topics.Feedback, late.Records()...)
	if err := f.catchUp(t.Context()); !errors.Is(err, stream.ErrTruncated) ||
		!strings.Contains(err.Error(), "starts from feedback 4…16 and 4 is gone") {
		t.Error(err)
	}
}

// TestKeep: a model goes on with the learner at work if it makes the same one, and is refused otherwise.
func TestKeep(t *testing.T) {
	const hedge, linear = "oracle: {kind: hedge, class: f}\n", "oracle: linear\n"
	for name, c := range map[string]struct {
		was, is, file string // lines of the models, and the file of the new one
		says          string
	}{
		"the same":        {"", "", "x", ""},
		"another window":  {"", "window: 9 rounds\n", "x", ""},
		"another file":    {"", "", "y", ""},
		"more actions":    {"actions: [a, b]\n", "actions: [a, b, c]\n", "x", ""},
		"early":           {linear, linear + "early: median\n", "x", ""},
		"no longer early": {linear + "early: median\n", linear, "x", `early differs: it has "early:`},
		"more features": {"max_features: 8\n", "max_features: 9\n", "x",
			`version 1 (epoch 1), of which max_features differs: it has "max_features: 8`},
		"another class": {hedge, hedge, "y", "another class file"},
		"the class":     {hedge, hedge, "x", ""},
		"unfit":         {"", "# unfit\n", "x", "does not fit this model"},
	} {
		lines := func(version, lines string) []byte {
			return []byte("name: m\nversion: " + version + "\nmissing: impute\n" + lines)
		}
		build := func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
			ep, err := build(rec, files)
			if strings.Contains(string(rec.Model), "unfit") {
				ep.Learner = learner.NewUniform()
			}
			return ep, err
		}
		d := record(1, "f", "x")
		d.Rec.Model = lines("1", c.was)
		d.Rec.SHA256 = hexSum(d.Rec.LoggedModel())
		log, topics := logOf(t, append(d.Records(), feedbackOf(1, 1, .5), feedbackOf(2, 1, 0))...)
		f, _, err := followBy(t, log, build)
		must(t, err)
		e := NewLoggedEpochs(log, topics, build, slog.New(slog.DiscardHandler))
		s := &Source{Name: "m", Version: 1, Model: d.Rec.Model, Order: []string{"f"}, Files: d.Files,
			Warm: model.Warm{Keep: true}}
		rec := s.Record(1, 1, "", 0)
		must(t, e.planKeep(s, &rec)) // there is none to go on with
		must(t, e.Find(t.Context(), []codec.EpochRef{{Epoch: 1, Offset: stream.Earliest}}))
		for n := int64(2); n < 4; n++ {
			s.Version, s.Model, s.Files = n, lines(fmt.Sprint(n), c.is), map[string][]byte{"f": []byte(c.file)}
			rec = s.Record(n, 1, "", n)
			err := e.Plan(t.Context(), s, &rec, nil)
			if c.says != "" {
				if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			if err != nil || rec.Continues != 1 {
				t.Errorf("%s: goes on with %d, %v", name, rec.Continues, err)
			}
			before := f.heart.Epoch().Learner
			was, err := before.AppendBinary(nil)
			must(t, err)
			put(t, log, topics.Feedback, e.Last.Records()...)
			must(t, f.catchUp(t.Context()))
			now, err := f.heart.Epoch().Learner.AppendBinary(nil)
			if must(t, err); !bytes.Equal(was, now) || f.heart.Epoch().Number != n {
				t.Errorf("%s: another learner in epoch %d", name, f.heart.Epoch().Number)
			}
			if copied := n == 2 && name == "more actions"; copied != (f.heart.Epoch().Learner != before) {
				t.Errorf("%s: it is a copy in epoch %d: %v", name, n, !copied)
			}
			put(t, log, topics.Feedback, feedbackOf(n+1, n, .5))
			must(t, f.catchUp(t.Context()))
		}
		last := e.Last
		back := func() error { // to the learner of epoch 1
			rec = s.Record(9, 1, "", rec.Through)
			defer e.Undo(last)
			return e.Plan(t.Context(), s, &rec, nil)
		}
		s.Warm = model.Warm{Through: 2}
		refused := slices.Contains([]string{"more features", "more actions", "another class"}, name)
		if err := back(); errors.Is(err, ErrModel) != refused || err != nil && !strings.Contains(err.Error(),
			"warm: 2 is a state of version 1 (epoch 1), ") {
			t.Errorf("%s: back: %v", name, err)
		}
		if name != "the same" {
			continue
		}
		s.Earlier, s.Model = s.Model, append(s.Model, "oracle: {kind: auto, version: 2}\n"...)
		if err := back(); err != nil || !bytes.Equal(rec.Model, s.Earlier) {
			t.Errorf("%q: %v", rec.Model, err)
		}
		s.Earlier = nil
		if err := back(); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "oracle: differs") {
			t.Error(err)
		}
	}
}

// noticing is a learner whose oracle notices a change with every third round.
type noticing struct{ *learner.DAFA }

func (n noticing) Oracle() oracle.Regressor { return noticed{n.DAFA.Oracle(), n} }

type noticed struct {
	oracle.Regressor
	of noticing
}

func (n noticed) Changes() (oracle.Changes, bool) {
	c := oracle.Changes{Count: n.of.Learned() / 3, Last: []oracle.Change{{Action: "a", Outcome: "sale"}, {}}}
	return c, true
}

// TestChangesAreTold: each change that the oracle notices is told once by the follower that warns.
func TestChangesAreTold(t *testing.T) {
	log, _ := learnedLog(t, 8)
	for _, warns := range []bool{true, false} {
		var told strings.Builder
		f := New(log, "m", func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
			ep, err := build(rec, files)
			ep.Learner = noticing{ep.Learner.(*learner.DAFA)}
			return ep, err
		}, 1)
		f.warns, f.logger = warns, slog.New(slog.NewTextHandler(&told, nil))
		must(t, f.open(t.Context()))
		t.Cleanup(f.Close)
		for n, want := range []int{3: 1, 6: 2, 8: 0} {
			says := fmt.Sprintf("feedback=%d action=all outcome=loss changes=%d ", n, want)
			if strings.Contains(told.String(), says) != (warns && want > 0) {
				t.Errorf("after feedback %d: %s", n, told.String())
			}
		}
		if n := strings.Count(told.String(), "level=WARN"); n != 2 && warns || n > 0 && !warns {
			t.Errorf("warns %v: told %d times", warns, n)
		}
	}
}

// TestMatches: the rounds of an apprentice, and no others, tell how probably the learner would do the same.
func TestMatches(t *testing.T) {
	log, topics := learnedLog(t, 3)
	var x codec.Feedback
	r := feedbackOf(4, 1, .5)
	must(t, codec.ParseFeedback(&x, r.Value))
	x.Mode, x.Partition = codec.Apprentice, 1 // of a partition that this system has not
	put(t, log, topics.Feedback, stream.Record{Value: codec.AppendFeedback(nil, &x)}, feedbackOf(5, 1, .5))
	f, _, err := follow(t, log)
	must(t, err)
	m := f.scope.View().Match
	if m.Rounds != 1 || !(m.Rate > 0 && m.Rate < 1) || !slices.Equal(f.Rounds(), []int64{5}) {
		t.Errorf("%+v, rounds %v", m, f.Rounds())
	}
}

// beginning is a log whose first offset is another.
type beginning struct {
	stream.Log
	first int64
}

func (l *beginning) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	_, next, err = l.Log.Bounds(ctx, topic, partition)
	return l.first, next, err
}

// TestTakeFrom: who begins at an epoch record knows nothing of what came before: a learner that goes on is one that
// learned nothing.
func TestTakeFrom(t *testing.T) {
	log, _ := logOf(t)
	d := record(3, "f", "x")
	d.Rec.Continues, d.Rec.Through = 1, 5
	records := d.Records()
	f := New(log, "m", build, 3)
	must(t, f.Take(t.Context(), &records[0]))
	must(t, f.TakeFrom(t.Context(), &records[1], 5))
	for n, c := range []struct{ epoch, learned int64 }{{2, 0}, {3, 1}} {
		r := feedbackOf(int64(6+n), c.epoch, .5)
		must(t, f.Take(t.Context(), &r))
		if now := f.heart.Epoch(); now.Number != 3 || now.Learner.Learned() != c.learned {
			t.Errorf("after feedback %d: %d learned in epoch %d", 6+n, now.Learner.Learned(), now.Number)
		}
	}
	if f.AdoptRounds([]int64{9, 8, 0, 5}); !slices.Equal(f.Rounds(), []int64{7, 8, 0}) {
		t.Errorf("rounds %v", f.Rounds())
	}
	if f.TakeFrom(t.Context(), &records[0], 5) == nil {
		t.Error("a class record begins an epoch")
	}
}

// TestRestoredEra: a follower that begins at a snapshot is in its era.
func TestRestoredEra(t *testing.T) {
	log, s, got := learnedSnapshot(t)
	got.Era = 3
	again := New(log, "m", build, 1)
	must(t, again.Restore(&got))
	if again.Replica().Era() != 3 || again.Replica().LearnedThrough() != 5 || !slices.Equal(again.Rounds(),
		[]int64{5}) {
		t.Errorf("era %d, %d feedbacks, rounds %v", again.Replica().Era(), again.Replica().LearnedThrough(),
			again.Rounds())
	}
	newest := bytes.Clone(s.Bytes)
	newest[0] = codec.Newest
	if _, err := parseSnapshot(newest); err != nil {
		t.Error(err)
	}
}

// TestStrangers: all foreign records are counted, and told once in ten seconds with how many were not.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		reg := prometheus.NewRegistry()
		s := NewStrangers(watch.NewMetrics(reg, watch.NewHealth("decider")), slog.New(slog.NewTextHandler(&told, nil)))
		_, foreign := codec.ParseReject([]byte("x"))
		pass := func(s *Strangers) {
			if err := s.Pass("topic", 0, &stream.Record{}, foreign); err != nil {
				t.Error(err)
			}
		}
		for range 3 {
			pass(s)
		}
		time.Sleep(tellEvery - 1)
		pass(s)
		if n := strings.Count(told.String(), "passed over"); n != 1 || !strings.Contains(told.String(), "untold=0") {
			t.Errorf("told %d times: %s", n, told.String())
		}
		time.Sleep(time.Nanosecond)
		pass(s)
		if n := strings.Count(told.String(), "passed over"); n != 2 || !strings.Contains(told.String(), "untold=3") {
			t.Errorf("told %d times: %s", n, told.String())
		}
		time.Sleep(tellEvery)
		pass(s)
		if !strings.HasSuffix(told.String(), "untold=0\n") {
			t.Errorf("told %s", told.String())
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counted := 0.0
		for _, f := range families {
			if strings.Contains(f.GetName(), "foreign") {
				counted += f.Metric[0].GetCounter().GetValue()
			}
		}
		if counted != 6 {
			t.Errorf("%v are counted", counted)
		}
		pass(nil)
		if err := s.Pass("topic", 0, &stream.Record{}, stream.ErrGap); !errors.Is(err, stream.ErrGap) {
			t.Error(err)
		}
	})
}
