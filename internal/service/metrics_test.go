package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/watch"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// A rule that sums over all processes needs a 0 of those that never began a part, and a counter
// that is born at 1 has not grown.
func TestMetricsFromTheStart(t *testing.T) {
	reg := prometheus.NewRegistry()
	watch.NewMetrics(reg, watch.NewHealth(watch.RoleDecider))
	shown := scrape(t, reg)
	for _, role := range []string{watch.RoleDecider, watch.RoleJoiner} {
		want := []string{fmt.Sprintf("hindsight_at_work{role=%q}", role), fmt.Sprintf("hindsight_fences_total{role=%q}",
			role), fmt.Sprintf("hindsight_restarts_total{role=%q}", role)}
		for _, event := range []string{watch.LeaseAcquired, watch.LeaseReleased, watch.LeaseLost} {
			want = append(want, fmt.Sprintf("hindsight_lease_events_total{event=%q,role=%q}", event, role))
		}
		for _, series := range want {
			if v, ok := shown[series]; !ok || v != 0 {
				t.Errorf("%s is there: %v, %v", series, ok, v)
			}
		}
	}
}

// Decisions by topic, their feedback and what is learned of it.
func TestMetricsOfTheLoop(t *testing.T) {
	r := newRig(t, nil)
	r.expect(map[string]float64{`hindsight_decisions_total{partition="0",source="topic"}`: 0,
		`hindsight_feedback_total{fate="observed"}`: 0, `hindsight_joiner_epoch`: 1})
	r.contexts("1", "2", "3")
	r.look()
	r.expect(map[string]float64{`hindsight_contexts_lag_records{partition="0"}`: 3})
	r.must(r.settle())
	r.look()
	r.expect(map[string]float64{
		`hindsight_decisions_total{partition="0",source="topic"}`:  3,
		`hindsight_decision_seconds{partition="0",source="topic"}`: 3,
		`hindsight_contexts_lag_records{partition="0"}`:            0,
		`hindsight_decisions_outstanding{partition="0"}`:           3,
		`hindsight_epoch{partition="0"}`:                           1,
		`hindsight_pending_rounds`:                                 3,
		`hindsight_fifo_held_rounds`:                               0,
	})
	if r.value(`hindsight_gamma{partition="0"}`) <= 0 || r.value(`hindsight_log_time_seconds`) <= 0 ||
		r.value(`hindsight_pending_oldest_age_seconds`) <= 0 {
		t.Error("γ, log time and the age of the oldest round are not positive")
	}
	r.outcomes("3", "2")
	r.look()
	r.expect(map[string]float64{`hindsight_joiner_lag_records{topic="outcomes"}`: 2,
		`hindsight_joiner_lag_records{topic="decisions"}`: 0})
	r.must(r.settle())
	r.expect(map[string]float64{`hindsight_outcomes_total`: 2, `hindsight_fifo_held_rounds`: 2,
		`hindsight_fifo_wait_seconds_total`:         0,
		`hindsight_feedback_total{fate="observed"}`: 0, `hindsight_learned_rounds{partition="0"}`: 0})
	r.outcomes("1")
	r.must(stepJoiner(r))
	r.look()
	if r.value(`hindsight_feedback_lag_records{partition="0"}`) < 3 {
		t.Error("feedback that is not learned is no lag")
	}
	r.must(r.settle())
	r.look()
	r.expect(map[string]float64{
		`hindsight_feedback_total{fate="observed"}`:      3,
		`hindsight_fifo_held_rounds`:                     0,
		`hindsight_pending_rounds`:                       0,
		`hindsight_pending_oldest_age_seconds`:           0,
		`hindsight_learned_rounds{partition="0"}`:        3,
		`hindsight_learned_through{partition="0"}`:       3,
		`hindsight_decisions_outstanding{partition="0"}`: 0,
		`hindsight_feedback_lag_records{partition="0"}`:  0,
		`hindsight_joiner_lag_records{topic="outcomes"}`: 0,
		`hindsight_oracle_columns{partition="0"}`:        2, // the constant and one feature
	})
	if r.value(`hindsight_fifo_wait_seconds_total`) <= 0 {
		t.Error("two rounds waited for the first, and there is no FIFO tax")
	}
}

func stepJoiner(r *rig) error {
	_, err := r.j.Step(r.t.Context())
	return err
}

