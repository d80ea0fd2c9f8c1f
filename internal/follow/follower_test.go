package follow

import (
	"bytes"
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
	"hindsight/internal/model"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func follow(t *testing.T, log stream.Log) (*Follower, string, error) {
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
	for i := range keepSnapshots + 2 {
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
		"whole":      {func() []codec.Snapshot { return cut("n") }, 1, false},
		"one":        {func() []codec.Snapshot { return chunks(s, "n", len(s.Bytes)) }, 1, false},
		"first lost": {func() []codec.Snapshot { return cut("n")[1:] }, 0, false},
		"last lost":  {func() []codec.Snapshot { return cut("n")[:2] }, 0, false},
		"one lost":   {func() []codec.Snapshot { return slices.Delete(cut("n"), 1, 2) }, 0, false},
		"anew":       {func() []codec.Snapshot { return append(cut("n")[:2], cut("n")...) }, 1, false},
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
	must(t, f.WriteSnapshot(t.Context(), f.Snapshot(), "n"))
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
		log, _ := learnedLog(t, 5)
		f, _, err := follow(t, log)
		must(t, err)
		err = f.beginEra(&c.mark)
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
		"none":     {model.Warm{}, [3]int64{}, ""},
		"refit":    {model.Warm{Refit: true}, [3]int64{1, 12, 0}, ""},
		"rollback": {model.Warm{Through: 7}, [3]int64{1, 7, 1}, ""},
		"the end":  {model.Warm{Through: 12}, [3]int64{1, 12, 1}, ""},
		"too far":  {model.Warm{Through: 13}, [3]int64{}, "the feedback log ends at 12"},
	} {
		log, topics := learnedLog(t, 12)
		e := NewLoggedEpochs(log, topics, build, slog.New(slog.DiscardHandler))
		must(t, e.Find(t.Context(), []codec.EpochRef{{Epoch: 1, Offset: stream.Earliest}}))
		s := &Source{Name: "m", Version: 2, Model: []byte("model 1\n"), Files: map[string][]byte{"f": []byte("x")},
			Order: []string{"f"}, Warm: c.warm}
		rec, paused := s.Record(2, 1, "", 12), 0
		err := e.Plan(t.Context(), s, &rec, func() error { paused++; return nil })
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
	if got.Epoch != 2 || got.Through != 12 || got.Continues != 1 || got.Mode != codec.Paused || got.Cause != "admin" {
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

// TestRollback: a learner that starts from the state after feedback 7 is the one that had learned 7.
func TestRollback(t *testing.T) {
	learnerOf := func(f *Follower) []byte {
		b, err := f.heart.Epoch().Learner.AppendBinary(nil)
		must(t, err)
		return b
	}
	short, _ := learnedLog(t, 7)
	then, _, err := follow(t, short)
	must(t, err)
	log, topics := learnedLog(t, 12)
	e := NewLoggedEpochs(log, topics, build, slog.New(slog.DiscardHandler))
	must(t, e.Find(t.Context(), []codec.EpochRef{{Epoch: 1, Offset: stream.Earliest}}))
	s := &Source{Name: "m", Version: 2, Model: []byte("model 1\n"), Files: map[string][]byte{"f": []byte("x")},
		Order: []string{"f"}, Warm: model.Warm{Through: 7}}
	rec := s.Record(2, 1, "", 12)
	must(t, e.Plan(t.Context(), s, &rec, nil))
	put(t, log, topics.Feedback, e.Last.Records()...)
	now, _, err := follow(t, log)
	if must(t, err); !bytes.Equal(learnerOf(now), learnerOf(then)) {
		t.Error("it differs")
	}
	must(t, e.Continue(3, 12, codec.Paused, "admin"))
	put(t, log, topics.Feedback, e.Last.Records()...)
	put(t, log, topics.Feedback, feedbackOf(13, 2, .5), feedbackOf(14, 3, .5), feedbackOf(15, 1, .5))
	s.Version, s.Warm = 3, model.Warm{Through: 12}
	rec = s.Record(4, 1, "", 15)
	must(t, e.Plan(t.Context(), s, &rec, nil))
	if rec.WarmEpoch != 1 || rec.WarmFrom != 1 || rec.WarmTo != 12 {
		t.Errorf("%+v", rec)
	}
	s.Model = []byte("oracle: {kind: linear}\n")
	rec = s.Record(4, 1, "", 15)
	if err := e.Plan(t.Context(), s, &rec, nil); !errors.Is(err, ErrModel) {
		t.Error(err)
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
