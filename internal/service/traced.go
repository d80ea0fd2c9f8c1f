package service

import (
	"hindsight/internal/trace"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// traced makes the spans of the rounds that a joiner releases. A nil *traced does nothing. Of rounds that an earlier
// joiner took in, it makes none.
type traced struct {
	tracer    trace.Tracer
	decisions map[tracedRound]string // the traceparents of decisions whose rounds wait
}

type tracedRound struct {
	partition int
	n         int64
}

func newTraced(t trace.Tracer) *traced {
	if t == nil {
		return nil
	}
	return &traced{t, map[tracedRound]string{}}
}

// decided notes the traceparent of a decision, if its record has one.
func (t *traced) decided(d *codec.Decision, r *stream.Record) {
	if t == nil {
		return
	}
	if parent := trace.Of(r.Headers); parent != "" {
		t.decisions[tracedRound{d.Partition, d.N}] = parent
	}
}

// released makes the span of a round.
func (t *traced) released(f *codec.Feedback) {
	if t == nil {
		return
	}
	round := tracedRound{f.Partition, f.Round}
	if decision := t.decisions[round]; decision != "" {
		t.tracer.Joined(decision, f)
		delete(t.decisions, round)
	}
}
