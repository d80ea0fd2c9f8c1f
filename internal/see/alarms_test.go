package see

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// calm is what a process at work shows, n seconds after its start.
func calm(n float64) map[string]float64 {
	return map[string]float64{
		"hindsight_ready": 1, "hindsight_standing_by": 0, "hindsight_outcomes_missing": 0,
		"hindsight_at_work{role=joiner}": 1, "hindsight_at_work{role=decider}": 1,
		"hindsight_decisions_total": 100 * n, "hindsight_outcomes_total": 90 * n,
		"hindsight_feedback_total{fate=observed}":  90 * n,
		"hindsight_feedback_total{fate=withdrawn}": 0, "hindsight_rejects_total": n, "hindsight_join_ratio": .9,
		"hindsight_pending_rounds":               1000,
		"hindsight_head_of_line_overdue_seconds": 0, "hindsight_window_seconds": 600,
		"hindsight_contexts_lag_records": 20,
		"hindsight_feedback_lag_records": 3,
		"hindsight_joiner_lag_records":   10, "hindsight_requests_refused_total{code=503}": 5,
		"hindsight_append_errors_total": 1, "hindsight_fences_total": 1,
		"hindsight_restarts_total": 1, "hindsight_lease_events_total{event=lost}": 0,
		"hindsight_foreign_records_total":          0,
		"hindsight_overflow_rounds_total":          0,
		"hindsight_snapshots_total{result=failed}": 0, "hindsight_snapshot_age_seconds": 3600,
		"hindsight_learned_through": 95 * n, "hindsight_draw_evidence": 3,
		"hindsight_class_refuted": 0, "hindsight_late_losses_differ": 0, "hindsight_recent_excess_loss": -.2,
		"hindsight_recent_excess_loss_error": .03,
		"hindsight_propensity_entropy_ratio": .4, "hindsight_refused_feature_values": 7,
		"hindsight_refused_examples": 0,
		"hindsight_oracle_changes":   0,
		"hindsight_log_time_seconds": float64(begin.Unix()) + n, "hindsight_store_bytes": 3e9,
		"hindsight_store_limit_bytes": 4e9, "hindsight_store_free_bytes": 1e9,
	}
}

// shown returns what samples have for numbers by name and label.
func shown(v map[string]float64) map[string]vector {
	out := map[string]vector{}
	for name, x := range v {
		name, label, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if out[name] == nil {
			out[name] = vector{}
		}
		if label != "" {
			label = strings.Replace(label, "=", `="`, 1) + `"`
		}
		out[name][label] = x
	}
	return out
}

var begin = time.Date(2026, 5, 6, 7, 0, 0, 0, time.UTC)

// watched plays what a process shows, each 5 seconds until the end, and returns the alarms
// that fire then.
func watched(t *testing.T, end time.Duration, change func(at time.Duration, v map[string]float64)) (firing []string) {
	t.Helper()
	_, firing = watchedFrom(0, end, change)
	return firing
}

// watchedFrom is watched by one who judges from some moment on. It returns what fires then, and at the end.
func watchedFrom(from, end time.Duration, change func(at time.Duration, v map[string]float64)) (first, last []string) {
	w, h := newWatchman(), &history{}
	for at := time.Duration(0); at <= end; at += sampleEvery {
		v := calm(at.Seconds())
		change(at, v)
		m := &moment{sample{begin.Add(at), shown(v)}, h}
		if at >= from {
			last = nil
			for _, s := range w.judge(m) {
				if s.Firing {
					last = append(last, s.Name)
				}
			}
		}
		if at == from {
			first = last
		}
		h.add(m.sample)
	}
	return first, last
}

// later is when something goes wrong in these histories.
const later = 12 * time.Minute

