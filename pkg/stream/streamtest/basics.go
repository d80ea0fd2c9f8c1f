package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hindsight/pkg/stream"
)

// Records come back in order, at the offsets that were acknowledged.
func testOrder(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	for _, fenced := range []bool{false, true} {
		var got acks
		var a stream.Appender
		if fenced {
			a, _ = s.open(topic, &got)
		} else {
			a = s.writer(topic, &got)
		}
		const n = 3000
		for i := range n {
			seq, err := a.Append(s.ctx, &stream.Record{Value: fmt.Appendf(nil, "%v %d", fenced, i)})
			s.check(err)
			if seq != uint64(i+1) {
				s.Fatalf("append %d has number %d", i+1, seq)
			}
		}
		s.check(a.Flush(s.ctx))
		s.check(a.Close())
		offsets, errs := s.get(&got)
		if len(offsets) != n || len(errs) != n {
			s.Fatalf("%d acknowledgements, %d good, want %d", len(errs), len(offsets), n)
		}
		recs := s.all(topic)
		recs = recs[len(recs)-n:]
		for i, r := range recs {
			if r.Offset != offsets[i] || string(r.Value) != fmt.Sprintf("%v %d", fenced, i) {
				s.Fatalf("record %d: offset %d, acknowledged %d, value %q", i, r.Offset, offsets[i], r.Value)
			}
		}
	}
}

// Type, key, value and headers are kept, whatever is in them.
func testContent(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	a, tail := s.open(topic, nil)
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	want := []stream.Record{
		{Value: []byte("plain")},
		{Value: nil},
		{Key: []byte("8f3a"), Value: binary},
		{Key: binary, Value: []byte("{}")},
		{Key: []byte(" key with spaces "), Value: bytes.Repeat([]byte("x"), 100_000)},
		{Type: "mark", Value: []byte("m"), Headers: []stream.Header{{Key: "a", Value: "1"},
			{Key: "b", Value: "two words: ok"}}},
	}
	for i := range want {
		_, err := a.Append(s.ctx, &want[i])
		s.check(err)
	}
	s.check(a.Flush(s.ctx))
	recs := s.all(topic)
	if len(recs) != len(want)+1 || recs[0].Type != stream.TypeOpen || recs[0].Offset != tail.Open {
		s.Fatalf("%d records, the first of type %q at %d", len(recs), recs[0].Type, recs[0].Offset)
	}
	if h := recs[0].Headers; len(h) != 1 || h[0] != (stream.Header{Key: stream.HeaderOwner, Value: "suite"}) {
		s.Errorf("headers of the open record: %v", h)
	}
	for i, w := range want {
		g := recs[i+1]
		if g.Type != w.Type || !bytes.Equal(g.Key, w.Key) || !bytes.Equal(g.Value, w.Value) ||
			fmt.Sprint(g.Headers) != fmt.Sprint(w.Headers) {
			s.Errorf("record %d: type %q key %q headers %v and %d bytes", i, g.Type, g.Key, g.Headers, len(g.Value))
		}
		if g.Time <= 0 {
			s.Errorf("record %d has time %d", i, g.Time)
		}
	}
}

