package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/certify"
	"hindsight/internal/latelosses"
	"hindsight/internal/ledger"
	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// shown returns what a registry shows, by series without hindsight_ and the names of labels: "outcomes_total",
// "losses in-time"; of a histogram how many it has counted and what they sum to.
func shown(t *testing.T, reg prometheus.Gatherer) map[string]string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "hindsight_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = fmt.Sprintf("%.6g", m.GetCounter().GetValue()+m.GetGauge().GetValue()) // one is nil, and 0
			if h := m.GetHistogram(); h != nil {
				out[name] = fmt.Sprintf("%d: %.0f", h.GetSampleCount(), h.GetSampleSum())
			}
		}
	}
	return out
}

// step is something that a process does, and what changes in what it shows; "": it is shown no more.
type step struct {
	what string
	do   func()
	want map[string]string
}

// play takes steps one after the other, each of which changes what it wants and nothing else.
func play(t *testing.T, reg prometheus.Gatherer, steps []step) {
	t.Helper()
	was := shown(t, reg)
	for _, s := range steps {
		s.do()
		now, got := shown(t, reg), map[string]string{}
		for name, v := range now {
			if old, there := was[name]; !there || old != v {
				got[name] = v
			}
		}
		for name := range was {
			if _, there := now[name]; !there {
				got[name] = ""
			}
		}
		if !maps.Equal(got, s.want) {
			t.Errorf("%s: %q, want %q", s.what, got, s.want)
		}
		was = now
	}
}