// Every alarm that a process can judge fires when it should, alone, and none otherwise.
func TestAlarms(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
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
		"JoinRatioFell":   set("hindsight_join_ratio", .2),
		"HeadOfLineStuck": set("hindsight_head_of_line_overdue_seconds", 70),
		"ContextsLag":     set("hindsight_contexts_lag_records", 2000),
		"FeedbackLag": set("hindsight_feedback_lag_records",
			2000), "JoinerLag": set("hindsight_joiner_lag_records", 20000),
		"RequestsRefused": grow("hindsight_requests_refused_total{code=503}", 1),
		"ManyRejects":     grow("hindsight_rejects_total", 50),
		"AppendErrors":    grow("hindsight_append_errors_total", .1), "OwnersFight": grow("hindsight_fences_total", .1),
		"Restarts": grow("hindsight_restarts_total", .1), "StoreFills": set("hindsight_store_bytes", 3.3e9),
		"LeaseLost":      grow("hindsight_lease_events_total{event=lost}", .01),
		"ForeignRecords": grow("hindsight_foreign_records_total", .01),
		"Overflow":       grow("hindsight_overflow_rounds_total", 1), "ManyPending": set("hindsight_pending_rounds",
			600000),
		"SnapshotsFail": grow("hindsight_snapshots_total{result=failed}", .01), "SnapshotDamaged": set(
			"hindsight_snapshots_total{result=damaged}", 1), "SnapshotOld": set("hindsight_snapshot_age_seconds",
			90000),
		"TailLost": set("hindsight_lost_tails_total", 1),
		"LogClockOff": func(at time.Duration, v map[string]float64) {
			v["hindsight_log_time_seconds"] += 400 * float64(at/later)
		},
		"DrawsDoNotFollowLaws": set("hindsight_draw_evidence", math.Inf(1)),
		"ClassRefuted": set("hindsight_class_refuted",
			1), "WorseThanBaseline": set("hindsight_guard_alarm", 1), "BudgetMissed": set("hindsight_budget_missed", 1),
		"LateLossesDiffer": set("hindsight_late_losses_differ", 1),
		"WorseThanUniform": set("hindsight_recent_excess_loss", .1),
		"NothingExplored":  set("hindsight_propensity_entropy_ratio", 0),
		"FeaturesRefused":  grow("hindsight_refused_feature_values", 1),
		"ExamplesRefused":  grow("hindsight_refused_examples", 1), "WorldChanged": grow("hindsight_oracle_changes",
			.01),
	}
	for _, a := range alarms() {
		if a.elsewhere() {
			continue
		}
		change := scenarios[a.Name]
		if change == nil {
			t.Errorf("%s has no history in which it fires", a.Name)
			continue
		}
		first, last := watchedFrom(later, later+a.For+11*time.Minute, change) // before that all is well
		if !slices.Equal(last, []string{a.Name}) {
			t.Errorf("%s: %v fire", a.Name, last)
		}
		if a.For > 0 && first != nil {
			t.Errorf("%s: %v fire at once", a.Name, first)
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
		v["hindsight_ready"], v["hindsight_standing_by"], v["hindsight_at_work{role=joiner}"],
			v["hindsight_at_work{role=decider}"] = 0, 1, 0, 0
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
		for _, name := range []string{"hindsight_join_ratio", "hindsight_recent_excess_loss",
			"hindsight_recent_excess_loss_error", "hindsight_propensity_entropy_ratio"} {
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
	want := map[string]vector{"c_total": {`a="1",b="x"`: 2, `a="1",b="y"`: 3, `a="2",b="y"`: 5}, "h": {"": 1}}
	if v := s.values["c_total"]; !reflect.DeepEqual(s.values, want) || v.sum() != 10 || v.sum(`a="1"`) != 5 ||
		v.sum(`b="y"`) != 8 || v.sum(`b="y"`, `a="2"`) != 5 {
		t.Errorf("%v", s.values)
	}
	h := &history{}
	for i := range 20000 {
		h.add(sample{begin.Add(time.Duration(i) * sampleEvery), map[string]vector{"c_total": {"": float64(50 * i)}}})
	}
	m := &moment{sample{begin.Add(20000 * sampleEvery), map[string]vector{"c_total": {"": 20000 * 50}}}, h}
	if r := m.rate("c_total"); r != 10 {
		t.Errorf("rate %v", r)
	}
	now, before := sample{begin, map[string]vector{"c_total": {"": 5}}}, &history{}
	if r := (&moment{now, before}).rate("c_total"); r != 0 {
		t.Errorf("without a past the rate is %v", r)
	}
	before.add(now)
	if r := (&moment{now, before}).rate("c_total"); r != 0 {
		t.Errorf("in no time the rate is %v", r)
	}
	now.at = begin.Add(sampleEvery)
	if r := (&moment{now, before}).rate("d_total"); r != 0 {
		t.Errorf("of a counter that is not there the rate is %v", r)
	}
	now.values = map[string]vector{"c_total": {"": 1}}
	if r := (&moment{now, before}).rate("c_total"); r != 0 {
		t.Errorf("of a counter that began anew the rate is %v", r)
	}
	if past := h.since(m.at, time.Minute); len(past) != 13 || m.at.Sub(past[0].at) != time.Minute+sampleEvery {
		t.Errorf("%d samples of a minute", len(past))
	}
	if past := h.since(m.at, 24*time.Hour); len(past) != int(samplesKept+oldKept) ||
		m.at.Sub(past[0].at) < 24*time.Hour {
		t.Errorf("%d samples of a day reach back for %v", len(past), m.at.Sub(past[0].at))
	}
}

// TestPartitions holds that the page judges each partition, as Prometheus does, and not their sum.
func TestPartitions(t *testing.T) {
	for lag, want := range map[float64]int{600: 0, 1600: 1} {
		reg, w, h := prometheus.NewRegistry(), newWatchman(), &history{}
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "hindsight_contexts_lag_records", Help: "G."},
			[]string{"partition"})
		reg.MustRegister(g)
		g.WithLabelValues("0").Set(lag)
		g.WithLabelValues("1").Set(lag)
		var firing []alarmState
		for at := range time.Hour / sampleEvery {
			m := &moment{take(reg, begin.Add(at*sampleEvery)), h}
			firing = w.judge(m)
			h.add(m.sample)
		}
		if len(firing) != want {
			t.Errorf("%v records wait in each of two partitions: %+v", lag, firing)
		}
	}
}

