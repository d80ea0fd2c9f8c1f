package join

import (
	"context"
	"fmt"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// History reads what a joiner has written, and what its cuts took. It writes nothing.
type History struct {
	Log        stream.Log
	Topics     Topics
	Partitions int
	Seed       uint64 // of the hashes of ids
	Epochs     Epochs
	Decision   func(e *loop.DecisionEvent, r *stream.Record) // called with each decision that is read; nil: disabled
}

// Inputs are numbered: decisions by partition, then outcomes.

// Input returns the number of an input by what a [codec.LostTail] calls its topic, -1 if that is none.
func (h *History) Input(topic string, partition int) int {
	switch {
	case partition < 0 || partition >= h.Partitions:
	case topic == lostDecisions:
		return partition
	case topic == lostOutcomes:
		return h.Partitions + partition
	}
	return -1
}

// Topic returns the topic of an input.
func (h *History) Topic(i int) string {
	if i < h.Partitions {
		return h.Topics.Decisions
	}
	return h.Topics.Outcomes
}

// Position returns where a heart reads an input next.
func (h *History) Position(heart *loop.Joiner, i int) int64 {
	decisions, outcomes := heart.Next(i % h.Partitions)
	if i < h.Partitions {
		return decisions
	}
	return outcomes
}

// Offset returns where a mark says that an input is read next.
func (h *History) Offset(m *codec.FeedbackMark, i int) int64 { return h.rangeAt(m, i).next }

// Heart returns a heart at the start of the logs.
func (h *History) Heart(limits codec.Limits) *loop.Joiner {
	return loop.NewJoiner(h.Partitions, limits, h.Seed, h.Epochs.Rules)
}

// Restore returns the heart that stood at a mark, which lies at an offset or, if it opens an era, may
// be about to: what such a mark says of rounds follows from the records that are left, and the heart
// tells it. mark, which may be nil, is told of the marks before it that a restart may go back to.
func (h *History) Restore(ctx context.Context, at int64, m *codec.FeedbackMark, opens bool,
	mark func(at int64, m *codec.FeedbackMark)) (*loop.Joiner, error) {
	if len(m.Positions) != h.Partitions {
		return nil, fmt.Errorf("a mark of %d partitions where there are %d: %w", len(m.Positions), h.Partitions,
			codec.ErrCorrupt)
	}
	if mark == nil {
		mark = func(int64, *codec.FeedbackMark) {}
	}
	p := &past{History: h, ctx: ctx, at: at, fromAt: at, mark: mark}
	var err error
	if p.from, err = h.From(ctx, m); err != nil {
		return nil, err
	}
	if p.from != m {
		p.fromAt = m.From
	}
	p.spans = h.Spans(ctx, func(i int) int64 { return h.rangeAt(p.from, i).next })
	defer p.spans.Close()
	heart := h.Heart(m.Limits)
	if err := heart.Restore(&loop.History{From: p.from, Mark: m, Opens: opens, Feedback: p.feedback(m),
		Steps: p.steps(m)}); err != nil {
		return nil, err
	}
	return heart, nil
}

// past reads the stretch of the feedback log from which a heart is restored.
type past struct {
	*History
	ctx    context.Context
	at     int64               // of the mark
	from   *codec.FeedbackMark // the older mark
	fromAt int64
	passed []loop.Step // cuts and marks between the two
	spans  *Spans
	mark   func(at int64, m *codec.FeedbackMark) // is told of each mark on the way
}

// From returns the older mark from which a heart is restored, which may be the mark itself, or the logs' beginning.
func (h *History) From(ctx context.Context, m *codec.FeedbackMark) (*codec.FeedbackMark, error) {
	switch {
	case m.From < 0 && m.FromCut < 0:
		return h.beginning(), nil
	case m.From < 0:
		return m, nil
	}
	value, err := stream.Get(ctx, h.Log, h.Topics.Feedback, 0, m.From)
	if err != nil {
		return nil, err
	}
	from, err := codec.ParseFeedbackMark(value)
	if err != nil {
		return nil, err
	}
	if loop.CutOf(&from) != m.FromCut {
		return nil, fmt.Errorf("%s[0]@%d: the mark says cut %d, and the last mark says %d: %w", h.Topics.Feedback,
			m.From, loop.CutOf(&from), m.FromCut, ErrHistory)
	}
	if len(from.Positions) != h.Partitions {
		return nil, fmt.Errorf("%s[0]@%d: a mark of %d partitions where there are %d: %w", h.Topics.Feedback, m.From,
			len(from.Positions), h.Partitions, codec.ErrCorrupt)
	}
	return &from, nil
}

// feedback reads the log from Memory to the mark. On the way it notes cuts and marks, and epochs.
func (h *past) feedback(m *codec.FeedbackMark) func(func(*codec.Feedback, error) bool) {
	return func(yield func(*codec.Feedback, error) bool) {
		from := m.Memory
		if from < 0 {
			from = stream.Earliest
		}
		var f codec.Feedback
		n := h.from.N
		err := stream.Scan(h.ctx, h.Log, h.Topics.Feedback, 0, from, h.at, func(r *stream.Record) error {
			switch r.Type {
			case "":
				if err := codec.ParseFeedback(&f, r.Value); err != nil {
					return codec.UnlessForeign(err)
				}
				if n = f.N; !yield(&f, nil) {
					return stream.ErrStop
				}
			case codec.TypeMark:
				x, err := codec.ParseFeedbackMark(r.Value)
				if err != nil {
					return codec.UnlessForeign(err)
				}
				h.mark(r.Offset, &x)
				if r.Offset > h.fromAt {
					h.passed = append(h.passed, loop.Step{N: n, Mark: &x})
				}
			case codec.TypeCut:
				if r.Offset < h.fromAt {
					return nil
				}
				x := new(codec.Cut)
				if err := codec.ParseCut(x, r.Value); err != nil {
					return codec.UnlessForeign(err)
				}
				h.passed = append(h.passed, loop.Step{N: n, Cut: x})
			case codec.TypeClass, codec.TypeEpoch:
				return h.Epochs.Read(r)
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// steps takes the cuts and marks that were noted, with the records of the cuts. What a later mark says
// is lost, its cuts have no more.
func (h *past) steps(m *codec.FeedbackMark) func(func(*loop.Step, error) bool) {
	return func(yield func(*loop.Step, error) bool) {
		h.addCutZero(m)
		for k := range h.passed {
			s := &h.passed[k]
			var err error
			if s.Cut != nil {
				s.Batches, err = h.spans.Take(s.Cut, h.limits(k+1, m))
			} else {
				err = h.spans.goBack(s.Mark)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// limits returns, by input, the offset from which marks behind a step say that records are lost.
func (h *past) limits(behind int, m *codec.FeedbackMark) map[int]int64 {
	limits := map[int]int64{}
	add := func(m *codec.FeedbackMark) {
		for _, x := range m.LostTails {
			i := h.Input(x.Topic, x.Partition)
			if at, ok := limits[i]; i >= 0 && (!ok || x.Offset < at) {
				limits[i] = x.Offset
			}
		}
	}
	add(m)
	for _, s := range h.passed[behind:] {
		if s.Mark != nil {
			add(s.Mark)
		}
	}
	return limits
}
