package service

import (
	"testing"

	"hindsight/internal/trace"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestNotTraced holds that a joiner without a tracer makes nothing of a decision's headers, and keeps nothing.
func TestNotTraced(t *testing.T) {
	j, f := &Joiner{traced: newTraced(nil)}, &codec.Feedback{Round: 1}
	d, r := &codec.Decision{N: 1}, &stream.Record{Headers: []stream.Header{{Key: trace.Header,
		Value: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}
	if n := testing.AllocsPerRun(100, func() { j.traced.decided(d, r); j.traced.released(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
