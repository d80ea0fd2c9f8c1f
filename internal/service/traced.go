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
func (t *traced) decided(e *loop.DecisionEvent, r *stream.Record) {
	if t == nil || e.D.N == 0 || e.GapTo > 0 {
		return
	}
	if parent := trace.Of(r.Headers); parent != "" {
		t.decisions[tracedRound{e.D.Partition, e.D.N}] = parent
	}
}

// forget forgets decisions whose rounds do not wait: an earlier joiner released them.
func (t *traced) forget(heart *loop.Joiner) {
	if t == nil {
		return
	}
	waiting := map[tracedRound]string{}
	for p, n := range heart.Waiting {
		if parent := t.decisions[tracedRound{p, n}]; parent != "" {
			waiting[tracedRound{p, n}] = parent
		}
	}
	t.decisions = waiting
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
