package streamtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hindsight/pkg/stream"
)

// From the acknowledgement of a new owner's open record nothing of an earlier one is stored.
func testFence(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	var got acks
	old, _ := s.open(topic, &got)
	s.fill(old, "old", 3)
	owner, tail := s.open(topic, nil)
	if recs := s.span(topic, tail.First, tail.Next); len(recs) != 5 || recs[4].Type != stream.TypeOpen ||
		recs[4].Offset != tail.Open {
		s.Errorf("tail %+v with %d records", tail, len(recs))
	}
	if _, err := old.Append(s.ctx, &stream.Record{Value: []byte("zombie")}); err == nil {
		if err := old.Flush(s.ctx); !errors.Is(err, stream.ErrFenced) {
			s.Errorf("flush of the old owner: %v", err)
		}
	}
	if _, err := old.Append(s.ctx, &stream.Record{Value: []byte("zombie")}); !errors.Is(err, stream.ErrFenced) {
		s.Errorf("append of the old owner: %v", err)
	}
	s.fill(owner, "new", 3)
	if offsets, errs := s.get(&got); len(offsets) != 3 || len(errs) != 4 || !errors.Is(errs[3], stream.ErrFenced) {
		s.Errorf("the old owner was told %v", errs)
	}
	values := ""
	for _, r := range s.all(topic) {
		values += " " + r.Type + string(r.Value)
	}
	if values != " open old0 old1 old2 open new0 new1 new2" {
		s.Errorf("log:%s", values)
	}
}

// The new owner opens while the old one has many records on their way: a prefix of them is stored before the open
// record, and the rest never, whatever the new owner appends.
func testFencePipelined(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	for round := range 5 {
		var got acks
		old, before := s.open(topic, &got)
		stop := make(chan struct{})
		sent := make(chan int)
		go func() { sent <- appendUntilError(s.ctx, old, stop) }()
		for { // until the old owner is at full speed
			if offsets, _ := s.get(&got); len(offsets) > 100*round {
				break
			}
		}
		owner, tail := s.open(topic, nil)
		s.fill(owner, "new", 300)
		close(stop)
		n := <-sent
		_ = old.Flush(s.ctx)
		offsets, errs := s.get(&got)
		if len(errs) != n {
			s.Fatalf("round %d: %d appends, %d told", round, n, len(errs))
		}
		for i := len(offsets); i < n; i++ {
			if !errors.Is(errs[i], stream.ErrFenced) {
				s.Fatalf("round %d: append %d: %v", round, i, errs[i])
			}
		}
		_, next, err := s.Log.Bounds(s.ctx, topic, 0)
		s.check(err)
		recs := s.span(topic, before.Open, next)
		if len(recs) != 1+len(offsets)+1+300 {
			s.Fatalf("round %d: %d records, the old owner has %d acknowledged", round, len(recs), len(offsets))
		}
		for i, r := range recs {
			want := fmt.Sprintf("old%d", i-1)
			switch {
			case i == 0 || r.Offset == tail.Open:
				want = ""
			case r.Offset > tail.Open:
				want = fmt.Sprintf("new%d", i-2-len(offsets))
			}
			if string(r.Value) != want {
				s.Fatalf("round %d: record %d at %d holds %q, want %q; tail %+v", round, i, r.Offset, r.Value,
					want, tail)
			}
		}
		s.check(old.Close())
		s.check(owner.Close())
	}
}

// appendUntilError appends old0, old1, … and returns how many were accepted.
func appendUntilError(ctx context.Context, a stream.Appender, stop <-chan struct{}) int {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return i
		default:
		}
		if _, err := a.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, "old%d", i)}); err != nil {
			return i
		}
	}
}

// Of several that open at once under the same name exactly one can append.
func testOpenersTogether(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	const openers = 6
	for round := range 5 {
		type opened struct {
			a    stream.Appender
			tail stream.Tail
			err  error
		}
		ch := make(chan opened, openers)
		var start sync.WaitGroup
		start.Add(openers)
		for range openers {
			go func() {
				start.Done()
				start.Wait()
				a, tail, err := s.Log.Open(s.ctx, topic, 0, stream.OpenOptions{Owner: "same"})
				ch <- opened{a, tail, err}
			}()
		}
		var all []opened
		last := int64(-1)
		for range openers {
			o := <-ch
			s.check(o.err)
			all = append(all, o)
			last = max(last, o.tail.Open)
		}
		for _, o := range all {
			_, err := o.a.Append(s.ctx, &stream.Record{Value: []byte("mine")})
			s.check(err)
			err = o.a.Flush(s.ctx)
			if o.tail.Open == last && err != nil {
				s.Errorf("round %d: the last opener: %v", round, err)
			}
			if o.tail.Open != last && !errors.Is(err, stream.ErrFenced) {
				s.Errorf("round %d: an earlier opener: %v", round, err)
			}
			s.check(o.a.Close())
		}
	}
	mine := 0
	for _, r := range s.all(topic) {
		if string(r.Value) == "mine" {
			mine++
		}
	}
	if mine != 5 {
		s.Errorf("%d records of owners, want 5", mine)
	}
}

// An owner that never stops writing cannot keep the next one out.
func testOpenAgainstBusyOwner(s *suite) {
	topic := s.create(1, stream.TopicOptions{})
	for range 10 {
		old, _ := s.open(topic, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			appendUntilError(s.ctx, old, nil)
		}()
		a, _ := s.open(topic, nil)
		<-done
		s.fill(a, "x", 1)
		s.check(old.Close())
		s.check(a.Close())
	}
}

// A record written past the owner may cost it the partition, but never leads to a record of its being lost in silence.
func testWriterBreaksNothing(s *suite) {
	if s.ForeignHoles {
		s.Skip("this log does not promise that")
	}
	topic := s.create(1, stream.TopicOptions{})
	var got acks
	a, _ := s.open(topic, &got)
	w := s.writer(topic, nil)
	s.fill(a, "a", 2)
	s.fill(w, "w", 1)
	sent := 2
	for ; sent < 10; sent++ {
		if _, err := a.Append(s.ctx, &stream.Record{Value: fmt.Appendf(nil, "a%d", sent)}); err != nil {
			break
		}
	}
	_ = a.Flush(s.ctx)
	offsets, errs := s.get(&got)
	if len(errs) != sent {
		s.Errorf("%d of %d told", len(errs), sent)
	}
	if recs := s.all(topic); len(recs) != len(offsets)+2 {
		s.Errorf("%d records, %d acknowledged", len(recs), len(offsets))
	}
}
