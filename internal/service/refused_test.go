package service

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/stream"
)

// timedLog is a partition of which only reading is asked, and counted.
type timedLog struct {
	stream.Log
	first int64
	times []int64
	read  int
}

func (l *timedLog) Bounds(context.Context, string, int) (first, next int64, err error) {
	return l.first, l.first + int64(len(l.times)), nil
}

type timedReader struct {
	l  *timedLog
	at int64
}

func (l *timedLog) Read(_ context.Context, _ string, _ int, from int64) (stream.Reader, error) {
	return &timedReader{l, from}, nil
}

func (r *timedReader) Next(_ context.Context, records []stream.Record) ([]stream.Record, error) {
	k := r.at - r.l.first
	if k < 0 || k >= int64(len(r.l.times)) {
		return nil, errors.New("read outside of the log")
	}
	r.l.read++
	r.at++
	return append(records, stream.Record{Offset: r.at - 1, Time: r.l.times[k]}), nil
}

func (r *timedReader) Position() int64 { return r.at }

func (r *timedReader) Close() error { return nil }

// TestStartBefore holds that no record of the time or later is before the start, that few
// after it are earlier, and that little is read to find it.
func TestStartBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &timedLog{first: rapid.Int64Range(0, 5).Draw(t, "first")}
		now := int64(0)
		for range rapid.IntRange(0, 60_000).Draw(t, "records") {
			now += int64(len(l.times)) % 3
			l.times = append(l.times, now)
		}
		at := rapid.Int64Range(0, now+2).Draw(t, "at")
		end := l.first + int64(len(l.times))
		from, err := startBefore(t.Context(), l, "rejects", l.first, end, at)
		if err != nil {
			t.Fatal(err)
		}
		if from < l.first || from > end {
			t.Fatalf("%d of [%d, %d)", from, l.first, end)
		}
		for _, x := range l.times[:from-l.first] {
			if x >= at {
				t.Fatalf("a record of %d is before the start at %d, which is for %d", x, from, at)
			}
		}
		wasted := 0
		for _, x := range l.times[from-l.first:] {
			if x < at {
				wasted++
			}
		}
		if wasted > 1024 || l.read > 40 {
			t.Errorf("%d records before %d are read, and %d to find where it begins", wasted, at, l.read)
		}
	})
}