func testTopics(s *suite) {
	l := s.Log
	want := func(what string, err, target error) {
		s.Helper()
		if !errors.Is(err, target) {
			s.Errorf("%s: %v, want %v", what, err, target)
		}
	}
	_, err := l.Partitions(s.ctx, "no.such")
	want("partitions", err, stream.ErrNotFound)
	_, _, err = l.Open(s.ctx, "no.such", 0, stream.OpenOptions{})
	want("open", err, stream.ErrNotFound)
	_, err = l.Writer(s.ctx, "no.such", 0, nil)
	want("writer", err, stream.ErrNotFound)
	_, err = l.Read(s.ctx, "no.such", 0, stream.Earliest)
	want("read", err, stream.ErrNotFound)
	_, _, err = l.Bounds(s.ctx, "no.such", 0)
	want("bounds", err, stream.ErrNotFound)
	var located *stream.Error
	if !errors.As(err, &located) || located.Topic != "no.such" {
		s.Errorf("error %v has no place", err)
	}

	topic := s.create(3, stream.TopicOptions{})
	if n, err := l.Partitions(s.ctx, topic); n != 3 || err != nil {
		s.Errorf("partitions: %d, %v", n, err)
	}
	want("create another", l.Create(s.ctx, "shop.one", 1, stream.TopicOptions{}), nil)
	if n, err := l.Partitions(s.ctx, "shop.one"); n != 1 || err != nil {
		s.Errorf("partitions of another: %d, %v", n, err)
	}
	want("create again", l.Create(s.ctx, topic, 3, stream.TopicOptions{MaxBytes: 1 << 20}), nil)
	want("create with others", l.Create(s.ctx, topic, 2, stream.TopicOptions{}), stream.ErrPartitions)
	if l.Create(s.ctx, "shop.none", 0, stream.TopicOptions{}) == nil {
		s.Error("a topic without partitions was made")
	}
	_, _, err = l.Bounds(s.ctx, topic, 3)
	want("partition 3 of 3", err, stream.ErrNotFound)
	a, err := l.Writer(s.ctx, topic, 2, nil)
	s.check(err)
	s.fill(a, "x", 5)
	if first, next, err := l.Bounds(s.ctx, topic, 1); first != next || err != nil {
		s.Errorf("partition 1 holds [%d, %d) after a write to 2: %v", first, next, err)
	}
}

// Several may create one topic at once.
func testCreateTogether(s *suite) {
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		wg.Go(func() { errs <- s.Log.Create(s.ctx, "shop.contexts", 3, stream.TopicOptions{}) })
	}
	wg.Wait()
	for range cap(errs) {
		s.check(<-errs)
	}
	if n, err := s.Log.Partitions(s.ctx, "shop.contexts"); n != 3 || err != nil {
		s.Errorf("partitions: %d, %v", n, err)
	}
}

func testBounds(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	first, next, err := s.Log.Bounds(s.ctx, topic, 0)
	if err != nil || first != next {
		s.Fatalf("empty partition: [%d, %d), %v", first, next, err)
	}
	var got acks
	a, tail := s.open(topic, &got)
	if tail.Open < next || tail.Next <= tail.Open || tail.First > tail.Open {
		s.Errorf("tail %+v of an empty partition with bounds [%d, %d)", tail, first, next)
	}
	s.fill(a, "x", 10)
	offsets, _ := s.get(&got)
	if offsets[0] < tail.Next {
		s.Errorf("first append at %d, tail %+v", offsets[0], tail)
	}
	first2, next2, err := s.Log.Bounds(s.ctx, topic, 0)
	if err != nil || first2 > tail.Open || next2 <= offsets[9] {
		s.Errorf("bounds [%d, %d), %v; open at %d, last at %d", first2, next2, err, tail.Open, offsets[9])
	}
}

func testPositions(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	var got acks
	a := s.writer(topic, &got)
	s.fill(a, "x", 10)
	offsets, _ := s.get(&got)
	_, next, err := s.Log.Bounds(s.ctx, topic, 0)
	s.check(err)
	if recs := s.span(topic, offsets[4], next); len(recs) != 6 || string(recs[0].Value) != "x4" {
		s.Errorf("read from the middle: %d records", len(recs))
	}
	if _, err := s.Log.Read(s.ctx, topic, 0, next+1); !errors.Is(err, stream.ErrAhead) {
		s.Errorf("read after the end: %v", err)
	}
	r, err := s.Log.Read(s.ctx, topic, 0, next)
	s.check(err)
	defer r.Close()
	if r.Position() != next {
		s.Errorf("position %d, want %d", r.Position(), next)
	}
	s.fill(a, "later", 1)
	recs, err := r.Next(s.ctx, nil)
	if err != nil || len(recs) != 1 || string(recs[0].Value) != "later0" {
		s.Errorf("read from the end: %v, %v", recs, err)
	}
}

