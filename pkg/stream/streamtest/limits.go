package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"hindsight/pkg/stream"
)

// Everything is kept across a restart, and the offsets go on.
func testRestart(s *suite) {
	if s.Reopen == nil {
		s.Skip("the log does not outlive its process")
	}
	topic := s.create(2, stream.TopicOptions{})
	var want []stream.Record
	for round := range 3 {
		a, tail := s.open(topic, nil)
		if len(want) > 0 && tail.Open <= want[len(want)-1].Offset {
			s.Fatalf("round %d: open at %d after %d", round, tail.Open, want[len(want)-1].Offset)
		}
		s.fill(a, fmt.Sprint("round", round, "."), 500)
		want = s.all(topic)
		if len(want) != (round+1)*501 {
			s.Fatalf("round %d: %d records", round, len(want))
		}
		s.Log = s.Reopen(s.T)
		if _, err := a.Append(s.ctx, &stream.Record{Value: []byte("zombie")}); err == nil {
			if err := a.Flush(s.ctx); err == nil {
				s.Fatal("an appender outlived its log")
			}
		}
		got := s.all(topic)
		if len(got) != len(want) {
			s.Fatalf("round %d: %d records after the restart, %d before", round, len(got), len(want))
		}
		for i := range got {
			if got[i].Offset != want[i].Offset || got[i].Time != want[i].Time || got[i].Type != want[i].Type ||
				!bytes.Equal(got[i].Value, want[i].Value) {
				s.Fatalf("round %d: record %d changed", round, i)
			}
		}
	}
	if n, err := s.Log.Partitions(s.ctx, topic); n != 2 || err != nil {
		s.Errorf("partitions: %d, %v", n, err)
	}
}

func (s *suite) full() int64 {
	if s.MinFull > 0 {
		return s.MinFull
	}
	return 64 << 10
}

// A full log refuses, with ErrFull, and keeps what it has.
func testFull(s *suite) {
	if s.NoFull {
		s.Skip("this log cannot refuse what is over a limit")
	}
	limit := s.full()
	topic := s.create(1, stream.TopicOptions{MaxBytes: limit, RejectWhenFull: true})
	var got acks
	a, _ := s.open(topic, &got)
	sent := 0
	for ; int64(sent)*1000 < 2*limit; sent++ {
		if _, err := a.Append(s.ctx,
			&stream.Record{Value: append(fmt.Appendf(nil, "%06d", sent), make([]byte, 1000)...)}); err != nil {
			break
		}
	}
	if err := a.Flush(s.ctx); !errors.Is(err, stream.ErrFull) {
		s.Fatalf("flush after %d records of 1 kB, limit %d: %v", sent, limit, err)
	}
	offsets, errs := s.get(&got)
	if len(errs) != sent || len(offsets) == 0 || int64(len(offsets))*1000 > limit {
		s.Errorf("%d sent, %d told, %d acknowledged", sent, len(errs), len(offsets))
	}
	if _, err := a.Append(s.ctx, &stream.Record{Value: []byte("small")}); !errors.Is(err, stream.ErrFull) {
		s.Errorf("append afterwards: %v", err)
	}
	recs := s.all(topic)
	if len(recs) != len(offsets)+1 {
		s.Fatalf("%d records, %d acknowledged", len(recs), len(offsets))
	}
	for i, r := range recs[1:] {
		if string(r.Value[:6]) != fmt.Sprintf("%06d", i) || r.Offset != offsets[i] {
			s.Fatalf("record %d at %d holds %q", i, r.Offset, r.Value[:6])
		}
	}
}

// A log over its limit drops the oldest; who stands there is told.
func testDropOldest(s *suite) {
	if s.LazyRetention {
		s.Skip("this log drops later and roughly; its own tests hold what a reader is told")
	}
	limit := s.full()
	topic := s.create(1, stream.TopicOptions{MaxBytes: limit})
	var got acks
	a, tail := s.open(topic, &got)
	behind, err := s.Log.Read(s.ctx, topic, 0, tail.First)
	s.check(err)
	defer behind.Close()
	if _, err := behind.Next(s.ctx, nil); err != nil {
		s.Fatal(err)
	}
	n := int(limit/1000) * 3
	for range n {
		_, err := a.Append(s.ctx, &stream.Record{Value: make([]byte, 1000)})
		s.check(err)
	}
	s.check(a.Flush(s.ctx))
	first, next, err := s.Log.Bounds(s.ctx, topic, 0)
	s.check(err)
	offsets, _ := s.get(&got)
	if first <= tail.Open || next <= offsets[n-1] {
		s.Fatalf("bounds [%d, %d), open at %d, last at %d", first, next, tail.Open, offsets[n-1])
	}
	if _, err := s.Log.Read(s.ctx, topic, 0, tail.Open); !errors.Is(err, stream.ErrTruncated) {
		s.Errorf("read of what was dropped: %v", err)
	}
	if recs := s.all(topic); recs[0].Offset != first || int64(len(recs))*1000 > limit {
		s.Errorf("%d records from %d, first is %d", len(recs), recs[0].Offset, first)
	}
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	defer r.Close()
	if recs, err := r.Next(s.ctx, nil); err != nil || recs[0].Offset != first {
		s.Errorf("read from the earliest: %v", err)
	}
}