// TestCounts holds what each event of a process counts, and that it counts nothing else.
func TestCounts(t *testing.T) {
	reg, health := prometheus.NewRegistry(), NewHealth(RoleDecider)
	m := NewMetrics(reg, health)
	var log bytes.Buffer
	var held, limit, free int64 = 30, 100, 70
	var usage error
	var none *Metrics
	d, j, foreign := m.Decider(3), m.Joiner(), m.Foreign()
	ago := func() time.Time { return time.Now().Add(-7 * time.Second) }
	failed := errors.New("no space")
	steps := []step{
		{"a reject", func() { m.Reject("contexts", codec.ReasonDuplicateID) },
			map[string]string{"rejects_total duplicate-id contexts": "1"}},
		{"a context is never late", func() { m.Reject("contexts", codec.ReasonLate) },
			map[string]string{"rejects_total other contexts": "1"}},
		{"an outcome is", func() { m.NoteReject(&codec.Reject{Topic: "outcomes", Reason: codec.ReasonLate}) },
			map[string]string{"rejects_total late outcomes": "1"}},
		{"an unknown reason", func() { m.Reject("outcomes", "?") },
			map[string]string{"rejects_total other outcomes": "1"}},
		{"an unknown topic", func() { m.Reject("?", "?") }, nil},
		{"a refusal", func() { m.Refuse("decide", 503) }, map[string]string{"requests_refused_total 503 decide": "1"}},
		{"an unknown code", func() { m.Refuse("outcome", 418) },
			map[string]string{"requests_refused_total other outcome": "1"}},
		{"no reply", func() { m.RefuseReply("m.decide") },
			map[string]string{"requests_refused_total no-inbox decide": "1"}},
		{"no reply to an outcome", func() { m.RefuseReply("m.outcome") },
			map[string]string{"requests_refused_total no-inbox outcome": "1"}},
		{"of a round, without a log", func() { m.RefuseID("decide", 409, "c1") },
			map[string]string{"requests_refused_total 409 decide": "1"}},
		{"of a round", func() {
			m.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			m.RefuseID("decide", 409, "c2")
			m.Log = slog.New(slog.NewTextHandler(&log, nil))
			m.RefuseID("decide", 409, "c3")
		}, map[string]string{"requests_refused_total 409 decide": "3"}},
		{"an append fails", func() { m.AppendError(DecisionsKind, failed) },
			map[string]string{"append_errors_total decisions": "1"}},
		{"none, or its caller ended", func() {
			m.AppendError(DecisionsKind, nil)
			m.AppendError(DecisionsKind, fmt.Errorf("append: %w", context.Canceled))
		}, nil},
		{"a lease", func() { m.Lease(RoleJoiner, LeaseLost) },
			map[string]string{"lease_events_total lost joiner": "1"}},
		{"a part stops", func() { m.Restart(RoleDecider, false) }, map[string]string{"restarts_total decider": "1"}},
		{"another owner", func() { m.Restart(RoleJoiner, true) },
			map[string]string{"restarts_total joiner": "1", "fences_total joiner": "1"}},
		{"without metrics", func() {
			none.Lease(RoleJoiner, LeaseLost)
			none.Refuse("decide", 503)
			none.RefuseID("decide", 503, "c1")
		}, nil},
		{"a decision", func() { d.Decision(false, false, ago()) },
			map[string]string{"decisions_total 3 topic": "1", "decision_seconds 3 topic": "1: 7"}},
		{"by request", func() { d.Decision(true, false, ago()) },
			map[string]string{"decisions_total 3 request": "1", "decision_seconds 3 request": "1: 7"}},
		{"of another system", func() { d.Decision(true, true, ago()) },
			map[string]string{"assignments_total 3 request": "1"}},
		{"a budget", func() { d.Missed(true) }, map[string]string{"budget_missed 3": "1"}},
		{"is kept", func() { d.Missed(false) }, map[string]string{"budget_missed 3": "0"}},
		{"no snapshot", func() { d.Age(time.Unix(1000, 0)) }, nil},
		{"a snapshot", func() { d.Snapshot(77, time.Unix(1000, 0)) }, map[string]string{"snapshot_bytes 3": "77"}},
		{"its age", func() { d.Age(time.Unix(1009, 0)) }, map[string]string{"snapshot_age_seconds 3": "9"}},
		{"of a clock put back", func() { d.Age(time.Unix(900, 0)) }, map[string]string{"snapshot_age_seconds 3": "0"}},
		{"weights", func() { d.Weights(weighted{}) },
			map[string]string{"top_weight 3": "0.75", "effective_models 3": "1.6"}},
		{"weights of an oracle", func() { d.Weights(regressing{}) },
			map[string]string{"top_weight 3": "0.5", "effective_models 3": "2"}},
		{"without weights", func() { d.Weights(struct{ learner.Learner }{}) }, nil},
		{"a certificate", func() {
			d.Certificate(&certify.Figures{T: 9, Bounds: map[string]float64{certify.Kinds()[0]: 5}, Exploration: 2})
		}, map[string]string{"regret_bound plausible_set 3": "5", "regret_rounds 3": "9", "exploration_cost 3": "2"}},
		{"another", func() {
			d.Certificate(&certify.Figures{T: 9, Bounds: map[string]float64{certify.Kinds()[2]: math.Inf(1)},
				Exploration: 2, Functions: 4, Surviving: 1, Refuted: true})
		}, map[string]string{"regret_bound plausible_set 3": "NaN", "regret_bound realised_loss 3": "+Inf",
			"models 3": "4", "models_surviving 3": "1", "class_refuted 3": "1"}},
		{"without models", func() {
			d.Certificate(&certify.Figures{T: 9, Bounds: map[string]float64{certify.Kinds()[2]: 1}, Exploration: 2})
		}, map[string]string{"regret_bound realised_loss 3": "1", "models 3": "NaN", "models_surviving 3": "NaN",
			"class_refuted 3": "NaN"}},
		{"a foreign record", foreign.Inc, map[string]string{"foreign_records_total": "1"}},
		{"observed", func() { j.Release(&codec.Feedback{Fate: codec.Observed, Time: 1e9, ClosedAt: 5e9}) },
			map[string]string{"feedback_total observed": "1", "outcome_delay_seconds": "1: 4"}},
		{"closed before it came", func() { j.Release(&codec.Feedback{Fate: codec.Observed, Time: 9e9, ClosedAt: 5e9}) },
			map[string]string{"feedback_total observed": "2", "outcome_delay_seconds": "2: 4"}},
		{"withdrawn", func() { j.Release(&codec.Feedback{Fate: codec.WithdrawnRound}) },
			map[string]string{"feedback_total withdrawn": "1"}},
		{"too many", func() { j.Release(&codec.Feedback{Fate: codec.Skipped, Reason: codec.ReasonOverflow}) },
			map[string]string{"feedback_total skipped": "1", "overflow_rounds_total": "1"}},
		{"of no fate", func() {
			j.Release(&codec.Feedback{Fate: codec.Observed - 1})
			j.Release(&codec.Feedback{Fate: codec.WithdrawnRound + 1})
		}, nil},
		{"a window", func() { j.Window(&loop.Rules{Window: loop.Window{Nanos: 60e9}}) },
			map[string]string{"window_seconds": "60"}},
		{"of rounds", func() { j.Window(&loop.Rules{Window: loop.Window{Rounds: 1}}) },
			map[string]string{"window_seconds": "+Inf"}},
		{"unknown", func() { j.Window(nil) }, nil},
		{"candidates", func() {
			j.Candidates([]ledger.Estimate{{Rounds: 1, Value: ledger.Interval{Mean: 2, Low: 1, High: 3},
				Gain: ledger.Interval{Mean: 5, Low: 4, High: 6}}, {}}, true, true)
		}, map[string]string{"candidate_loss 1": "2", "candidate_loss_low 1": "1", "candidate_loss_high 1": "3",
			"candidate_gain 1": "5", "candidate_gain_low 1": "4", "candidate_gain_high 1": "6", "promotion": "1"}},
		{"the rule no more", func() {
			j.Candidates([]ledger.Estimate{{Rounds: 1, Value: ledger.Interval{Mean: 2, Low: 1, High: 3},
				Gain: ledger.Interval{Mean: 5, Low: 4, High: 6}}}, true, false)
		}, map[string]string{"promotion": "0"}},
		{"none", func() { j.Candidates(nil, false, false) },
			map[string]string{"candidate_loss 1": "", "candidate_loss_low 1": "", "candidate_loss_high 1": "",
				"candidate_gain 1": "", "candidate_gain_low 1": "", "candidate_gain_high 1": "", "promotion": ""}},
		{"no store", func() { m.WatchStore(nil) }, nil},
		{"a store", func() { m.WatchStore(func() (int64, int64, int64, error) { return held, limit, free, usage }) },
			map[string]string{"store_bytes": "30", "store_limit_bytes": "100", "store_free_bytes": "70"}},
		{"it cannot be asked", func() { usage = failed },
			map[string]string{"store_bytes": "NaN", "store_limit_bytes": "NaN", "store_free_bytes": "NaN"}},
		{"standing by", func() { health.Join(RoleDecider, "decider") }, map[string]string{"standing_by": "1"}},
		{"ready", func() { health.parts[0].Set(Working, "") }, map[string]string{"ready": "1", "standing_by": "0"}},
	}
	play(t, reg, steps)
	if got := log.String(); strings.Count(got, "id=") != 1 || !strings.Contains(got,
		`msg="request refused" subject=decide code=409 id=c2`) {
		t.Errorf("logged %s", got)
	}
	if len(m.Scope().View().Rejects) != 1 {
		t.Errorf("rejects %v", m.Scope().View().Rejects)
	}
	d.Close()
	j.Close()
	d.Missed(true) // too late
	for name := range shown(t, reg) {
		if kind, _, _ := strings.Cut(name, " "); kind == "budget_missed" || kind == "epoch" || kind == "losses" {
			t.Errorf("%s is there though its owner is closed", name)
		}
	}
}

