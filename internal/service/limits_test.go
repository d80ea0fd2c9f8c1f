package service

import (
	"strconv"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
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
	want := codec.Limits{Heart: loop.Heart, Bytes: 1 << 30}
	if l := (&SystemConfig{}).limits(); l != want {
		t.Errorf("the limits are %+v, docs/reference/limits.md has %+v", l, want)
	}
}

// TestStepBytes holds that a step does not collect the largest records by the thousand, with
// what it makes of them, before it releases any.
func TestStepBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	const rounds = 90
	var now int64
	first := int64(-1)
	r := newRig(t, func(r *rig) {
		r.rules.Window.Rounds = 1
		r.log = mem.New(mem.Options{Clock: func() int64 { now += 1e9; return now },
			OnAppend: func(topic string, _ int, rec *stream.Record) mem.Fault {
				if topic == r.topics.Feedback && rec.Type == "" && first < 0 {
					first = r.j.core.Consumed(0)
				}
				return mem.None
			}})
		createTopics(t, r.log, "m", 1)
		r.jc.Log, r.dc.Log = r.log, r.log
	})
	for range rounds {
		r.put(r.topics.Contexts, `{"actions":["a","b"],"unknown":%q}`, strings.Repeat("u", 1<<20-8<<10))
	}
	for busy := true; busy; {
		var err error
		if busy, err = r.d.StepContexts(t.Context(), rounds); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		r.must(stepJoiner(r))
	}
	if first < 0 || first > 88 {
		t.Errorf("the first feedback was stored when %d of %d decisions had been read", first, rounds)
	}
}

// TestManyAhead holds that a joiner that released thousands of rounds ahead of one that waits goes on
// from there after a restart.
func TestManyAhead(t *testing.T) {
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
	if n := r.j.Heart().Pending(); n != 1 {
		t.Errorf("%d rounds wait", n)
	}
	r.outcomes("0")
	r.must(r.settle())
	if r.j.Heart().LastN() != rounds+1 || r.j.Heart().Pending() > 0 {
		t.Errorf("%d feedbacks, and %d rounds wait", r.j.Heart().LastN(), r.j.Heart().Pending())
	}
}