func TestMetricsOfFates(t *testing.T) {
	r := newRig(t, nil)
	r.contexts("1", "2")
	r.put(r.topics.Outcomes, `{"id":%q,"withdrawn":true}`, plantedText+"1")
	r.must(r.settle())
	for i := range 22 { // the window is 20 rounds
		r.contexts(fmt.Sprint("more", i))
	}
	r.must(r.settle())
	r.expect(map[string]float64{`hindsight_feedback_total{fate="withdrawn"}`: 1})
	if r.value(`hindsight_feedback_total{fate="skipped"}`) < 1 {
		t.Error("no round was skipped")
	}
	r = newRig(t, func(r *rig) { r.rules.Impute, r.rules.DefaultLoss = true, 1 })
	for i := range 23 {
		r.contexts(fmt.Sprint(i))
	}
	r.must(r.settle())
	r.outcomes("22")
	r.must(r.settle())
	if r.value(`hindsight_feedback_total{fate="imputed"}`) < 1 {
		t.Error("no round was imputed")
	}
	r = newRig(t, func(r *rig) { r.jc.MaxPending = 2 })
	r.contexts("1", "2", "3", "4", "5")
	r.must(r.settle())
	r.expect(map[string]float64{`hindsight_overflow_rounds_total`: 3, `hindsight_feedback_total{fate="skipped"}`: 3})
}

func TestMetricsOfRejects(t *testing.T) {
	r := newRig(t, nil)
	r.contexts("1", "2")
	r.put(r.topics.Contexts, `{"id":%q,"actions":["a"]}`, plantedText+"1")
	r.put(r.topics.Contexts, `{%q:`, plantedText)
	r.must(r.settle())
	r.expect(map[string]float64{`hindsight_rejects_total{reason="duplicate-id",topic="contexts"}`: 1,
		`hindsight_rejects_total{reason="malformed",topic="contexts"}`: 1})
	r.put(r.topics.Outcomes, `{%q:`, plantedText)
	r.outcomes("never")
	r.put(r.topics.Outcomes, `{"id":%q,"loss":1,"action":%q}`, plantedText+"1", plantedText)
	r.outcomes("1", "1")
	r.must(r.settle())
	for i := range 25 {
		r.contexts(fmt.Sprint("more", i))
	}
	r.must(r.settle())
	r.outcomes("2")
	r.must(r.settle())
	for _, reason := range []string{"malformed", "orphan", "mismatch", "duplicate", "late"} {
		r.expect(map[string]float64{fmt.Sprintf(`hindsight_rejects_total{reason=%q,topic="outcomes"}`, reason): 1})
	}
	r.m.Reject("outcomes", plantedText) // no reason of ours
	r.expect(map[string]float64{`hindsight_rejects_total{reason="other",topic="outcomes"}`: 1})
	r.put(r.topics.Decisions, `{"id":%q}`, plantedText)
	r.must(r.settle())
	r.expect(map[string]float64{`hindsight_foreign_records_total`: 1})
}

func TestMetricsOfRequests(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.settle())
	ask := `{"id":"` + plantedText + `","actions":["a","b"]}`
	r.request("%s", ask)
	r.request("%s", ask)
	r.request(`{"id":%q,"actions":["a"]}`, plantedText)
	r.request(`{"actions":["a","b"],"id":"other","assigned":{"action":"b","propensity":0.5}}`)
	r.request(`{%q`, plantedText)
	r.request("%s", strings.Repeat("x", 2<<20))
	r.d.closed = true
	r.request(`{"actions":["a"]}`)
	r.expect(map[string]float64{
		`hindsight_decisions_total{partition="0",source="request"}`:     1,
		`hindsight_decision_seconds{partition="0",source="request"}`:    1,
		`hindsight_decisions_total{partition="0",source="topic"}`:       0,
		`hindsight_assignments_total{partition="0",source="request"}`:   1,
		`hindsight_requests_repeated_total{partition="0"}`:              1,
		`hindsight_requests_refused_total{code="400",subject="decide"}`: 1,
		`hindsight_requests_refused_total{code="409",subject="decide"}`: 1,
		`hindsight_requests_refused_total{code="413",subject="decide"}`: 1,
		`hindsight_requests_refused_total{code="503",subject="decide"}`: 1,
	})
	s, err := r.front(r.log).ServeOutcomes(t.Context(), r.log)
	r.must(err)
	defer s.Close()
	tell := func(format string, args ...any) {
		if _, _, err := r.log.Request(t.Context(), "m.outcome", fmt.Appendf(nil, format, args...)); err != nil {
			t.Error(err)
		}
	}
	tell(`{"id":%q,"loss":1}`, plantedText)
	tell(`{%q`, plantedText)
	r.fault = failing(r.topics.Outcomes)
	tell(`{"id":%q,"loss":1}`, plantedText)
	r.expect(map[string]float64{
		`hindsight_outcomes_stored_total`:                                1,
		`hindsight_requests_refused_total{code="400",subject="outcome"}`: 1,
		`hindsight_requests_refused_total{code="503",subject="outcome"}`: 1,
		`hindsight_append_errors_total{topic="outcomes"}`:                1,
	})
	r.must(r.log.Truncate(r.topics.Decisions, 0, 100))
	r.request("%s", ask) // closed
	r.d.closed = false
	r.d.recent.forget()
	r.request("%s", ask) // the decision cannot be read back
	r.expect(map[string]float64{`hindsight_requests_refused_total{code="503",subject="decide"}`: 3})
	r.front(r.log).Decide(stream.Message{Data: bytes.Repeat([]byte("x"), 2<<20),
		Respond: func([]byte, ...stream.Header) error { return nil }})
	r.expect(map[string]float64{`hindsight_requests_refused_total{code="413",subject="decide"}`: 2})
	r.must(r.log.Close())
	for range 2 { // the appender is dead, and cannot be opened again
		s.Store(stream.Message{Data: []byte(`{"id":"1","loss":1}`),
			Respond: func([]byte, ...stream.Header) error { return nil }})
	}
	r.expect(map[string]float64{`hindsight_append_errors_total{topic="outcomes"}`: 3})
}

