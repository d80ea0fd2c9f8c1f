package service

import "testing"

// TestDecisionsEndKnown holds that a process knows where a partition of decisions ends while its decider is open
// and nothing of that is on its way, and not where processes share the work.
func TestDecisionsEndKnown(t *testing.T) {
	c := &SystemConfig{written: make([]wrote, 1)}
	r := newRig(t, func(r *rig) { r.jc.Seed, r.dc.wrote = r.dc.Seed, &c.written[0] })
	want := func(when string, known bool) {
		t.Helper()
		_, end, err := r.log.Bounds(t.Context(), r.topics.Decisions, 0)
		r.must(err)
		if got, ok := c.decisionsEnd(0); ok != known || ok && got != end {
			t.Errorf("%s: the end is known: %v, %d; it is %d", when, ok, got, end)
		}
	}
	want("opened", true)
	r.contexts("a", "b")
	r.must(r.settle())
	want("stored", true)
	c.Sharing = leased{}
	want("shared", false)
	c.Sharing = nil
	r.d.flight.add(ticket{})
	r.d.flight.add(ticket{})
	want("on their way", false)
	_, end, err := r.log.Bounds(t.Context(), r.topics.Decisions, 0)
	r.must(err)
	r.d.flight.ack(0, end, nil)
	want("one on its way", false)
	r.d.flight.ack(0, end+1, nil)
	if got, ok := c.decisionsEnd(0); !ok || got != end+2 {
		t.Errorf("all acknowledged, the last at %d: the end is known: %v, %d", end+1, ok, got)
	}
	r.d.Close()
	want("closed", false)
}
