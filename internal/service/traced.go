package service

import (
	"hindsight/internal/loop"
	"hindsight/internal/trace"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// traced makes the spans of the rounds that a joiner releases. A nil *traced does nothing.
type traced struct {
	tracer    trace.Tracer
	decisions map[codec.RoundRef]string // the traceparents of decisions whose rounds wait
}

func newTraced(t trace.Tracer) *traced {
	if t == nil {
		return nil
	}
	return &traced{t, map[codec.RoundRef]string{}}
}

// decided notes the traceparent of a decision, if its record has one.
func (t *traced) decided(e *loop.DecisionEvent, r *stream.Record) {
	if t == nil || e.D.N == 0 || e.GapTo > 0 {
		return
	}
	if parent := trace.Of(r.Headers); parent != "" {
		t.decisions[codec.RoundRef{Partition: e.D.Partition, N: e.D.N}] = parent
	}
}

// forget forgets decisions whose rounds do not wait: an earlier joiner released them.
func (t *traced) forget(heart *loop.Joiner) {
	if t == nil {
		return
	}
	waiting := map[codec.RoundRef]string{}
	for p, n := range heart.Waiting {
		if parent := t.decisions[codec.RoundRef{Partition: p, N: n}]; parent != "" {
			waiting[codec.RoundRef{Partition: p, N: n}] = parent
		}
	}
	t.decisions = waiting
}

// released makes the span of a round.
func (t *traced) released(f *codec.Feedback) {
	if t == nil {
		return
	}
	round := codec.RoundRef{Partition: f.Partition, N: f.Round}
	if decision := t.decisions[round]; decision != "" {
		t.tracer.Joined(decision, f)
		delete(t.decisions, round)
	}
}
