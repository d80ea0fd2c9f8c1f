package service

import (
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestPendingBytes holds that rounds that wait are bounded in bytes, too: the oldest closes
// before its time, as where too many wait.
func TestPendingBytes(t *testing.T) {
	r := newRig(t, func(r *rig) { r.jc.PendingBytes = 20_000; r.rules.Window.Rounds = 100 })
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
	want := loop.JoinerOptions{MaxPendingBytes: 1 << 30, MaxSpan: 4_000_000, MaxParked: 50_000, MaxParkedBytes: 64 << 20}
	if o := (&SystemConfig{}).options(); o != want {
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

// TestLongMark holds that a joiner whose marks tell of thousands of rounds ahead of one that
// waits goes on from them, and that these are of the version that older programs refuse.
func TestLongMark(t *testing.T) {
	const rounds = 4500
	r := newRig(t, func(r *rig) { r.rules.Window.Rounds, r.rules.Arrival = 2*rounds, true })
	r.contexts("0")
	for i := 0; i < rounds; i += 500 {
		var ids []string
		for k := range 500 {
			ids = append(ids, strconv.Itoa(1+i+k))
		}
		r.contexts(ids...)
		r.must(r.settle())
		r.outcomes(ids...)
		r.must(r.settle())
	}
	r.j.Close()
	var err error
	if r.j, err = OpenJoiner(t.Context(), r.jc); err != nil {
		t.Fatal(err)
	}
	if r.j.heart.Pending() > 1 || r.j.lastMark.V != 3 || len(r.j.lastMark.Positions[0].Ahead) < rounds-r.jc.MarkEvery {
		t.Errorf("a mark of version %d, with %d rounds ahead", r.j.lastMark.V, len(r.j.lastMark.Positions[0].Ahead))
	}
	r.outcomes("0")
	r.must(r.settle())
	if r.j.heart.Released(0) != rounds+1 || r.j.heart.LastN() != rounds+1 || r.j.heart.Pending() > 0 {
		t.Errorf("%d feedbacks, rounds through %d, and %d wait", r.j.heart.LastN(), r.j.heart.Released(0), r.j.heart.Pending())
	}
}
