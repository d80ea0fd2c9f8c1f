package verify

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

var errFailing = errors.New("the log fails")

// failingLog fails once, in the n-th call.
type failingLog struct {
	stream.Log
	mu    sync.Mutex
	calls int
	n     int // 0: never
	open  int // readers
}

func (l *failingLog) fail() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; l.calls == l.n {
		return errFailing
	}
	return nil
}

func (l *failingLog) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	if err := l.fail(); err != nil {
		return 0, 0, err
	}
	return l.Log.Bounds(ctx, topic, partition)
}

func (l *failingLog) Partitions(ctx context.Context, topic string) (int, error) {
	if err := l.fail(); err != nil {
		return 0, err
	}
	return l.Log.Partitions(ctx, topic)
}

func (l *failingLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	if err := l.fail(); err != nil {
		return nil, err
	}
	r, err := l.Log.Read(ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	l.count(1)
	return &failingReader{Reader: r, log: l}, nil
}

func (l *failingLog) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
}

type failingReader struct {
	stream.Reader
	log    *failingLog
	closed bool
}

func (r *failingReader) Close() error {
	if !r.closed {
		r.log.count(-1)
	}
	r.closed = true
	return r.Reader.Close()
}

func (r *failingReader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	if err := r.log.fail(); err != nil {
		return dst, err
	}
	return r.Reader.Next(ctx, dst)
}

// TestVerifyFailingLog holds that a log that fails once, in whichever call, ends the verification with its
// error, or changes nothing of the report: of a log that is whole, and where recomputing begins at a snapshot
// or at an epoch. All readers are closed then.
func TestVerifyFailingLog(t *testing.T) {
	if testing.Short() {
		t.Skip("one call after the other fails")
	}
	whole := liveWorld(t, 2, 1, 20)
	bySnapshot, _ := cutWorld(t)
	byEpoch, _ := cutWorld(t)
	byEpoch.no(byEpoch.log.Truncate(byEpoch.ts.Snapshots, 0, 1<<40))
	byEpoch.drop(byEpoch.ts.Contexts, 0, len(byEpoch.records(byEpoch.ts.Contexts, 0))/2) // rejects tell of those
	for start, w := range map[string]*world{"the beginning": whole, "the snapshot": bySnapshot, "epoch": byEpoch} {
		run := func(log stream.Log) (*Report, error) {
			r, err := Run(w.ctx, Config{Log: log, Name: worldName, Seed: worldSeed(), Build: model.Epoch,
				Dedup: worldDedup})
			if r != nil {
				r.Seconds, r.PerSecond = 0, 0
			}
			return r, err
		}
		log := &failingLog{Log: w.log}
		whole, err := run(log)
		if err != nil || !strings.HasPrefix(whole.Start, start) || w == byEpoch && whole.Rejects.TooOld == 0 {
			t.Fatal(whole, err)
		}
		calls := log.calls
		for n := 1; n <= calls; n++ {
			log := &failingLog{Log: w.log, n: n}
			r, err := run(log)
			if log.open != 0 {
				t.Fatalf("from %s: the log failed in call %d of %d: %d readers are open", start, n, calls, log.open)
			}
			if err == nil && r.Marks.TooOld == whole.Marks.TooOld+1 && r.Marks.TooOld > 1 {
				continue // where a mark cannot be restored and the log has lost its beginning, the next one is tried
			}
			if !errors.Is(err, errFailing) && !reflect.DeepEqual(r, whole) {
				t.Errorf("from %s: the log failed in call %d of %d: %v, %+v", start, n, calls, err, r)
			}
		}
		t.Logf("from %s: %d calls", start, calls)
	}
}

// startingAtOne is a log whose partitions begin at offset 1, as those of NATS do, and have lost nothing.
type startingAtOne struct{ stream.Log }

func (l startingAtOne) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Bounds(ctx, topic, partition)
	return max(first, 1), next, err
}

// TestVerifyFirstMark holds that a first mark which refers to what is not there is a difference, in logs that
// begin at 0 or 1: they have lost nothing to retention.
func TestVerifyFirstMark(t *testing.T) {
	w := liveWorld(t, 1, 1, 20)
	for _, r := range w.records(w.ts.Feedback, 0) {
		if r.Type != codec.TypeMark {
			continue
		}
		m, err := codec.ParseFeedbackMark(r.Value)
		w.no(err)
		m.From, m.FromCut = r.Offset+1, 1
		defer w.edit(w.ts.Feedback, 0, r.Offset, func(r *stream.Record) {
			r.Value = codec.AppendFeedbackMark(nil, &m)
		})()
		break
	}
	for name, log := range map[string]stream.Log{"from 0 on": w.log, "from 1 on": startingAtOne{w.log}} {
		if r, err := w.run(log); err != nil || r.First == nil || !strings.HasPrefix(r.First.Field, "from") {
			t.Errorf("%s: %v %s", name, err, r.text())
		}
	}
}