// What the linear oracle has no room for.
func TestMetricsOfTheOracle(t *testing.T) {
	r := newRig(t, nil)
	r.put(r.topics.Contexts, `{"id":"1","features":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1},"actions":["a"]}`)
	for _, a := range []string{"b", "c", "d"} {
		r.put(r.topics.Contexts, `{"id":%q,"actions":[%q]}`, a, a)
	}
	r.put(r.topics.Outcomes, `{"id":"1","loss":1}`)
	for _, id := range []string{"b", "c", "d"} {
		r.put(r.topics.Outcomes, `{"id":%q,"loss":1}`, id)
	}
	r.must(r.settle())
	r.expect(map[string]float64{
		`hindsight_oracle_columns{partition="0"}`:         5,
		`hindsight_refused_feature_values{partition="0"}`: 2,
		`hindsight_refused_examples{partition="0"}`:       1,
		`hindsight_learned_rounds{partition="0"}`:         4,
	})
}

func TestMetricsOfSnapshots(t *testing.T) {
	r := newRig(t, func(r *rig) { r.dc.SnapshotEvery = 2 })
	none := math.NaN()
	r.look()
	r.expect(map[string]float64{`hindsight_snapshot_age_seconds{partition="0"}`: none,
		`hindsight_snapshot_bytes{partition="0"}`: none})
	round := func(ids ...string) {
		r.contexts(ids...)
		r.outcomes(ids...)
		r.must(r.settle())
	}
	round("1", "2")
	r.must(r.d.WriteSnapshots(t.Context()))
	r.look()
	r.expect(map[string]float64{`hindsight_snapshots_total{partition="0",result="written"}`: 1})
	size := r.value(`hindsight_snapshot_bytes{partition="0"}`)
	if size < 100 || r.value(`hindsight_snapshot_age_seconds{partition="0"}`) < 0 {
		t.Error("a snapshot has no size or no age")
	}
	round("3", "4")
	r.fault = failing(r.topics.Snapshots)
	if err := r.d.WriteSnapshots(t.Context()); err == nil {
		t.Error("a snapshot was written to a full log")
	}
	r.expect(map[string]float64{`hindsight_snapshots_total{partition="0",result="failed"}`: 1,
		`hindsight_append_errors_total{topic="snapshots"}`: 1})
	r.fault = nil
	r.d.Close()
	r.j.Close()
	r.look() // who looks late sees nothing, and brings nothing back
	r.expect(map[string]float64{`hindsight_snapshot_bytes{partition="0"}`: none,
		`hindsight_snapshot_age_seconds{partition="0"}`: none, `hindsight_gamma{partition="0"}`: none,
		`hindsight_pending_rounds`: none, `hindsight_joiner_lag_records{topic="outcomes"}`: none})
	r.open()
	r.expect(map[string]float64{`hindsight_snapshot_bytes{partition="0"}`: size})
}