// weighted is a learner with weights, and regressing one whose oracle has some.
type weighted struct{ learner.Learner }

func (weighted) AppendWeights(dst []float64) []float64 { return append(dst, .25, .75) }

type regressing struct{ learner.Learner }

func (regressing) Oracle() oracle.Regressor { return weighing{} }

type weighing struct{ oracle.Regressor }

func (weighing) AppendWeights(dst []float64) []float64 { return append(dst, .5, .5) }

// TestHeartFigures holds what is shown of the rounds that wait, at the log's time and as long as the log stands.
func TestHeartFigures(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, nil)
	j := m.Joiner()
	rules := &loop.Rules{MaxActions: 9, Range: loop.Range{Max: 1}, Window: loop.Window{Nanos: 20e9}}
	h := loop.NewJoiner(1, codec.Limits{Heart: 1, Pending: 9, Bytes: 1 << 20, Dedup: 9}, 1,
		func(int64) *loop.Rules { return rules })
	decision := func(n, at int64) loop.DecisionEvent {
		return loop.DecisionEvent{Offset: n - 1, Time: at * 1e9, D: codec.Decision{ID: fmt.Sprint("c", n), N: n,
			Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1}, Context: []byte(`{"actions":["a"]}`),
			Time: at * 1e9}}
	}
	var cut codec.Cut
	take := func(at int64, next int64, all ...loop.DecisionEvent) {
		t.Helper()
		cut = codec.Cut{Cut: cut.Cut + 1, Time: at * 1e9}
		var b []loop.Batch
		if next > 0 {
			cut.Decisions, b = []codec.Range{{Next: next}}, []loop.Batch{{Decisions: all}}
		}
		if err := h.Take(&cut, b); err != nil {
			t.Fatal(err)
		}
	}
	late, clock := latelosses.ByOutcome{}, time.Unix(1000, 0)
	heart := func() { j.Heart(h, late, m.Scope(), clock) }
	play(t, reg, []step{
		{"nothing waits", heart, map[string]string{"head_of_line_partition": "-1", "loss_mean in-time": "NaN",
			"loss_mean late": "NaN", "loss_standard_error in-time": "NaN", "loss_standard_error late": "NaN"}},
	})
	take(103, 2, decision(1, 100), decision(2, 102))
	j.Decided(100e9)
	play(t, reg, []step{
		{"two rounds wait", heart, map[string]string{"head_of_line_partition": "0", "head_of_line_round": "1",
			"pending_rounds": "2", "pending_bytes": fmt.Sprint(h.PendingBytes()), "pending_oldest_age_seconds": "3",
			"log_time_seconds": "103"}},
		{"the log stands", func() { clock = clock.Add(7 * time.Second); j.Age(clock) },
			map[string]string{"pending_oldest_age_seconds": "10"}},
		{"for longer than the window", func() { clock = clock.Add(20 * time.Second); heart() },
			map[string]string{"pending_oldest_age_seconds": "30", "head_of_line_overdue_seconds": "10"}},
		{"a loss came late", func() {
			late.Of("").AddObserved(1, .25)
			late.Of("").AddObserved(1, .75)
			heart()
		}, map[string]string{"losses in-time": "2", "loss_mean in-time": "0.5", "loss_standard_error in-time": "0.25"}},
		{"they are closed", func() {
			take(900, 0)
			j.Release(&codec.Feedback{Fate: codec.Skipped, Time: 102e9})
			heart()
		}, map[string]string{"feedback_total skipped": "1", "head_of_line_partition": "-1", "head_of_line_round": "0",
			"pending_rounds": "0", "pending_oldest_age_seconds": "0", "head_of_line_overdue_seconds": "0",
			"log_time_seconds": "900",
			"pending_bytes":    "0", "outcomes_missing": "0.01"}},
		{"one came", func() { j.OutcomeCame(); heart() }, map[string]string{"outcomes_missing": "0"}},
	})
	if v := m.Scope().View(); v.Head != nil {
		t.Errorf("%+v waits", v.Head)
	}
}

