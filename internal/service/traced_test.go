package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/trace"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// notedTracer notes which rounds were joined, and the traceparents of their decisions.
type notedTracer struct {
	joined map[string]string // by id
	twice  int
}

func parentOf(n int64) string { return fmt.Sprintf("00-%032x-%016x-01", n, n) }

// Decided implements [trace.Tracer].
func (t *notedTracer) Decided(_ string, _ time.Time, d *codec.Decision) trace.Span {
	return notedSpan(parentOf(d.N))
}

// Outcome implements [trace.Tracer].
func (t *notedTracer) Outcome(string, time.Time, string) trace.Span { return notedSpan("") }

// Joined implements [trace.Tracer].
func (t *notedTracer) Joined(decision string, f *codec.Feedback) {
	if t.joined[f.ID] != "" {
		t.twice++
	}
	t.joined[strings.Clone(f.ID)] = decision
}

// notedSpan is a span with that traceparent.
type notedSpan string

// Parent implements [trace.Span].
func (s notedSpan) Parent() string { return string(s) }

// Stored implements [trace.Span].
func (notedSpan) Stored(error) {}

// End implements [trace.Span].
func (notedSpan) End(bool) {}

// TestTraced holds that each round that is released is told once, with the traceparent of its decision, whichever
// joiner took it in, and that a joiner remembers those of the rounds that wait, and no others.
func TestTraced(t *testing.T) {
	tracer := &notedTracer{joined: map[string]string{}}
	r := newRig(t, func(r *rig) { r.jc.Trace, r.dc.Trace = tracer, tracer })
	const rounds = 100
	for i := 1; i <= rounds; i++ {
		r.contexts(fmt.Sprint(i))
		if i%3 > 0 && i > 5 {
			r.outcomes(fmt.Sprint(i - 5))
		}
		r.must(r.settle())
		if i%20 == 0 {
			r.j.Close()
			var err error
			if r.j, err = OpenJoiner(t.Context(), r.jc); err != nil {
				t.Fatal(err)
			}
		}
		if n, waiting := len(r.j.traced.decisions), r.j.Heart().Pending(); n != waiting {
			t.Fatalf("after round %d %d decisions are remembered, %d rounds wait", i, n, waiting)
		}
	}
	for id, decision := range tracer.joined {
		var n int64
		if fmt.Sscan(strings.TrimPrefix(id, plantedText), &n); decision != parentOf(n) {
			t.Errorf("round %s is linked to %s", id, decision)
		}
	}
	if n, released := len(tracer.joined), int(r.j.Heart().LastN()); tracer.twice > 0 || n != released || n < rounds/2 {
		t.Errorf("%d of %d rounds were told, %d twice", n, released, tracer.twice)
	}
}

// TestNotTraced holds that a joiner without a tracer makes nothing of a decision's headers, and keeps nothing.
func TestNotTraced(t *testing.T) {
	j, f := &Joiner{traced: newTraced(nil)}, &codec.Feedback{Round: 1}
	d := &loop.DecisionEvent{D: codec.Decision{N: 1}}
	r := &stream.Record{Headers: []stream.Header{{Key: trace.Header, Value: parentOf(1)}}}
	if n := testing.AllocsPerRun(100, func() { j.traced.decided(d, r); j.traced.released(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
