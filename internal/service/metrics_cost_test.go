package service

import (
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
)

// What is counted on the way of a decision and of a feedback.
func count(r *rig, f *codec.Feedback) {
	r.d.m.Gamma.Set(2)
	r.d.showOutstanding()
	r.m.AppendError(watch.DecisionsKind, nil)
	r.d.m.Decision(false, false, time.Now())
	r.d.m.Replica(r.d.follower.Replica())
	r.j.m.Outcomes.Inc()
	r.j.m.Release(f)
	r.m.Reject("outcomes", codec.ReasonLate)
	r.m.Refuse("decide", 503)
	r.d.dec.N++
	f.N++
	r.m.Scope().Decision(&r.d.dec)
	r.m.Scope().Feedback(f)
}

func TestMetricsDoNotAllocate(t *testing.T) {
	r := newRig(t, nil)
	r.contexts("1")
	r.must(r.settle())
	f := codec.Feedback{Fate: codec.Observed, Propensities: []float64{.5, .5}}
	if n := testing.AllocsPerRun(100, func() { count(r, &f); r.j.show(); r.d.show() }); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// The cost of counting a round beside that of deciding it.
func BenchmarkMetrics(b *testing.B) {
	r := newRig(b, nil)
	r.must(r.settle())
	raw := []byte(`{"features":{"x":1,"y":2},"actions":["a","b","c"]}`)
	const rounds = 2000
	var buf []byte
	decide := func() time.Duration {
		start := time.Now()
		for range rounds {
			r.d.heart.Decide(&r.d.dec, raw, "", loop.Source{Offset: loop.RequestSource})
			buf = codec.AppendDecision(buf[:0], &r.d.dec)
		}
		return time.Since(start)
	}
	f := codec.Feedback{Fate: codec.Observed, Propensities: []float64{.5, .5}}
	counting := func() time.Duration {
		start := time.Now()
		for range rounds {
			count(r, &f)
		}
		return time.Since(start)
	}
	floor, cost := time.Hour, time.Hour
	b.ReportAllocs()
	for b.Loop() {
		floor, cost = min(floor, decide()), min(cost, counting())
	}
	b.ReportMetric(float64(cost)/rounds, "ns/round")
	b.ReportMetric(float64(cost)/float64(floor), "of-deciding")
}
