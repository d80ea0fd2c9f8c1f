package streamtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hindsight/pkg/stream"
)

// The bytes of a record are the caller's again when Append returns.
func testBytesAreFree(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	a := s.writer(topic, nil)
	value, key := make([]byte, 8), make([]byte, 8)
	const n = 500
	for i := range n {
		copy(value, fmt.Sprintf("%08d", i))
		copy(key, fmt.Sprintf("%08d", -i))
		_, err := a.Append(s.ctx, &stream.Record{Key: key, Value: value})
		s.check(err)
	}
	s.check(a.Flush(s.ctx))
	recs := s.all(topic)
	for i, r := range recs {
		if string(r.Value) != fmt.Sprintf("%08d", i) || string(r.Key) != fmt.Sprintf("%08d", -i) {
			s.Fatalf("record %d holds %q under %q", i, r.Value, r.Key)
		}
	}
	if len(recs) != n {
		s.Errorf("%d records", len(recs))
	}
}

// A cancelled context fails that Append and nothing else.
func testCancelledAppend(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	var got acks
	a, _ := s.open(topic, &got)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := a.Append(ctx, &stream.Record{Value: []byte("no")}); !errors.Is(err, context.Canceled) {
		s.Errorf("append: %v", err)
	}
	s.fill(a, "yes", 2)
	if offsets, errs := s.get(&got); len(offsets) != 2 || len(errs) != 2 {
		s.Errorf("acknowledgements: %v", errs)
	}
	if recs := s.all(topic); len(recs) != 3 {
		s.Errorf("%d records", len(recs))
	}
}

// A record over the limit is refused; the appender lives on.
func testTooLarge(s *suite) {
	if s.TooLarge == 0 {
		s.Skip("no limit known")
	}
	topic := s.create(1, stream.TopicOptions{})
	a, _ := s.open(topic, nil)
	s.fill(a, "before", 2)
	large := &stream.Record{Value: make([]byte, s.Harness.TooLarge)}
	if _, err := a.Append(s.ctx, large); !errors.Is(err, stream.ErrTooLarge) {
		s.Errorf("append: %v", err)
	}
	s.fill(a, "after", 2)
	if recs := s.all(topic); len(recs) != 5 {
		s.Errorf("%d records", len(recs))
	}
	if _, _, err := s.Log.Open(s.ctx, topic, 0, stream.OpenOptions{Value: large.Value}); !errors.Is(err,
		stream.ErrTooLarge) {
		s.Errorf("open: %v", err)
	}
}

// What a log cannot keep as it is, it refuses; the appender lives on.
func testBadHeaders(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	a, _ := s.open(topic, nil)
	stored := 0
	for _, r := range []stream.Record{
		{Type: "two\r\nlines"},
		{Headers: []stream.Header{{Key: "a:b", Value: "1"}}},
		{Headers: []stream.Header{{Key: "", Value: "1"}}},
		{Headers: []stream.Header{{Key: "a", Value: "1\r\nb: 2"}}},
		{Headers: []stream.Header{{Key: "a", Value: " space "}}},
		{Headers: []stream.Header{{Key: "a b", Value: "1"}}},
		{Headers: []stream.Header{{Key: "a", Value: strings.Repeat("x", 1<<16)}}},
	} {
		switch _, err := a.Append(s.ctx, &r); {
		case err == nil:
			stored++
		case !errors.Is(err, stream.ErrUnfit) && !errors.Is(err, stream.ErrTooLarge):
			s.Errorf("append: %v", err)
		}
	}
	s.fill(a, "after", 1)
	recs := s.all(topic)
	if len(recs) != stored+2 {
		s.Errorf("%d records, %d were accepted", len(recs), stored+2)
	}
	for _, r := range recs {
		for _, h := range r.Headers {
			if h.Key == "b" {
				s.Error("a header was smuggled in")
			}
		}
	}
}

