package join

import (
	"bytes"
	"context"
	"fmt"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Spans reads again what cuts took, cut by cut.
type Spans struct {
	ctx   context.Context
	h     *History
	from  func(i int) int64 // where to begin, by input
	spans []*span           // by input; nil: not yet opened
	taker taker
}

// span reads one input.
type span struct {
	reader  stream.Reader
	end     int64           // of the partition when it was opened
	batch   []stream.Record // read, not yet taken
	buf     []stream.Record
	records []stream.Record // taken
}

// Spans returns a reader of what cuts took, from where each input is to be read.
func (h *History) Spans(ctx context.Context, from func(i int) int64) *Spans {
	s := &Spans{ctx: ctx, h: h, from: from, spans: make([]*span, 2*h.Partitions)}
	s.taker = taker{hooks: &Hooks{Foreign: func(string, int, *stream.Record, error) error { return nil },
		Decision: h.Decision}, topics: &h.Topics}
	return s
}

// Close closes its readers.
func (s *Spans) Close() {
	for _, x := range s.spans {
		if x != nil {
			x.reader.Close()
		}
	}
}

// Take returns what a cut took, of each input what lies before its limit, if it has one. The batches
// are valid until the next call.
func (s *Spans) Take(cut *codec.Cut, limits map[int]int64) ([]loop.Batch, error) {
	s.taker.batches = s.taker.batches[:0]
	for _, r := range cut.Decisions {
		records, cutOff, err := s.read(r.Partition, r.Next, limits)
		if err != nil {
			return nil, err
		}
		sum, err := s.taker.takeDecisions(r.Partition, records)
		if err != nil {
			sum = sumOf(records)
		}
		if !cutOff && (err == nil || sum != r.Sum) { // then that is why it cannot be read
			err = s.compare(cut, s.h.Topics.Decisions, &r, sum)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, r := range cut.Outcomes {
		records, cutOff, err := s.read(s.h.Partitions+r.Partition, r.Next, limits)
		if err != nil {
			return nil, err
		}
		if sum := s.taker.takeOutcomes(records); !cutOff {
			err = s.compare(cut, s.h.Topics.Outcomes, &r, sum)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.taker.batches, nil
}

func sumOf(records []stream.Record) (sum uint32) {
	for i := range records {
		r := &records[i]
		sum = codec.Sum(sum, r.Offset, r.Time, r.Type, r.Value)
	}
	return sum
}

func (s *Spans) compare(cut *codec.Cut, topic string, r *codec.Range, sum uint32) error {
	if sum == r.Sum {
		return nil
	}
	return &stream.Error{Op: "recover", Topic: topic, Partition: r.Partition, Offset: r.Next,
		Err: fmt.Errorf("%w: cut %d took other records before this offset", ErrLost, cut.Cut)}
}

// goBack has inputs read again from where the mark of an era stands.
func (s *Spans) goBack(m *codec.FeedbackMark) error {
	for _, x := range m.LostTails {
		i := s.h.Input(x.Topic, x.Partition)
		if i < 0 {
			continue
		}
		if old := s.spans[i]; old != nil {
			old.reader.Close()
		}
		var err error
		if s.spans[i], err = s.open(i, s.h.rangeAt(m, i).next); err != nil {
			return err
		}
	}
	return nil
}

// read returns the records of an input before an offset that were not yet taken, as far as they are
// there, and whether a limit cuts them off.
func (s *Spans) read(i int, next int64, limits map[int]int64) (records []stream.Record, cutOff bool, err error) {
	if at, ok := limits[i]; ok && at < next {
		next, cutOff = at, true
	}
	records, err = s.readTo(i, next)
	return records, cutOff, err
}

func (s *Spans) readTo(i int, next int64) ([]stream.Record, error) {
	if i >= len(s.spans) {
		return nil, fmt.Errorf("%w: there is no partition %d", loop.ErrCut, i%s.h.Partitions)
	}
	x := s.spans[i]
	if x == nil {
		var err error
		if x, err = s.open(i, s.from(i)); err != nil {
			return nil, err
		}
		s.spans[i] = x
	}
	x.records = x.records[:0]
	for {
		k := 0
		for k < len(x.batch) && x.batch[k].Offset < next {
			k++
		}
		x.records = append(x.records, x.batch[:k]...)
		x.batch = x.batch[k:]
		if len(x.batch) > 0 || x.reader.Position() >= min(next, x.end) {
			return x.records, nil
		}
		x.keep()
		var err error
		if x.buf, err = x.reader.Next(s.ctx, x.buf[:0]); err != nil {
			return nil, err
		}
		x.batch = x.buf
	}
}

// keep copies the bytes of the records taken, which the next read makes invalid.
func (x *span) keep() {
	for i := range x.records {
		r := &x.records[i]
		r.Value, r.Key = bytes.Clone(r.Value), bytes.Clone(r.Key)
	}
}

func (s *Spans) open(i int, from int64) (*span, error) {
	h := s.h
	topic, partition := h.Topic(i), i%h.Partitions
	first, end, err := h.Log.Bounds(s.ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	if from = max(from, first); from >= end {
		return &span{reader: nothing{}, end: end}, nil
	}
	r, err := h.Log.Read(s.ctx, topic, partition, from)
	if err != nil {
		return nil, err
	}
	return &span{reader: r, end: end}, nil
}

// nothing is a reader of a partition that has nothing.
type nothing struct{ stream.Reader }

func (nothing) Position() int64 { return 1<<63 - 1 }
func (nothing) Close() error    { return nil }
