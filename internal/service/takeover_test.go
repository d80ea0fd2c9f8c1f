package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// takeover is a log whose clock is set by hand, and joiners that own it one after the other.
type takeover struct {
	*testing.T
	log    *mem.Log
	topics join.Topics
	rules  loop.Rules
	now    int64
	parts  int
	n      []int64            // decisions, by partition
	most   int                // rounds that may wait, and are remembered
	asked  func(topic string) // before a joiner hears where a topic ends; nil: nothing happens
}

// askedLog is the log as joiners see it.
type askedLog struct {
	stream.Log
	k *takeover
}

func (l askedLog) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	if l.k.asked != nil {
		l.k.asked(topic)
	}
	return l.Log.Bounds(ctx, topic, partition)
}

func newTakeover(t *testing.T, parts int, window loop.Window) *takeover {
	k := &takeover{T: t, parts: parts, n: make([]int64, parts), most: 100}
	k.rules = loop.Rules{Range: loop.Range{Max: 1}, Window: window}
	k.log = mem.New(mem.Options{Clock: func() int64 { return k.now }})
	k.topics = createTopics(t, k.log, "m", parts)
	k.joiner().Close() // the epoch begins
	return k
}

// joiner opens a joiner, which takes the feedback log over.
func (k *takeover) joiner() *Joiner {
	k.Helper()
	j, err := OpenJoiner(k.Context(), SystemConfig{Log: askedLog{k.log, k}, Partitions: k.parts,
		Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")},
		Build: func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
			ep, err := testBuild(rec, files)
			ep.Rules = &k.rules
			return ep, err
		}, MaxPending: k.most, Dedup: k.most, MarkEvery: 100, Logger: slog.New(slog.DiscardHandler)})
	must(k.T, j, err)
	k.Cleanup(j.Close)
	return j
}

func (k *takeover) append(at int64, topic string, p int, value []byte) {
	k.Helper()
	k.now = at
	w, err := k.log.Writer(k.Context(), topic, p, nil)
	must(k.T, 0, err)
	defer w.Close()
	_, err = w.Append(k.Context(), &stream.Record{Value: value})
	must(k.T, 0, err)
}

func (k *takeover) decide(at int64, p int, id string) {
	k.Helper()
	k.n[p]++
	k.append(at, k.topics.Decisions, p,
		codec.AppendDecision(nil, &codec.Decision{Partition: p, N: k.n[p], ID: id, Epoch: 1,
			Actions: []string{"a"}, Propensities: []float64{1}}))
}

func (k *takeover) report(at int64, p int, id string, loss float64) {
	k.Helper()
	k.append(at, k.topics.Outcomes, p, codec.AppendOutcome(nil, &codec.Outcome{ID: id, Kind: codec.Loss, Value: loss}))
}

func (k *takeover) step(j *Joiner) {
	k.Helper()
	for busy := true; busy; {
		var err error
		busy, err = j.Step(k.Context())
		must(k.T, busy, err)
	}
}

// wake steps a joiner that was replaced, which the log must stop.
func (k *takeover) wake(j *Joiner) {
	k.Helper()
	if _, err := j.Step(k.Context()); !errors.Is(err, stream.ErrFenced) {
		k.Errorf("a joiner that was replaced comes to %v", err)
	}
}

// holds fails unless the logs hold these fates: of rounds by their ids, and of rejected
// outcomes by their partitions and offsets.
func (k *takeover) holds(want map[string]string) {
	k.Helper()
	got := k.fates()
	for key := range want {
		got[key] += "" // there or not
	}
	for key, fate := range got {
		if fate != want[key] {
			k.Errorf("the logs hold %q of %s, want %q", fate, key, want[key])
		}
	}
}

// fates returns what the logs hold of rounds and rejected outcomes.
func (k *takeover) fates() map[string]string {
	k.Helper()
	got := map[string]string{}
	look := func(topic string, f func(r *stream.Record) error) {
		_, end, err := k.log.Bounds(k.Context(), topic, 0)
		must(k.T, 0, err)
		must(k.T, 0, stream.Scan(k.Context(), k.log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
			if r.Type != "" {
				return nil
			}
			return f(r)
		}))
	}
	look(k.topics.Feedback, func(r *stream.Record) error {
		var f codec.Feedback
		err := codec.ParseFeedback(&f, r.Value)
		got[f.ID] += fmt.Sprintf("%s %v", f.Fate, f.Loss)
		return err
	})
	look(k.topics.Rejects, func(r *stream.Record) error {
		x, err := codec.ParseReject(r.Value)
		got[fmt.Sprintf("outcome %d@%d", x.Partition, x.Offset)] = x.Reason
		return err
	})
	return got
}