// A waiting Next is woken by the next record.
func testNextWaits(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	a := s.writer(topic, nil)
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	defer r.Close()
	for i := range 50 {
		got := make(chan string, 1)
		go func() {
			recs, err := r.Next(s.ctx, nil)
			if err != nil || len(recs) != 1 {
				got <- fmt.Sprint(recs, err)
				return
			}
			got <- string(recs[0].Value)
		}()
		s.fill(a, fmt.Sprint("round", i, "."), 1)
		if v := <-got; v != fmt.Sprintf("round%d.0", i) {
			s.Fatalf("round %d: %s", i, v)
		}
	}
}

// Next reacts to its context at once, and reading goes on after it.
func testNextCancelled(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	defer r.Close()
	for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(s.ctx, wait)
		start := time.Now()
		_, err := r.Next(ctx, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("after %v: %v", wait, err)
		}
		if d := time.Since(start); d > wait+timeout/4 {
			s.Errorf("took %v to notice %v", d, wait)
		}
	}
	a := s.writer(topic, nil)
	s.fill(a, "x", 1)
	if recs, err := r.Next(s.ctx, nil); err != nil || len(recs) != 1 {
		s.Errorf("afterwards: %v, %v", recs, err)
	}
}

// Close wakes a waiting Next.
func testNextClosed(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	errs := make(chan error)
	go func() {
		_, err := r.Next(s.ctx, nil)
		errs <- err
	}()
	s.check(r.Close())
	if err := <-errs; !errors.Is(err, stream.ErrClosed) {
		s.Errorf("waiting Next: %v", err)
	}
	if _, err := r.Next(s.ctx, nil); !errors.Is(err, stream.ErrClosed) {
		s.Errorf("Next after Close: %v", err)
	}
	s.check(r.Close())
}

// Next returns what is there, not one record at a time, after what dst held.
func testBatches(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	const n = 5000
	s.fill(s.writer(topic, nil), "x", n)
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	defer r.Close()
	recs := []stream.Record{{Type: "mine"}}
	largest := 0
	for len(recs) < n+1 {
		before := len(recs)
		recs, err = r.Next(s.ctx, recs)
		s.check(err)
		largest = max(largest, len(recs)-before)
	}
	if recs[0].Type != "mine" {
		s.Error("dst was overwritten")
	}
	if largest < 2 {
		s.Errorf("the largest of the batches had %d records", largest)
	}
}

// Readers that follow while records are written see each once.
func testFollow(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	a := s.writer(topic, nil)
	const n = 5000
	var wg sync.WaitGroup
	errs := make(chan error, 3)
	for range cap(errs) {
		r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
		s.check(err)
		wg.Go(func() {
			defer r.Close()
			errs <- follow(s.ctx, r, n)
		})
	}
	s.fill(a, "", n)
	wg.Wait()
	for range cap(errs) {
		s.check(<-errs)
	}
}

// follow reads the values 0 … n−1.
func follow(ctx context.Context, r stream.Reader, n int) error {
	var recs []stream.Record
	for i := 0; i < n; {
		var err error
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			return err
		}
		for _, rec := range recs {
			if string(rec.Value) != fmt.Sprint(i) {
				return fmt.Errorf("record %q, want %d", rec.Value, i)
			}
			i++
		}
	}
	return nil
}

// Writers share a partition; each one's records keep their order.
func testManyWriters(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	const writers, n = 4, 500
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		a := s.writer(topic, nil)
		wg.Go(func() {
			for i := range n {
				if _, err := a.Append(s.ctx, &stream.Record{Value: []byte{byte(w), byte(i),
					byte(i >> 8)}}); err != nil {
					errs <- err
					return
				}
			}
			errs <- a.Flush(s.ctx)
		})
	}
	wg.Wait()
	for range writers {
		s.check(<-errs)
	}
	var next [writers]int
	for _, r := range s.all(topic) {
		w, i := r.Value[0], int(r.Value[1])|int(r.Value[2])<<8
		if i != next[w] {
			s.Fatalf("writer %d: record %d, want %d", w, i, next[w])
		}
		next[w]++
	}
	if next != [writers]int{n, n, n, n} {
		s.Errorf("records: %v", next)
	}
}
