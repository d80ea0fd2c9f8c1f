package service

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// decisionBuckets are the limits of the latency of decisions, in seconds.
var decisionBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// deciderMetrics are those of the deciders of a process, by partition.
type deciderMetrics struct {
	decisions, repeated, snapshots, unread, outside    *prometheus.CounterVec
	latency                                            *prometheus.HistogramVec
	outstanding, contextsLag, feedbackLag              *prometheus.GaugeVec
	learned, through, gamma, epoch                     *prometheus.GaugeVec
	columns, refusedValues, refusedExamples, snapBytes *prometheus.GaugeVec
	changes, snapAge                                   *prometheus.GaugeVec
	certificate                                        certificateMetrics
}

func newDeciderMetrics(c *catalog) deciderMetrics {
	p, source := partitionLabel, label{"source", []string{fromTopic, fromRequest}}
	return deciderMetrics{
		decisions: c.counter("hindsight_decisions_total", "Decisions stored, by where their context came from.", "its rate is 0 while contexts come", p, source),
		repeated:  c.counter("hindsight_requests_repeated_total", "Requests whose id was decided before and that got that decision again.", "", p),
		latency: c.histogram("hindsight_decision_seconds",
			"From the arrival of a request, or the taking of a batch of contexts, to the acknowledgement of the decision's append.",
			"the 99th percentile passes what callers wait", decisionBuckets, p, source),
		outstanding: c.gauge("hindsight_decisions_outstanding", "Decisions of the partition whose feedback is not yet learned (σ now).", "it grows for longer than the window", p),
		contextsLag: c.gauge("hindsight_contexts_lag_records", "Records of contexts that are not yet read; holes in the numbering count.", "it grows for 5 minutes", p),
		feedbackLag: c.gauge("hindsight_feedback_lag_records", "Records of feedback that this replica has not yet learned; holes in the numbering count.", "it grows for 5 minutes", p),
		learned:     c.gauge("hindsight_learned_rounds", "Rounds that the learner of this epoch has learned (observed or imputed).", "it stands still while decisions are made", p),
		through:     c.gauge("hindsight_learned_through", "Number of the last feedback taken (τ).", "it differs between replicas for 5 minutes", p),
		gamma:       c.gauge("hindsight_gamma", "γ of the last decision: the larger, the less is explored.", "", p),
		epoch:       c.gauge("hindsight_epoch", "Number of the epoch at work.", "it differs between replicas for 5 minutes", p),
		columns:     c.gauge("hindsight_oracle_columns", "Columns of the linear oracle, the constant included.", "", p),
		refusedValues: c.gauge("hindsight_refused_feature_values", "Feature values that the linear oracle of this epoch learned as 0 because max_features was reached.",
			"it grows: the model does not see these features", p),
		unread: c.counter("hindsight_unread_features_total", "Features of decided contexts that the model does not list, and keys that no context has: nobody reads them. The log names some, and replayer explain those of one context.",
			"it grows, and nobody sends more than the model reads on purpose: a name may be misspelt", p),
		outside: c.counter("hindsight_outside_feature_values_total",
			"Values in decided contexts outside the range that the model states for their feature ({number: [min, max]}). They are learned as they are; the log names some features.",
			"it grows: a unit changed, or the range is wrong", p),
		refusedExamples: c.gauge("hindsight_refused_examples", "Examples that the linear oracle of this epoch did not learn because its memory for actions was full.", "it grows", p),
		changes: c.gauge("hindsight_oracle_changes", "Times that the oracle of this epoch started regressions anew because what was played lost more than predicted. The log says when.",
			"it grows: the world changed, or its noise", p),
		snapAge:     c.gauge("hindsight_snapshot_age_seconds", "Age of the last snapshot that this decider wrote or restored; of the one that writes them.", "it passes a day while rounds are learned", p),
		snapBytes:   c.gauge("hindsight_snapshot_bytes", "Size of that snapshot.", "", p),
		snapshots:   c.counter("hindsight_snapshots_total", "Snapshots written, those that could not be, and those found damaged at a start, which goes on from the one before.", "failed or damaged grows", p, label{"result", []string{"written", "failed", "damaged"}}),
		certificate: newCertificateMetrics(c),
	}
}