// TestQueries holds what expressions are worth, and that those of all alarms are understood.
func TestQueries(t *testing.T) {
	h := &history{}
	at := func(i int) sample {
		n := float64(i)
		return sample{begin.Add(time.Duration(i) * 5 * time.Second), map[string]vector{
			"hindsight_a": {`p="0",q="x"`: n, `p="0",q="y"`: 2 * n, `p="1",q="x"`: -n},
			"hindsight_b": {`p="0",q="x"`: 7, `p="1",q="x"`: 5}, "hindsight_c": {"": math.NaN()},
			"hindsight_d": {"": 3}}}
	}
	for i := range 100 {
		h.add(at(i))
	}
	m := &moment{at(100), h}
	for expr, want := range map[string]vector{
		`hindsight_a`: {`p="0",q="x"`: 100, `p="0",q="y"`: 200,
			`p="1",q="x"`: -100},
		`hindsight_a{q="x"} > 0`:                          {`p="0",q="x"`: 100},
		`sum by (job, p) (hindsight_a)`:                   {`p="0"`: 300, `p="1"`: -100},
		`max by (job) (hindsight_a) == 200`:               {"": 200},
		`hindsight_a + 2 * hindsight_b`:                   {`p="0",q="x"`: 114, `p="1",q="x"`: -90},
		`hindsight_b unless hindsight_a<0`:                {`p="0",q="x"`: 7},
		`hindsight_d or hindsight_b > 6`:                  {"": 3, `p="0",q="x"`: 7},
		`hindsight_b and hindsight_a > 0 or hindsight_d`:  {"": 3, `p="0",q="x"`: 7},
		`hindsight_d and on (job) hindsight_b > 6`:        {"": 3},
		`hindsight_d and on (job) hindsight_b > 7`:        {},
		`hindsight_d and hindsight_b > 6`:                 {},
		`hindsight_c == 0 or hindsight_c > 0`:             {},
		`hindsight_nothing > 0 or hindsight_d * 0.5`:      {"": 1.5},
		`increase(hindsight_a[1m])`:                       {`p="0",q="x"`: 13, `p="0",q="y"`: 26, `p="1",q="x"`: -13},
		`rate(hindsight_a{p="1"}[1m])`:                    {`p="1",q="x"`: -.2},
		`min_over_time(hindsight_a[1m])`:                  {`p="0",q="x"`: 87, `p="0",q="y"`: 174, `p="1",q="x"`: -100},
		`avg_over_time((hindsight_a > 0)[1m:5s])`:         {`p="0",q="x"`: 93.5, `p="0",q="y"`: 187},
		`abs(time() - (time() + hindsight_d - 1)) > 1`:    {"": 2},
		`delta(hindsight_b[1h]) > 0`:                      {},
		`hindsight_d > 1 and hindsight_d < 3 - 0.5 * 1`:   {},
		`hindsight_d > 3 or hindsight_d >= 3`:             {"": 3},
		`hindsight_d < 2 or hindsight_d - hindsight_d==0`: {"": 0},
	} {
		q, err := compile(expr)
		if err != nil {
			t.Error(err)
			continue
		}
		got := q(m)
		for labels := range got {
			got[labels] = math.Round(got[labels]*1e9) / 1e9
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s is %v, want %v", expr, got, want)
		}
	}
	for _, expr := range []string{"", "hindsight_a >", "up", "sum(hindsight_a)", "rate(hindsight_a)", "hindsight_a[5m]",
		"(hindsight_a", "hindsight_a)", "rate(hindsight_a[x])"} {
		if _, err := compile(expr); err == nil {
			t.Errorf("%q is understood", expr)
		}
	}
	for _, a := range alarms() {
		if _, err := compile(a.Expr); (err != nil) != a.elsewhere() && a.Name != "NoDecider" {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}
