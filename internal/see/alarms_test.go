package see

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// calm is what a process at work shows, n seconds after its start.
func calm(n float64) map[string]float64 {
	return map[string]float64{
		"hindsight_ready": 1, "hindsight_standing_by": 0, "hindsight_outcomes_missing": 0, "hindsight_at_work{role=joiner}": 1, "hindsight_at_work{role=decider}": 1,
		"hindsight_decisions_total": 100 * n, "hindsight_outcomes_total": 90 * n, "hindsight_feedback_total": 95 * n, "hindsight_feedback_total{fate=observed}": 90 * n,
		"hindsight_feedback_total{fate=withdrawn}": 0, "hindsight_rejects_total": n, "hindsight_join_ratio": .9, "hindsight_pending_rounds": 1000,
		"hindsight_head_of_line_overdue_seconds": 0, "hindsight_window_seconds": 600, "hindsight_contexts_lag_records": 20, "hindsight_feedback_lag_records": 3,
		"hindsight_joiner_lag_records": 10, "hindsight_requests_refused_total{code=503}": 5, "hindsight_append_errors_total": 1, "hindsight_fences_total": 1,
		"hindsight_restarts_total": 1, "hindsight_lease_events_total{event=lost}": 0, "hindsight_foreign_records_total": 0, "hindsight_overflow_rounds_total": 0,
		"hindsight_snapshots_total{result=failed}": 0, "hindsight_snapshot_age_seconds": 3600, "hindsight_learned_through": 95 * n, "hindsight_draw_evidence": 3,
		"hindsight_class_refuted": 0, "hindsight_late_losses_differ": 0, "hindsight_recent_excess_loss": -.2, "hindsight_recent_excess_loss_error": .03,
		"hindsight_propensity_entropy_ratio": .4, "hindsight_refused_feature_values": 7, "hindsight_refused_examples": 0, "hindsight_oracle_changes": 0,
		"hindsight_log_time_seconds": float64(begin.Unix()) + n, "hindsight_store_bytes": 3e9, "hindsight_store_limit_bytes": 4e9, "hindsight_store_free_bytes": 1e9,
	}
}

var begin = time.Date(2026, 5, 6, 7, 0, 0, 0, time.UTC)

// watched plays what a process shows, each 5 seconds until the end, and returns the alarms
// that fire then.
func watched(t *testing.T, end time.Duration, change func(at time.Duration, v map[string]float64)) (firing []string) {
	t.Helper()
	w, h := newWatchman(), &history{}
	var states []AlarmState
	for at := time.Duration(0); at <= end; at += sampleEvery {
		v := calm(at.Seconds())
		change(at, v)
		m := &moment{sample{begin.Add(at), v}, h}
		states = w.judge(m)
		h.add(m.sample)
	}
	for _, s := range states {
		if s.Firing {
			firing = append(firing, s.Name)
		}
	}
	return firing
}

// later is when something goes wrong in these histories.
const later = 12 * time.Minute

// Every alarm that a process can judge fires when it should, alone, and none otherwise.
func TestAlarms(t *testing.T) {
	if f := watched(t, 2*time.Hour, func(time.Duration, map[string]float64) {}); f != nil {
		t.Errorf("all is well, and %v fire", f)
	}
	set := func(name string, x float64) func(time.Duration, map[string]float64) {
		return func(at time.Duration, v map[string]float64) {
			if at >= later {
				v[name] = x
			}
		}
	}
	grow := func(name string, perSecond float64) func(time.Duration, map[string]float64) {
		return func(at time.Duration, v map[string]float64) { v[name] += perSecond * max(0, (at-later).Seconds()) }
	}
	scenarios := map[string]func(time.Duration, map[string]float64){
		"NotReady": set("hindsight_ready", 0), "NoOutcomes": set("hindsight_outcomes_missing", 11),
		"JoinRatioFell": set("hindsight_join_ratio", .3), "HeadOfLineStuck": set("hindsight_head_of_line_overdue_seconds", 70),
		"ContextsLag": set("hindsight_contexts_lag_records", 2000), "FeedbackLag": set("hindsight_feedback_lag_records", 2000), "JoinerLag": set("hindsight_joiner_lag_records", 20000),
		"RequestsRefused": grow("hindsight_requests_refused_total{code=503}", 1), "ManyRejects": grow("hindsight_rejects_total", 50),
		"AppendErrors": grow("hindsight_append_errors_total", .1), "OwnersFight": grow("hindsight_fences_total", .1), "Restarts": grow("hindsight_restarts_total", .1),
		"StoreFills": set("hindsight_store_bytes", 3.3e9),
		"LeaseLost":  grow("hindsight_lease_events_total{event=lost}", .01), "ForeignRecords": grow("hindsight_foreign_records_total", .01),
		"Overflow": grow("hindsight_overflow_rounds_total", 1), "ManyPending": set("hindsight_pending_rounds", 600000),
		"SnapshotsFail": grow("hindsight_snapshots_total{result=failed}", .01), "SnapshotDamaged": set("hindsight_snapshots_total{result=damaged}", 1), "SnapshotOld": set("hindsight_snapshot_age_seconds", 90000),
		"LogClockOff": func(at time.Duration, v map[string]float64) {
			v["hindsight_log_time_seconds"] += 400 * float64(at/later)
		},
		"DrawsDoNotFollowLaws": set("hindsight_draw_evidence", math.Inf(1)), "ClassRefuted": set("hindsight_class_refuted", 1), "WorseThanBaseline": set("hindsight_guard_alarm", 1),
		"LateLossesDiffer": set("hindsight_late_losses_differ", 1), "WorseThanUniform": set("hindsight_recent_excess_loss", .1),
		"NothingExplored": set("hindsight_propensity_entropy_ratio", 0), "FeaturesRefused": grow("hindsight_refused_feature_values", 1),
		"ExamplesRefused": grow("hindsight_refused_examples", 1), "WorldChanged": grow("hindsight_oracle_changes", .01),
	}
	for _, a := range Alarms() {
		if a.here == nil {
			continue
		}
		change := scenarios[a.Name]
		if change == nil {
			t.Errorf("%s has no history in which it fires", a.Name)
			continue
		}
		if f := watched(t, later+a.For+11*time.Minute, change); !slices.Equal(f, []string{a.Name}) {
			t.Errorf("%s: %v fire", a.Name, f)
		}
		if a.For > 0 {
			if f := watched(t, later, change); f != nil {
				t.Errorf("%s: %v fire at once", a.Name, f)
			}
		}
	}
}

