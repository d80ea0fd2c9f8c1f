package watch

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// decisionBuckets are the limits of the latency of decisions, in seconds.
var decisionBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Places in DeciderMetrics.Snapshots.
const (
	SnapshotWritten = iota
	SnapshotFailed
	SnapshotDamaged
)

// DeciderMetrics are the metrics of one decider.
type DeciderMetrics struct {
	*owner
	Repeated, Unread, Outside                    prometheus.Counter
	Outstanding, ContextsLag, FeedbackLag, Gamma *gauge
	decisions, assigned                          []prometheus.Counter  // of the topic, of requests
	latency                                      []prometheus.Observer // likewise
	learned, through, epoch                      *gauge
	columns, refusedValues, refusedExamples      *gauge               // of a linear oracle
	Changes                                      *gauge               // of an oracle that watches for them
	Snapshots                                    []prometheus.Counter // [SnapshotWritten] and the others
	snapAge, snapBytes                           *gauge
	Mode, missed, Provisional                    *gauge
	certificate                                  certificateMetrics

	snapMu sync.Mutex
	snapAt time.Time // zero: there is none
}

func newDecider(o *owner) *DeciderMetrics {
	source := label{"source", []string{fromTopic, fromRequest}}
	return &DeciderMetrics{owner: o,
		decisions: o.counters("hindsight_decisions_total", "Decisions stored, by where their context came from.",
			"its rate is 0 while contexts come", source),
		assigned: o.counters("hindsight_assignments_total", "Decisions of another system stored, by where they came "+
			"from. They are none of hindsight_decisions_total.", "", source),
		Repeated: o.counter("hindsight_requests_repeated_total",
			"Requests whose id was decided before and that got that decision again.", ""),
		latency: o.histograms("hindsight_decision_seconds",
			"From the arrival of a request, or the taking of a batch of contexts, to the acknowledgement of the "+
				"decision's append.", "the 99th percentile passes what callers wait", decisionBuckets, source),
		Outstanding: o.gauge("hindsight_decisions_outstanding",
			"Decisions of the partition whose feedback is not yet learned (σ now).", "it grows for longer than the "+
				"window"),
		ContextsLag: o.gauge("hindsight_contexts_lag_records",
			"Records of contexts that are not yet read; holes in the numbering count.", "it grows for 5 minutes"),
		FeedbackLag: o.gauge("hindsight_feedback_lag_records",
			"Records of feedback that this replica has not yet learned; holes in the numbering count.",
			"it grows for 5 minutes"),
		learned: o.gauge("hindsight_learned_rounds",
			"Rounds that the learner of this epoch has learned (observed or imputed).",
			"it stands still while decisions are made"),
		through: o.gauge("hindsight_learned_through", "Number of the last feedback taken (τ).",
			"it differs between replicas for 5 minutes"),
		Gamma: o.gauge("hindsight_gamma", "γ of the last decision: the larger, the less is explored.", ""),
		epoch: o.gauge("hindsight_epoch", "Number of the epoch at work.",
			"it differs between replicas for 5 minutes"),
		columns: o.later("hindsight_oracle_columns", "Columns of the linear oracle, the constant included.", ""),
		refusedValues: o.later("hindsight_refused_feature_values",
			"Feature values that the linear oracle of this epoch learned as 0 because max_features was reached.",
			"it grows: the model does not see these features"),
		Unread: o.counter("hindsight_unread_features_total",
			"Features of decided contexts that the model does not list, and keys that no context has: they are not "+
				"read. The log names some, and replayer explain those of one context.",
			"it grows, and no client sends more than the model reads on purpose: a name may be misspelt"),
		Outside: o.counter("hindsight_outside_feature_values_total",
			"Values in decided contexts outside the range that the model states for their feature ({number: [min, "+
				"max]}). They are learned as they are; the log names some features.",
			"it grows: a unit changed, or the range is wrong"),
		refusedExamples: o.later("hindsight_refused_examples",
			"Examples that the linear oracle of this epoch did not learn because its memory for actions was full.",
			"it grows"),
		Changes: o.later("hindsight_oracle_changes",
			"Times that the oracle of this epoch restarted regressions because the actions played lost more than "+
				"predicted. The log says when.", "it grows: the world changed, or its noise"),
		snapAge: o.later("hindsight_snapshot_age_seconds",
			"Age of the last snapshot that this decider wrote or restored; of the one that writes them.",
			"it passes a day while rounds are learned"),
		snapBytes: o.later("hindsight_snapshot_bytes", "Size of that snapshot.", ""),
		Snapshots: o.counters("hindsight_snapshots_total",
			"Snapshots written, those that could not be, and those found damaged at startup, which then uses the one "+
				"before.",
			"failed or damaged grows", label{"result", []string{"written", "failed", "damaged"}}),
		missed: o.later("hindsight_budget_missed",
			"1 if a budget of the model is missed by more than chance explains: as a whole, and by four standard "+
				"errors in about the last 1,000 costs learned. /state has each budget.", "it is 1"),
		Provisional: o.later("hindsight_provisional_rounds", "Rounds that the learner knows by a provisional loss "+
			"(early), and waits for their feedback.", ""),
		certificate: newCertificate(o),
	}
}

func (d *DeciderMetrics) declareMode() {
	d.Mode = d.later("hindsight_mode", "Mode of the epoch at work: 0 live, 1 shadow, 2 apprentice, 3 paused.",
		"it is not what you want it to be")
}

// Missed shows whether a budget is missed.
func (d *DeciderMetrics) Missed(missed bool) { d.missed.Set(truth(missed)) }

// Decision counts a stored decision, or that of another system, which came by request or by the topic at a time.
func (d *DeciderMetrics) Decision(request, external bool, at time.Time) {
	source := 0
	if request {
		source = 1
	}
	if external {
		d.assigned[source].Inc()
		return
	}
	d.decisions[source].Inc()
	d.latency[source].Observe(time.Since(at).Seconds())
}

// Replica shows what a replica has learned.
func (d *DeciderMetrics) Replica(r *loop.Replica) {
	d.through.Set(float64(r.LearnedThrough()))
	e := r.Epoch()
	if e == nil {
		return
	}
	d.epoch.Set(float64(e.Number))
	d.learned.Set(float64(e.Learner.Learned()))
	if c, ok := learner.Changes(e.Learner); ok {
		d.Changes.Set(float64(c.Count))
	}
	if l, ok := e.Learner.(*learner.DAFA); ok && e.Rules.Provisional != nil {
		d.Provisional.Set(float64(l.Provisional()))
	}
	o, ok := e.Learner.(interface{ Oracle() oracle.Regressor })
	if !ok {
		return
	}
	if l, ok := o.Oracle().(interface{ Counts() oracle.LinearCounts }); ok {
		n := l.Counts()
		d.columns.Set(float64(n.Columns))
		d.refusedValues.Set(float64(n.FeaturesDropped))
		d.refusedExamples.Set(float64(n.ActionsDropped))
	}
}

// Snapshot notes the last snapshot.
func (d *DeciderMetrics) Snapshot(bytes int, at time.Time) {
	d.snapMu.Lock()
	defer d.snapMu.Unlock()
	d.snapAt = at
	d.snapBytes.Set(float64(bytes))
}

// Age shows the age of the last snapshot.
func (d *DeciderMetrics) Age(now time.Time) {
	d.snapMu.Lock()
	defer d.snapMu.Unlock()
	if !d.snapAt.IsZero() {
		d.snapAge.Set(max(0, now.Sub(d.snapAt).Seconds()))
	}
}