// Each append that fails is counted once, whether Append says so or its
// acknowledgement.
func TestMetricsOfAppendErrors(t *testing.T) {
	for _, c := range []struct {
		kind, typ string // of the records that fail
		give      func(*rig)
	}{
		{watch.DecisionsKind, "", func(r *rig) { r.contexts("1") }},
		{watch.FeedbackKind, "", func(r *rig) { r.contexts("1"); r.outcomes("1") }},
		{watch.FeedbackKind, "cut", func(r *rig) { r.contexts("1") }},
		{watch.RejectsKind, "", func(r *rig) { r.put(r.topics.Contexts, "x"); r.contexts("1") }},
		{watch.RejectsKind, "", func(r *rig) { r.put(r.topics.Outcomes, "x") }},
	} {
		for _, fault := range []mem.Fault{mem.Full, mem.StoredUnknown, mem.TooLarge} {
			r := newRig(t, nil)
			r.must(r.settle())
			once := false
			r.fault = func(topic string, rec *stream.Record) mem.Fault {
				if topic != "m."+c.kind || rec.Type != c.typ || once {
					return mem.None
				}
				once = true
				return fault
			}
			c.give(r)
			if err := r.settle(); err == nil {
				t.Errorf("%s %q, fault %v: did no harm", c.kind, c.typ, fault)
			}
			series := fmt.Sprintf(`hindsight_append_errors_total{topic=%q}`, c.kind)
			if n := r.value(series); n != 1 {
				t.Errorf("%s %q, fault %v: %v append errors", c.kind, c.typ, fault, n)
			}
		}
	}
}

// A part that cannot take its partition over shows only that.
func TestMetricsOfOpenErrors(t *testing.T) {
	r := newRig(t, nil)
	r.d.Close()
	r.j.Close()
	for _, kind := range []string{watch.DecisionsKind, watch.FeedbackKind} {
		r.fault = failing("m." + kind)
		if kind == watch.DecisionsKind {
			_, err := OpenDecider(t.Context(), r.dc)
			r.none(err)
		} else {
			_, err := OpenJoiner(t.Context(), r.jc)
			r.none(err)
		}
		r.expect(map[string]float64{fmt.Sprintf(`hindsight_append_errors_total{topic=%q}`, kind): 1,
			`hindsight_epoch{partition="0"}`: math.NaN(), `hindsight_joiner_epoch`: math.NaN()})
	}
	r.fault = nil
	r.open()
}

// What was read before a restart is no lag after it.
func TestMetricsOfLag(t *testing.T) {
	r := newRig(t, nil)
	r.contexts("1", "2", "3")
	if _, err := r.d.StepFeedback(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.d.StepContexts(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	r.look()
	r.expect(map[string]float64{`hindsight_contexts_lag_records{partition="0"}`: 1})
	if r.value(`hindsight_joiner_lag_records{topic="decisions"}`) < 2 {
		t.Error("decisions that are not read are no lag")
	}
	r.must(r.settle())
	r.d.Close()
	r.j.Close()
	r.open()
	r.d.look(t.Context())
	r.expect(map[string]float64{`hindsight_contexts_lag_records{partition="0"}`: 0,
		`hindsight_feedback_lag_records{partition="0"}`: 0})
}

// What was appended to a log whose end is in doubt is refused, and so counted.
func TestMetricsOfDoubt(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.settle())
	r.fault = func(topic string, _ *stream.Record) mem.Fault {
		if topic == r.topics.Decisions {
			return mem.StoredUnknown
		}
		return mem.None
	}
	reply := r.request(`{"actions":["a"]}`)
	if !strings.Contains(reply, "503") {
		t.Error(reply)
	}
	r.expect(map[string]float64{`hindsight_requests_refused_total{code="503",subject="decide"}`: 1,
		`hindsight_append_errors_total{topic="decisions"}`:          1,
		`hindsight_decisions_total{partition="0",source="request"}`: 0})
}

// Who debugs sees which request was refused, by its id, and nothing of what was asked.
func TestRefusedRequestsAreLogged(t *testing.T) {
	r := newRig(t, nil)
	r.must(r.settle())
	var b bytes.Buffer
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		r.m.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level}))
		r.request(`{"id":"seven","features":{%q:%q},"actions":["a","a"]}`, plantedText, plantedText)
		if got := b.String(); (level == slog.LevelDebug) != strings.Contains(got,
			`msg="request refused" subject=decide code=400`) || strings.Contains(got, plantedText) {
			t.Errorf("%v: %q", level, got)
		}
	}
}
