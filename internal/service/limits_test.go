package service

import (
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestPendingBytes holds that rounds that wait are bounded in bytes, too: the oldest closes
// before its time, as where too many wait.
func TestPendingBytes(t *testing.T) {
	r := newRig(t, func(r *rig) { r.jc.MaxBytes = 20_000; r.rules.Window.Rounds = 100 })
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		r.put(r.topics.Contexts, `{"id":%q,"actions":["a","b"],"unknown":%q}`, id, strings.Repeat("u", 4000))
	}
	r.must(r.settle())
	r.look()
	r.expect(map[string]float64{
		`hindsight_overflow_rounds_total`:                2,
		`hindsight_pending_rounds`:                       4,
		`hindsight_feedback_total{fate="skipped"}`:       2,
		`hindsight_joiner_lag_records{topic="outcomes"}`: 0,
	})
	want := loop.JoinerOptions{MaxPendingBytes: 512 << 20, MaxSpan: 4_000_000, MaxParked: 50_000, MaxParkedBytes: 64 << 20}
	if o := (&JoinerConfig{}).options(); o != want {
		t.Errorf("the limits are %+v, LIMITS.md has %+v", o, want)
	}
}

// TestStepBytes holds that a step does not collect the largest records by the thousand, with
// what it makes of them, before it releases any.
func TestStepBytes(t *testing.T) {
	const rounds = 25
	r := newRig(t, func(r *rig) { r.rules.Window.Rounds = 1 })
	for range rounds {
		r.put(r.topics.Contexts, `{"actions":["a","b"],"unknown":%q}`, strings.Repeat("u", 1<<20-8<<10))
	}
	for busy := true; busy; {
		var err error
		if busy, err = r.d.StepContexts(t.Context(), rounds); err != nil {
			t.Fatal(err)
		}
	}
	first := int64(-1)
	r.fault = func(topic string, rec *stream.Record) mem.Fault {
		if topic == r.topics.Feedback && rec.Type == "" && first < 0 {
			first = r.j.inputs[0].consumed()
		}
		return mem.None
	}
	r.must(stepJoiner(r))
	if first < 0 || first > stepBytes>>20+4 {
		t.Errorf("the first feedback was stored when %d of %d decisions had been read", first, rounds)
	}
}