// TestScopeMetrics holds what is shown of the last decisions and rounds, of rewards as such.
func TestScopeMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := NewMetrics(reg, nil).Scope()
	var draws drawCheck
	draws.add([]float64{.5, .5}, 0)
	evidence := draws.evidence()
	play(t, reg, []step{
		{"a decision", func() { s.Decision(decision(0, 1, 0, .5, .5)) }, map[string]string{"propensity_floor": "0.5",
			"propensity_entropy_ratio": "1", "draws_checked": "1", "draw_evidence": fmt.Sprintf("%.6g", evidence)}},
		{"a round", func() { s.Feedback(feedback(1, codec.Observed, .25, .5)) }, map[string]string{"join_ratio": "1",
			"recent_loss": "0.25", "recent_uniform_loss": "0.25", "recent_excess_loss": "0",
			"recent_excess_loss_error": "0", "importance_effective_ratio": "1", "importance_largest_ratio": "1"}},
		{"rewards", func() { s.Worth(1, &words.Rewards{Min: -1, Max: 3}) },
			map[string]string{"recent_reward": "2", "recent_uniform_reward": "2"}},
		{"who knows of none", func() { s.Worth(1, nil); s.Worth(0, &words.Rewards{Max: 1}) }, nil},
		{"the next epoch has none", func() { s.Worth(2, nil) },
			map[string]string{"recent_reward": "NaN", "recent_uniform_reward": "NaN"}},
		{"an apprentice", func() { s.Matched(1, .75) }, map[string]string{"apprentice_match_ratio": "0.75"}},
		{"of another system", func() {
			d := decision(0, 2, 0, 1)
			d.Mode, d.Unknown = codec.External, codec.UnknownLaw
			s.Decision(d)
			d = decision(0, 3, 0, 1)
			d.Mode = codec.External
			s.Decision(d)
		}, nil},
	})
	if v := s.View(); v.Assigned != (Assigned{2, 1}) {
		t.Errorf("of another system %+v", v.Assigned)
	}
	var none *Scope
	none.Matched(1, 1)
	none.Feedback(feedback(1, codec.Observed, 0, .5))
}

