package service

import (
	"context"
	"sync/atomic"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// informedLog counts who asks for an end; its readers say that they know one.
type informedLog struct {
	stream.Log
	known atomic.Int64
	asked atomic.Int32
}

type informedReader struct {
	stream.Reader
	log *informedLog
}

func (l *informedLog) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	return &informedReader{r, l}, err
}

func (l *informedLog) Bounds(ctx context.Context, topic string, partition int) (int64, int64, error) {
	l.asked.Add(1)
	return l.Log.Bounds(ctx, topic, partition)
}

func (r *informedReader) Known() int64 { return r.log.known.Load() }

// An input asks the log for its end unless its reader has heard of more, and also if
// what it has heard of does not come.
func TestInputAsksOnlyWhenItDoesNotKnow(t *testing.T) {
	ctx := t.Context()
	log := &informedLog{Log: mem.New(mem.Options{Clock: clock()})}
	defer log.Close()
	if err := log.Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := log.Writer(ctx, "t", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := openInput(ctx, log, "t", 0, stream.Earliest, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	in.start(ctx, func() {})
	stamp := uint64(0)
	check := func(records int, asked int32) {
		t.Helper()
		stamp++
		log.asked.Store(0)
		if err := in.check(ctx, stamp); err != nil {
			t.Fatal(err)
		}
		if got := log.asked.Load(); len(in.batch) != records || got != asked {
			t.Errorf("check %d: %d records, asked %d times, want %d and %d", stamp, len(in.batch), got, records, asked)
		}
		if empty := in.clear == stamp; empty != (records == 0) {
			t.Errorf("check %d: known to be empty: %v", stamp, empty)
		}
		in.batch = nil
	}
	write := func() {
		t.Helper()
		if _, err := w.Append(ctx, &stream.Record{Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	check(0, 1) // nothing is known, nothing is there
	write()
	check(1, 1) // the reader has not heard of it
	write()
	log.known.Store(in.next + 1)
	check(1, 0)
	log.known.Store(in.next + 1) // which the log has lost
	check(0, 1)
	log.known.Store(in.next)
	check(0, 1)
}
