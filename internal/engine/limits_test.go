package engine_test

import (
	"testing"
	"time"

	"hindsight/internal/service"
)

// TestClientRate lets one client ask for more than it may, while another asks for less:
// the one is refused beyond its rate, the other is not.
func TestClientRate(t *testing.T) {
	const rate = 50
	s := startWith(t, open(t, t.TempDir()), benchSource(t, "100 rounds"),
		func(c *service.SystemConfig) { c.ClientRate = rate })
	defer s.stop()
	greedy, modest := newFlood(t, s.URL, s.name), newFlood(t, s.URL, s.name)
	greedy.next, modest.next = 0, 1_000_000 // different contexts
	began := time.Now()
	for range 3 * rate {
		greedy.send(t)
	}
	greedy.settle()
	took := time.Since(began)
	for range rate {
		modest.send(t)
	}
	modest.settle()
	limited, refused := len(greedy.took), greedy.other["429"]
	if most := rate + int(rate*took.Seconds()) + 1; limited < rate || limited > most || limited+refused != 3*rate {
		t.Errorf("a client that may ask %d times a second: %d decided, %d refused in %v", rate, limited, refused, took)
	}
	if n := len(modest.took); n != rate {
		t.Errorf("another client that keeps its rate: %d of %d decided, %v", n, rate, modest.other)
	}
}