// TestGuardMetrics: the figures of a guard are there as long as there is one.
func TestGuardMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	guard, j, number := &loop.Guard{}, NewMetrics(reg, nil).Joiner(), int64(0)
	begin := func(rules loop.GuardRules) func() {
		return func() {
			number++
			guard.Begin(number, false, &loop.Rules{MaxActions: 9, Range: loop.Range{Max: 1}, Guard: rules})
			j.Guard(guard, false)
		}
	}
	alarms := loop.GuardRules{Margin: .1, Alpha: .05}
	holds := alarms
	holds.LoseAtMost = .02
	play(t, reg, []step{
		{"before any epoch", func() { j.Guard(guard, false) }, nil},
		{"without a guard", begin(loop.GuardRules{}), nil},
		{"a guard", begin(alarms), map[string]string{"guard_alarm": "0", "guard_evidence_ratio": "0",
			"guard_excess_loss": "0"}},
		{"the baseline, always a, is better", func() {
			for n := range int64(2) {
				guard.Add(&codec.Feedback{N: n + 1, Epoch: number, Mode: codec.Live, Fate: codec.Observed,
					Actions: []string{"a", "b"}, Propensities: []float64{.2, .8},
					Context: []byte(`{"actions":["a","b"]}`)})
			}
			j.Guard(guard, true)
		}, map[string]string{"guard_alarm": "1", "guard_excess_loss": "4",
			"guard_evidence_ratio": fmt.Sprintf("%.6g", guardEvidence(2, 4, .1)/math.Log(20))}},
		{"it holds back", begin(holds), map[string]string{"guard_alarm": "0", "guard_evidence_ratio": "0",
			"guard_excess_loss": "0", "guard_held_rounds": "0", "guard_forgone_gain": "0"}},
		{"no more", begin(alarms), map[string]string{"guard_held_rounds": "", "guard_forgone_gain": ""}},
		{"no guard", begin(loop.GuardRules{}), map[string]string{"guard_alarm": "", "guard_evidence_ratio": "",
			"guard_excess_loss": ""}},
	})
}

// guardEvidence returns the logarithm of the mean capital of bets at rates 1/2, 1/4, … after n rounds that each show
// an excess.
func guardEvidence(n int, excess, margin float64) float64 {
	var sums loop.GuardSums
	mean, rate := 0.0, 1/(1+margin)
	for range sums.Log {
		rate /= 2
		mean += math.Pow(1+rate*(excess-margin), float64(n)) / float64(len(sums.Log))
	}
	return math.Log(mean)
}

// TestReplicaMetrics holds what is shown of what a decider has learned.
func TestReplicaMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	d := NewMetrics(reg, nil).Decider(0)
	regressor, err := oracle.NewLinear(oracle.LinearOptions{Beta: .5, Lambda: 1, MaxFeatures: 16})
	if err != nil {
		t.Fatal(err)
	}
	balanced, err := learner.NewSchedule("balanced", regressor)
	if err != nil {
		t.Fatal(err)
	}
	r := loop.NewReplica()
	begin := func(number int64, l learner.Learner, rules loop.Rules) func() {
		return func() {
			rules.MaxActions, rules.Range = 9, loop.Range{Max: 1}
			if err := r.Begin(loop.Epoch{Number: number, Rules: &rules, Learner: l}); err != nil {
				t.Fatal(err)
			}
			d.Replica(r)
		}
	}
	play(t, reg, []step{
		{"no epoch", func() { d.Replica(r) }, nil},
		{"a linear oracle", begin(2, learner.NewDAFA(regressor, balanced), loop.Rules{}), map[string]string{
			"epoch 0": "2", "oracle_columns 0": "1", "refused_feature_values 0": "0", "refused_examples 0": "0"}},
		{"no oracle", begin(3, learner.NewUniform(), loop.Rules{}), map[string]string{"epoch 0": "3"}},
		{"provisional losses", begin(4, learner.NewDAFA(regressor, balanced),
			loop.Rules{Provisional: &loop.Provisional{}}), map[string]string{"epoch 0": "4",
			"provisional_rounds 0": "0"}},
	})
}