// TestTakeoverClock: the log's clock goes back after an outcome, so that the decision that
// ends its round's window, in rounds, is written later and yet has an earlier log time. The
// joiner at work had counted the outcome. One that was paused meanwhile, and that reads the
// decision first, finds the outcome late: it must not say so.
func TestTakeoverClock(t *testing.T) {
	k := newTakeover(t, 1, loop.Window{Rounds: 2})
	k.decide(100, 0, "x")
	paused := k.joiner()
	k.step(paused)
	j := k.joiner()
	k.report(200, 0, "x", .25)
	k.step(j)
	k.decide(150, 0, "y")
	k.decide(151, 0, "z")
	k.wake(paused)
	k.step(j)
	k.holds(map[string]string{"x": "observed 0.25"})
}

// TestTakeoverAtOnce: the same with a joiner that was replaced before it took its first step,
// of two partitions; what the other had rejected stays rejected.
func TestTakeoverAtOnce(t *testing.T) {
	k := newTakeover(t, 2, loop.Window{Rounds: 1})
	k.decide(100, 0, "x")
	paused, j := k.joiner(), k.joiner()
	k.report(200, 1, "x", .25)
	k.report(200, 0, "x", .75)
	k.step(j) // reads partition 0 first
	k.decide(150, 0, "y")
	k.wake(paused)
	k.step(j)
	k.holds(map[string]string{"x": "observed 0.75", "outcome 1@0": codec.ReasonDuplicate})
}

// TestTakeoverEarlyReport: an outcome comes before its decision, and then another one. The
// joiner at work takes the first for an orphan and counts the second. One that was paused
// finds the decision in time for the first, and takes the second for its duplicate: if it said
// so, the next joiner would believe it, and the learner would get neither.
func TestTakeoverEarlyReport(t *testing.T) {
	k := newTakeover(t, 1, loop.Window{Nanos: 1000})
	k.decide(100, 0, "w") // holds x back
	paused := k.joiner()
	j := k.joiner()
	k.report(110, 0, "x", .25)
	k.step(j)
	k.decide(120, 0, "x")
	k.report(130, 0, "x", .75)
	k.step(j)
	k.wake(paused)
	j.Close()
	j = k.joiner()
	k.report(140, 0, "w", .5)
	k.step(j)
	k.holds(map[string]string{"w": "observed 0.5", "x": "observed 0.75", "outcome 0@0": codec.ReasonOrphan})
}

// TestMergeBetweenPolls: a decision that ends the window of a round, and after it an outcome of
// that round, are written after the joiner found the decisions empty and before it reads the
// outcomes. The decision must be given first.
func TestMergeBetweenPolls(t *testing.T) {
	k := newTakeover(t, 1, loop.Window{Rounds: 1})
	k.decide(100, 0, "x")
	j := k.joiner()
	k.step(j)
	k.asked = func(topic string) {
		if topic == k.topics.Outcomes {
			k.asked = nil
			k.decide(200, 0, "y")
			k.report(201, 0, "x", .25)
		}
	}
	k.step(j)
	k.holds(map[string]string{"x": "skipped 0", "outcome 0@0": codec.ReasonLate})
}

// TestOrphanBetweenPolls: the decision of an outcome that came early is written before the
// joiner asks where the decisions end: the outcome is no orphan.
func TestOrphanBetweenPolls(t *testing.T) {
	k := newTakeover(t, 1, loop.Window{Nanos: 1000})
	j := k.joiner()
	k.report(100, 0, "x", .25)
	asked := 0
	k.asked = func(topic string) {
		if topic != k.topics.Decisions {
			return
		}
		if asked++; asked == 2 { // before, it looked whether there was anything to read
			k.decide(200, 0, "x")
		}
	}
	k.step(j)
	k.holds(map[string]string{"x": "observed 0.25"})
}

// TestRestartRemembers: a joiner that opens knows as many rounds as one that went on, however
// many marks lie between their feedback.
func TestRestartRemembers(t *testing.T) {
	k := newTakeover(t, 1, loop.Window{Rounds: 1000})
	j := k.joiner()
	want := map[string]string{}
	for i := range 150 {
		id := fmt.Sprint("x", i)
		k.decide(100, 0, id)
		k.report(100, 0, id, .5)
		k.step(j)
		for range 4 {
			must(t, 0, j.core.Mark(t.Context()))
		}
		want[id] = "observed 0.5"
	}
	j.Close()
	j = k.joiner()
	k.report(200, 0, "x50", .5) // the oldest of 100 that are remembered
	k.step(j)
	want["outcome 0@150"] = codec.ReasonDuplicate
	k.holds(want)
}