func testTrim(s *suite) {
	fixed := s.create(1, stream.TopicOptions{})
	if err := s.Log.Trim(s.ctx, fixed, 0, 1); !errors.Is(err, stream.ErrNotTrimmable) {
		s.Errorf("trim of a topic that is not trimmable: %v", err)
	}
	const topic = "shop.snapshots"
	s.check(s.Log.Create(s.ctx, topic, 1, stream.TopicOptions{Trimmable: true}))
	var got acks
	a, tail := s.open(topic, &got)
	s.fill(a, "x", 10)
	offsets, _ := s.get(&got)
	for _, before := range []int64{tail.First, offsets[4], offsets[2]} { // trimming back does nothing
		s.check(s.Log.Trim(s.ctx, topic, 0, before))
	}
	first, next, err := s.Log.Bounds(s.ctx, topic, 0)
	s.check(err)
	if first != offsets[4] || next <= offsets[9] {
		s.Errorf("bounds [%d, %d), want from %d", first, next, offsets[4])
	}
	if _, err := s.Log.Read(s.ctx, topic, 0, offsets[3]); !errors.Is(err, stream.ErrTruncated) {
		s.Errorf("read of what was trimmed: %v", err)
	}
	if recs := s.all(topic); len(recs) != 6 || string(recs[0].Value) != "x4" {
		s.Errorf("%d records", len(recs))
	}
	s.fill(a, "y", 2) // the owner goes on
	s.check(s.Log.Trim(s.ctx, topic, 0, next+1000))
	first, next2, err := s.Log.Bounds(s.ctx, topic, 0)
	if err != nil || first != next2 || next2 < next {
		s.Errorf("bounds after trimming all: [%d, %d), %v; next was %d", first, next2, err, next)
	}
	s.fill(a, "z", 2)
	if recs := s.all(topic); len(recs) != 2 || recs[0].Offset < next2 || string(recs[0].Value) != "z0" {
		s.Errorf("%d records after trimming all", len(recs))
	}
	b, tail := s.open(topic, nil)
	if tail.First != first {
		s.Errorf("tail %+v, first record %d", tail, first)
	}
	s.fill(b, "b", 1)
}

// A reader that stands on a record being trimmed is told, not moved, by the next record at the latest.
func testTrimUnderReader(s *suite) {
	const topic = "shop.snapshots"
	s.check(s.Log.Create(s.ctx, topic, 1, stream.TopicOptions{Trimmable: true}))
	a := s.writer(topic, nil)
	s.fill(a, "x", 10)
	_, next, err := s.Log.Bounds(s.ctx, topic, 0)
	s.check(err)
	r, err := s.Log.Read(s.ctx, topic, 0, next)
	s.check(err)
	defer r.Close()
	s.fill(a, "y", 5000) // more than a reader fetches ahead
	_, end, err := s.Log.Bounds(s.ctx, topic, 0)
	s.check(err)
	s.check(s.Log.Trim(s.ctx, topic, 0, end))
	s.fill(a, "z", 1)
	var recs []stream.Record
	for want := next; ; {
		recs, err = r.Next(s.ctx, recs[:0])
		if errors.Is(err, stream.ErrTruncated) {
			if r.Position() != want {
				s.Errorf("position %d, want %d", r.Position(), want)
			}
			return
		}
		s.check(err)
		want = recs[len(recs)-1].Offset + 1
		if want > end {
			s.Fatal("the reader went past records that it had not read")
		}
	}
}

// trimming is a log that drops records when it is asked for bounds and for readers.
type trimming struct {
	stream.Log
	drop func()
}

func (l *trimming) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	defer l.drop()
	return l.Log.Bounds(ctx, topic, partition)
}

func (l *trimming) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	defer l.drop()
	return l.Log.Read(ctx, topic, partition, from)
}

// A scan from before the first record begins with the first that is still there; one of records that were there when it
// began is told that they are gone.
func testTrimUnderScan(s *suite) {
	const topic = "shop.snapshots"
	s.check(s.Log.Create(s.ctx, topic, 1, stream.TopicOptions{Trimmable: true}))
	var got acks
	a := s.writer(topic, &got)
	s.fill(a, "x", 50)
	offsets, _ := s.get(&got)
	at := 0
	trim := func() {
		at++
		s.check(s.Log.Trim(s.ctx, topic, 0, offsets[at]))
	}
	trim()
	for _, from := range []int64{stream.Earliest, offsets[0]} {
		before, first := at, int64(-1)
		l := &trimming{Log: s.Log, drop: func() {
			if at < before+6 { // some tries fail
				trim()
			}
		}}
		s.check(stream.Scan(s.ctx, l, topic, 0, from, offsets[49]+1, func(r *stream.Record) error {
			first = r.Offset
			return stream.ErrStop
		}))
		if first < offsets[before] || first > offsets[at] || at == before {
			s.Errorf("the first record is at %d; trimmed from %d to %d", first, offsets[before], offsets[at])
		}
	}
	l := &trimming{Log: s.Log, drop: trim}
	none := func(*stream.Record) error { return nil }
	if err := stream.Scan(s.ctx, l, topic, 0, offsets[at], offsets[49]+1, none); !errors.Is(err, stream.ErrTruncated) {
		s.Errorf("a scan of records that were dropped when it had begun: %v", err)
	}
	if err := stream.Scan(s.ctx, l, topic, 0, stream.Earliest, offsets[49]+1, none); !errors.Is(err,
		stream.ErrTruncated) || at > 40 {
		s.Errorf("a scan of what is always dropped before it comes: %v, trimmed %d times", err, at)
	}
}
