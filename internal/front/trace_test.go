package front

import (
	"testing"
	"time"

	"hindsight/internal/trace"
	"hindsight/pkg/stream"
)

// TestNoTracer holds that without a tracer nothing is made of a request's headers.
func TestNoTracer(t *testing.T) {
	o, start := &Outcomes{}, time.Now()
	headers := []stream.Header{{Key: trace.Header, Value: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}
	if n := testing.AllocsPerRun(100, func() {
		if o.span(headers, start, "a") != nil {
			t.Error("a span without a tracer")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