// deciderPart are the metrics of one decider.
type deciderPart struct {
	m                         *deciderMetrics
	gauges                    gauges
	topic, request            prometheus.Counter
	topicTime, askedTime      prometheus.Observer
	repeated, unread, outside prometheus.Counter
	written, failed           prometheus.Counter
	damaged                   prometheus.Counter
	outstanding, contexts     prometheus.Gauge
	feedback, learned         prometheus.Gauge
	through, gamma, epoch     prometheus.Gauge
	columns, values, lost     prometheus.Gauge // of a linear oracle; nil: it is none
	changes                   prometheus.Gauge // nil: the oracle watches for none
	certificate               certificatePart

	snapMu sync.Mutex
	snapAt time.Time // zero: there is none
}

func (m *deciderMetrics) of(partition int) *deciderPart {
	p := strconv.Itoa(partition)
	d := &deciderPart{m: m, gauges: gauges{values: []string{p}},
		topic: m.decisions.WithLabelValues(p, fromTopic), request: m.decisions.WithLabelValues(p, fromRequest),
		topicTime: m.latency.WithLabelValues(p, fromTopic), askedTime: m.latency.WithLabelValues(p, fromRequest),
		repeated: m.repeated.WithLabelValues(p), unread: m.unread.WithLabelValues(p), outside: m.outside.WithLabelValues(p),
		written: m.snapshots.WithLabelValues(p, "written"), failed: m.snapshots.WithLabelValues(p, "failed"),
		damaged: m.snapshots.WithLabelValues(p, "damaged")}
	g := &d.gauges
	d.outstanding, d.contexts, d.feedback = g.of(m.outstanding), g.of(m.contextsLag), g.of(m.feedbackLag)
	d.learned, d.through, d.gamma, d.epoch = g.of(m.learned), g.of(m.through), g.of(m.gamma), g.of(m.epoch)
	return d
}

// decision counts a stored decision.
func (d *deciderPart) decision(t *ticket) {
	if t.send != nil {
		d.request.Inc()
		d.askedTime.Observe(time.Since(t.at).Seconds())
		return
	}
	d.topic.Inc()
	d.topicTime.Observe(time.Since(t.at).Seconds())
}

// replica shows what a replica has learned.
func (d *deciderPart) replica(f *follower) {
	d.through.Set(float64(f.heart.LearnedThrough()))
	e := f.heart.Epoch()
	if e == nil {
		return
	}
	d.epoch.Set(float64(e.Number))
	d.learned.Set(float64(e.Learner.Learned()))
	if c, ok := learner.Changes(e.Learner); ok {
		if d.changes == nil {
			d.changes = d.gauges.of(d.m.changes)
		}
		d.changes.Set(float64(c.Count))
	}
	o, ok := e.Learner.(interface{ Oracle() oracle.Regressor })
	if !ok {
		return
	}
	if l, ok := o.Oracle().(interface{ Counts() oracle.LinearCounts }); ok {
		if d.columns == nil {
			g := &d.gauges
			d.columns, d.values, d.lost = g.of(d.m.columns), g.of(d.m.refusedValues), g.of(d.m.refusedExamples)
		}
		n := l.Counts()
		d.columns.Set(float64(n.Columns))
		d.values.Set(float64(n.FeaturesDropped))
		d.lost.Set(float64(n.ActionsDropped))
	}
}

// snapshot notes the last snapshot.
func (d *deciderPart) snapshot(bytes int, at time.Time) {
	d.snapMu.Lock()
	defer d.snapMu.Unlock()
	d.snapAt = at
	d.gauges.of(d.m.snapBytes).Set(float64(bytes))
}

// age shows the age of the last snapshot.
func (d *deciderPart) age(now time.Time) {
	d.snapMu.Lock()
	defer d.snapMu.Unlock()
	if !d.snapAt.IsZero() {
		d.gauges.of(d.m.snapAge).Set(max(0, now.Sub(d.snapAt).Seconds()))
	}
}
