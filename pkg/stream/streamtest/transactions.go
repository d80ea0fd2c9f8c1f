package streamtest

import (
	"context"
	"strings"

	"hindsight/pkg/stream"
)

// Of other clients' transactions those are read that were committed, in the order of the log: what
// lies behind one that is open is read when it has ended. Who reads to an end that Bounds told
// comes there also where nothing but an aborted one lies before it.
func testTransactions(s *suite) {
	if s.Begin == nil {
		s.Skip("this log has no transactions")
	}
	topic := s.create(1, stream.TopicOptions{})
	a := s.writer(topic, nil)
	read := func(r stream.Reader) <-chan string {
		_, end, err := s.Log.Bounds(s.ctx, topic, 0)
		s.check(err)
		got := make(chan string, 1)
		go func() { got <- valuesTo(s.ctx, r, end) }()
		return got
	}
	r, err := s.Log.Read(s.ctx, topic, 0, stream.Earliest)
	s.check(err)
	defer r.Close()
	s.fill(a, "a", 1)
	s.Begin(s.T, topic, "committed", 2)(true)
	aborted := s.Begin(s.T, topic, "aborted", 2)
	s.fill(a, "b", 1)
	aborted(false)
	s.fill(a, "c", 1)
	open := s.Begin(s.T, topic, "open", 1)
	s.fill(a, "d", 1)
	got := read(r)
	open(false)
	if v := <-got; v != "a0 committed0 committed1 b0 c0 d0" {
		s.Errorf("read %s", v)
	}
	open = s.Begin(s.T, topic, "alone", 1)
	got = read(r)
	open(false)
	if v := <-got; v != "" {
		s.Errorf("read %s of a transaction that was aborted", v)
	}
	s.fill(a, "e", 1)
	if v := <-read(r); v != "e0" {
		s.Errorf("afterwards %s", v)
	}
}

// valuesTo reads to an end that Bounds told.
func valuesTo(ctx context.Context, r stream.Reader, end int64) string {
	var values []string
	for r.Position() < end {
		recs, err := r.Next(ctx, nil)
		if err != nil {
			return err.Error()
		}
		for i := range recs {
			values = append(values, string(recs[i].Value))
		}
	}
	return strings.Join(values, " ")
}