// A disk that fills is as bad as a store at its limit, and a process without a store is well.
func TestStoreFills(t *testing.T) {
	for free, want := range map[float64][]string{3e8: {"StoreFills"}, 4e8: nil, math.NaN(): nil} {
		if f := watched(t, time.Hour, func(_ time.Duration, v map[string]float64) {
			if v["hindsight_store_free_bytes"] = free; math.IsNaN(free) {
				v["hindsight_store_bytes"], v["hindsight_store_limit_bytes"] = free, free
			}
		}); !slices.Equal(f, want) {
			t.Errorf("%v bytes free: %v fire", free, f)
		}
	}
}

// Who stands by for others is not ready, and well.
func TestAlarmsOfStandby(t *testing.T) {
	if f := watched(t, time.Hour, func(_ time.Duration, v map[string]float64) {
		v["hindsight_ready"], v["hindsight_standing_by"], v["hindsight_at_work{role=joiner}"], v["hindsight_at_work{role=decider}"] = 0, 1, 0, 0
	}); f != nil {
		t.Errorf("%v fire", f)
	}
}

// What is not there, and NaN, is no reason for an alarm; nor is a gauge that appears.
func TestAlarmsOfNothing(t *testing.T) {
	if f := watched(t, time.Hour, func(_ time.Duration, v map[string]float64) {
		maps.DeleteFunc(v, func(name string, _ float64) bool { return name != "hindsight_ready" })
	}); f != nil {
		t.Errorf("nothing is known, and %v fire", f)
	}
	if f := watched(t, time.Hour, func(at time.Duration, v map[string]float64) {
		for _, name := range []string{"hindsight_join_ratio", "hindsight_recent_excess_loss", "hindsight_recent_excess_loss_error", "hindsight_propensity_entropy_ratio"} {
			v[name] = math.NaN()
		}
		if at < 55*time.Minute {
			delete(v, "hindsight_refused_feature_values")
		}
	}); f != nil {
		t.Errorf("NaN everywhere, and %v fire", f)
	}
}

// Samples sum over labels, and rates are of the last seconds.
func TestSamples(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "C."}, []string{"a", "b"})
	g := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "H."})
	reg.MustRegister(c, g)
	c.WithLabelValues("1", "x").Add(2)
	c.WithLabelValues("1", "y").Add(3)
	c.WithLabelValues("2", "y").Add(5)
	g.Observe(7)
	s := take(reg, begin)
	want := map[string]float64{"c_total": 10, "c_total{a=1}": 5, "c_total{a=2}": 5, "c_total{b=x}": 2, "c_total{b=y}": 8, "h": 1}
	if !maps.Equal(s.values, want) {
		t.Errorf("%v", s.values)
	}
	h := &history{}
	for i := range 300 {
		h.add(sample{begin.Add(time.Duration(i) * sampleEvery), map[string]float64{"c_total": float64(50 * i)}})
	}
	m := &moment{sample{begin.Add(300 * sampleEvery), map[string]float64{"c_total": 300 * 50}}, h}
	if r := m.rate("c_total"); r != 10 {
		t.Errorf("rate %v", r)
	}
	if n, reached := m.increase("c_total", time.Minute); n != 650 || !reached {
		t.Errorf("increase %v, %v", n, reached)
	}
	if _, reached := m.increase("c_total", time.Hour); reached || len(h.samples) != int(samplesKept) {
		t.Errorf("%d samples reach an hour", len(h.samples))
	}
}