// After Close nothing is appended and nobody is told.
func testAppenderClosed(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	var got acks
	a, _ := s.open(topic, &got)
	for i := range 200 {
		_, err := a.Append(s.ctx, &stream.Record{Value: fmt.Append(nil, i)})
		s.check(err)
	}
	s.check(a.Close())
	_, told := s.get(&got)
	if _, err := a.Append(s.ctx, &stream.Record{}); !errors.Is(err, stream.ErrClosed) {
		s.Errorf("append: %v", err)
	}
	if err := a.Flush(s.ctx); !errors.Is(err, stream.ErrClosed) {
		s.Errorf("flush: %v", err)
	}
	b, _ := s.open(topic, nil) // by its acknowledgement those of a have come as well
	s.fill(b, "b", 1)
	if _, errs := s.get(&got); len(errs) != len(told) {
		s.Errorf("%d acknowledgements after Close", len(errs)-len(told))
	}
	s.check(a.Close())
}

// After Log.Close everything fails with ErrClosed, what waits included.
func testLogClosed(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	a, _ := s.open(topic, nil)
	w := s.writer(topic, nil)
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	_, err = r.Next(s.ctx, nil)
	s.check(err)
	errs := make(chan error)
	go func() {
		_, err := r.Next(s.ctx, nil)
		errs <- err
	}()
	s.check(s.Log.Close())
	want := func(what string, err error) {
		s.Helper()
		if !errors.Is(err, stream.ErrClosed) {
			s.Errorf("%s: %v", what, err)
		}
	}
	want("waiting next", <-errs)
	for _, a := range []stream.Appender{a, w} {
		_, err = a.Append(s.ctx, &stream.Record{})
		want("append", err)
		s.check(a.Close())
	}
	_, err = s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	want("read", err)
	_, _, err = s.Log.Open(s.ctx, topic, 0, stream.OpenOptions{})
	want("open", err)
	_, err = s.Log.Writer(s.ctx, topic, 0, nil)
	want("writer", err)
	_, _, err = s.Log.Bounds(s.ctx, topic, 0)
	want("bounds", err)
	want("create", s.Log.Create(s.ctx, "other", 1, stream.TopicOptions{}))
	s.check(s.Log.Close())
}

// Records whose acknowledgement was lost are stored once or not at all, and none
// after them; what was acknowledged is there.
func testLostAcks(s *suite) {
	if s.LoseAcks == nil {
		s.Skip("acknowledgements cannot be lost here")
	}
	topic := s.create(1, stream.TopicOptions{})
	var got acks
	a, _ := s.open(topic, &got)
	s.fill(a, "", 20)
	s.LoseAcks(s.T)
	sent := 20
	for ; sent < 40; sent++ {
		if _, err := a.Append(s.ctx, &stream.Record{Value: fmt.Append(nil, sent)}); err != nil {
			break
		}
	}
	if err := a.Flush(s.ctx); !stream.IsRetryable(err) {
		s.Fatalf("flush: %v", err)
	}
	if _, err := a.Append(s.ctx, &stream.Record{}); err == nil {
		s.Error("the appender lives on")
	}
	_, errs := s.get(&got)
	if len(errs) != sent {
		s.Errorf("%d acknowledgements for %d appends", len(errs), sent)
	}
	for i, err := range errs {
		if i >= 20 && !errors.Is(err, stream.ErrUnknown) {
			s.Errorf("append %d: %v", i, err)
		}
	}
	b, tail := s.openPatiently(topic)
	s.fill(b, "b", 1)
	recs := s.span(topic, tail.First, tail.Next)
	stored := recs[1 : len(recs)-1] // between the open records
	if len(stored) < 20 || len(stored) > sent {
		s.Fatalf("%d records stored, 20 acknowledged, %d sent", len(stored), sent)
	}
	for i, r := range stored {
		if string(r.Value) != fmt.Sprint(i) {
			s.Fatalf("record %d holds %q", i, r.Value)
		}
	}
}

// openPatiently opens, again while the log is away.
func (s *suite) openPatiently(topic string) (stream.Appender, stream.Tail) {
	s.Helper()
	for {
		a, tail, err := s.Log.Open(s.ctx, topic, 0, stream.OpenOptions{})
		if err == nil {
			return a, tail
		}
		if !stream.IsRetryable(err) || s.ctx.Err() != nil {
			s.Fatal(err)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-s.ctx.Done():
		}
	}
}
