package verify

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// hookedLog calls a function before a reader of a topic is made, the first or a later one,
// and may let the readers of another say that a record is missing.
type hookedLog struct {
	stream.Log
	mu     sync.Mutex
	before string
	skip   int
	hook   func()
	broken string
	err    error
}

func (l *hookedLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	l.mu.Lock()
	if topic == l.before && l.hook != nil {
		if l.skip--; l.skip < 0 {
			l.hook()
			l.hook = nil
		}
	}
	l.mu.Unlock()
	r, err := l.Log.Read(ctx, topic, partition, from)
	if err == nil && topic == l.broken {
		r = &brokenReader{Reader: r, err: l.err}
	}
	return r, err
}

// brokenReader gives the first record, and then fails.
type brokenReader struct {
	stream.Reader
	err error
	at  int64
}

func (r *brokenReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if r.at > 0 {
		return nil, r.err
	}
	dst, err := r.Reader.Next(ctx, dst[:0])
	if err != nil {
		return nil, err
	}
	r.at = dst[0].Offset + 1
	return dst[:1], nil
}

func (r *brokenReader) Position() int64 { return r.at }

// cutWorld is a world whose feedback has lost its beginning, and when that was.
func cutWorld(t *testing.T) (w *world, cut func(topic string, p int)) {
	w = liveWorld(t, 2, 1, 40)
	var at int64
	for _, r := range w.records(w.ts.Snapshots, 0) {
		if s, err := codec.ParseSnapshot(r.Value); err == nil && s.LearnedThrough > 60 {
			at = w.fedBack(s.LearnedThrough - 3)
			break
		}
	}
	cut = func(topic string, p int) {
		for _, r := range w.records(topic, p) {
			if r.Time >= at {
				w.no(w.log.Truncate(topic, p, r.Offset))
				return
			}
		}
	}
	cut(w.ts.Feedback, 0)
	return w, cut
}

// TestVerifyBesideRetention holds that what a running system drops while it is verified is
// no difference: the snapshot that recomputing begins with, and contexts.
func TestVerifyBesideRetention(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(w *world) string
		drop func(w *world, cut func(topic string, p int))
	}{
		{"snapshots", func(w *world) string { return w.ts.Decisions }, func(w *world, _ func(string, int)) {
			_, end, err := w.log.Bounds(w.ctx, w.ts.Snapshots, 0)
			w.no(err)
			w.no(w.log.Truncate(w.ts.Snapshots, 0, end))
		}},
		{"contexts", func(w *world) string { return w.ts.Contexts }, func(w *world, cut func(string, int)) {
			for p := range w.parts {
				cut(w.ts.Contexts, p)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, cut := cutWorld(t)
			dropped := false
			log := &hookedLog{Log: w.log, before: c.read(w), hook: func() { c.drop(w, cut); dropped = true }}
			r, err := Run(w.ctx, Config{Log: log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
				Dedup: worldDedup})
			w.no(err)
			if !dropped || r.ExitCode() != TooOld || r.Decisions.Checked == 0 || !strings.Contains(r.Start,
				"snapshot") {
				t.Errorf("dropped %v: %s", dropped, r.text())
			}
		})
	}
}

// TestVerifyBrokenLog holds that records which a log has lost, or whose bytes its storage
// finds damaged, are a difference with a place.
func TestVerifyBrokenLog(t *testing.T) {
	w := liveWorld(t, 2, 1, 40)
	for _, topic := range []string{w.ts.Contexts, w.ts.Decisions, w.ts.Outcomes, w.ts.Feedback, w.ts.Rejects,
		w.ts.Snapshots} {
		for _, broken := range []error{stream.ErrGap, stream.ErrCorrupt} {
			log := &hookedLog{Log: w.log, broken: topic, err: broken}
			r, err := Run(w.ctx, Config{Log: log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
				Dedup: worldDedup})
			if err != nil || r.ExitCode() != Different || r.First == nil || r.First.Topic != topic ||
				r.First.Field != "record" || strings.Contains(r.text(), "from ;") ||
				!slices.ContainsFunc(w.records(topic, r.First.Partition),
					func(x stream.Record) bool { return x.Time == r.First.Time }) {
				t.Errorf("%s, %v: %v %+v", topic, broken, err, r)
			}
		}
	}
}

// TestVerifyNewer holds that records of a newer program are not called different: whether
// they are right is not for this one to say.
func TestVerifyNewer(t *testing.T) {
	w := liveWorld(t, 1, 1, 40)
	twice := codec.Context{ID: "twice", Features: []codec.Feature{{Name: "x", Kind: codec.Number, Value: 1}},
		Actions: []codec.Action{{Name: "a"}}}
	for range 2 { // the second is rejected
		_, err := w.in[0].Append(w.ctx, &stream.Record{Value: codec.AppendContext(nil, &twice)})
		w.no(err)
	}
	w.rounds(5)
	fates, _ := w.fatesOf()
	version := []byte{0xa1, 'v', 1}
	future := func(r *stream.Record) { r.Value[bytes.Index(r.Value, version)+2] = 99 }
	for topic, least := range map[string]int{w.ts.Decisions: 2, w.ts.Feedback: 2, w.ts.Contexts: 2, w.ts.Rejects: 1} {
		kinds := map[string]int64{}
		for _, r := range w.records(topic, 0) {
			if bytes.Contains(r.Value, version) {
				kind := r.Type
				if topic == w.ts.Contexts {
					kind = fates[recordKey{false, 0, r.Offset}]
				}
				kinds[kind] = r.Offset
			}
		}
		if len(kinds) < least {
			t.Fatalf("%s has versions in records of the kinds %v", topic, kinds)
		}
		for kind, offset := range kinds {
			restore := w.edit(topic, 0, offset, future)
			r, err := Run(w.ctx, Config{Log: w.log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
				Dedup: worldDedup})
			restore()
			if !errors.Is(err, codec.ErrVersion) {
				t.Errorf("%s %q: %v %+v", topic, kind, err, r)

			}
		}
	}

	// What this program met itself it has rejected; what comes last waits.
	r := stream.Record{Value: codec.AppendOutcome(nil, &codec.Outcome{ID: "twice", Kind: codec.Loss})}
	future(&r)
	for _, rounds := range []int{5, 0} {
		_, err := w.out[0].Append(w.ctx, &r)
		w.no(err)
		if rounds > 0 {
			w.rounds(rounds)
		}
	}
	if r := w.verify(); r.ExitCode() != Identical {
		t.Error(r.text())
	}

	// One that was not rejected was read by a newer joiner.
	w.rounds(60)
	all := w.records(w.ts.Rejects, 0)
	w.no(w.log.Edit(w.ts.Rejects, 0, func(rejects []stream.Record) []stream.Record {
		return slices.DeleteFunc(rejects, func(x stream.Record) bool {
			rej, err := codec.ParseReject(x.Value)
			return x.Type == "" && err == nil && bytes.Equal(rej.Bytes, r.Value)
		})
	}))
	if left := len(w.records(w.ts.Rejects, 0)); left == len(all) {
		t.Fatal("it was not rejected")
	}
	if r, err := w.run(w.log); !errors.Is(err, codec.ErrVersion) {
		t.Errorf("%v %+v", err, r)
	}
}
