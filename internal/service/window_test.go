package service

import (
	"fmt"
	"strings"
	"testing"

	"hindsight/internal/front"
	"hindsight/internal/front/testkit"
)

// TestDecisionsOfWindow holds that a decider has no more decisions on their way than its log
// takes at once, and leaves room for requests and marks.
func TestDecisionsOfWindow(t *testing.T) {
	l := &testkit.WindowedLog{T: t, Window: 64}
	r := newRig(t, func(r *rig) { l.Log, r.dc.Log, r.dc.MaxInFlight = r.log, l, DefaultMaxInFlight })
	r.must(r.settle())
	l.Hold = true
	early := 0
	for n := range 62 {
		if reply := r.request(`{"id":"q%d","actions":["a","b"]}`, n); reply != "" {
			early++
		}
	}
	if early > 0 || !strings.Contains(r.request(`{"id":"over","actions":["a","b"]}`), "overloaded") {
		t.Errorf("%d of 62 requests were refused, and one more was not", early)
	}
	l.Deliver(-1)
	r.d.gate = front.NewGate("decide", r.m, r.d.requestOf)
	defer r.d.gate.Close()
	for n := range 100 {
		r.contexts(fmt.Sprint("c", n))
	}
	for busy := true; busy; {
		var err error
		busy, err = r.d.StepContexts(t.Context(), 10)
		r.must(err)
	}
	if l.Held() != 46 {
		t.Errorf("%d decisions of contexts by topic are on their way, and not 46", l.Held())
	}
	l.Release()
	r.must(r.settle())
}
