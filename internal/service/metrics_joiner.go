package service

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/loop"
	"hindsight/internal/monitor"
	"hindsight/pkg/codec"
)

// delayBuckets are the limits of how late outcomes come, in seconds: from a click to a week.
var delayBuckets = []float64{.01, .1, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}

// joinerMetrics are those of the joiner of a process.
type joinerMetrics struct {
	feedback, overflow, outcomes, foreign, held *prometheus.CounterVec
	pending, oldest, parked, holding, logTime   *prometheus.GaugeVec
	epoch, lag, headLane, headRound, window     *prometheus.GaugeVec
	missing, overdue, bytes                     *prometheus.GaugeVec
	delay                                       *prometheus.HistogramVec
	losses                                      lossMetrics
}

func newJoinerMetrics(c *catalog) joinerMetrics {
	var fates []string
	for f := codec.Observed; f <= codec.WithdrawnRound; f++ {
		fates = append(fates, f.String())
	}
	m := joinerMetrics{
		feedback: c.counter("hindsight_feedback_total", "Rounds released, by fate.",
			"observed is less of the sum than it was last week, or all of it stands still while decisions are made", label{"fate", fates}),
		overflow: c.counter("hindsight_overflow_rounds_total", "Rounds closed before their time because too many waited, or held too many bytes.", "it grows"),
		outcomes: c.counter("hindsight_outcomes_total", "Records of outcomes read.", ""),
		missing: c.gauge("hindsight_outcomes_missing", "Outcomes to be expected, at least, of the rounds decided since the last one came: by the share of rounds observed since the start, 1 in 100 before the first; 0 while they may just be late, for 10 minutes of log time, and for three times the median delay or a round's whole window.",
			"it passes 10"),
		foreign: c.counter("hindsight_foreign_records_total", "Records in decisions, met by the joiner, and in feedback, met by deciders, that the service did not write: passed over, and counted each time that one is met.", "it grows: someone else writes to the log"),
		pending: c.gauge("hindsight_pending_rounds", "Rounds that wait for their fate or their turn.", "it passes half of max_pending"),
		bytes:   c.gauge("hindsight_pending_bytes", "What the decisions of these rounds hold in memory.", "it passes half of --pending-mib, 1 GiB by default"),
		oldest:  c.gauge("hindsight_pending_oldest_age_seconds", "How long the oldest decision that waits has waited: log time as far as it was read, and what has passed here since, less its own; 0 if none waits.", ""),
		parked:  c.gauge("hindsight_parked_outcomes", "Outcomes whose decision was not yet read.", ""),
		holding: c.gauge("hindsight_fifo_held_rounds", "Rounds that have their fate and wait for the rounds before them.", ""),
		held:    c.counter("hindsight_fifo_wait_seconds_total", "What the rounds released had waited, in log time, with their fate known, for the rounds before them.", ""),
		logTime: c.gauge("hindsight_log_time_seconds", "Largest time of a record read, in seconds since 1970.", "it differs from the clock by minutes while records come"),
		epoch:   c.gauge("hindsight_joiner_epoch", "Number of the epoch that the joiner announced or found.", "it differs from hindsight_epoch for 5 minutes"),
		lag: c.gauge("hindsight_joiner_lag_records", "Records of all partitions that the joiner has not yet read; holes in the numbering count.",
			"it grows for 5 minutes", label{"topic", []string{decisionsKind, outcomesKind}}),
		headLane:  c.gauge("hindsight_head_of_line_partition", "Partition of the decision that waits longest, and holds back those behind it; -1: none waits.", ""),
		headRound: c.gauge("hindsight_head_of_line_round", "Number of that decision in its partition; 0: none waits. replayer explain tells its life.", "it stands still for longer than the window"),
		overdue: c.gauge("hindsight_head_of_line_overdue_seconds", "For how long that decision has waited past the end of its window, by the rules of its own epoch; 0: it has not, none waits, or the rounds that end its window are not read.",
			"it is over 60 for 2 minutes: nothing is learned"),
		window: c.gauge("hindsight_window_seconds", "How long a round of the last epoch waits for its outcome; +Inf: as many rounds as the model says.", ""),
		delay: c.histogram("hindsight_outcome_delay_seconds", "From a decision to what closed it, in log time, of rounds observed.",
			"the 99th percentile nears the window", delayBuckets),
	}
	m.losses = newLossMetrics(c)
	return m
}

// joinerPart are the metrics of one joiner.
type joinerPart struct {
	gauges         [3]gauges // without labels, and of each topic
	fates          [codec.WithdrawnRound + 1]prometheus.Counter
	overflow       prometheus.Counter
	outcomes       prometheus.Counter
	foreign, held  prometheus.Counter
	pending, bytes prometheus.Gauge
	oldest, parked prometheus.Gauge
	holding        prometheus.Gauge
	logTime, epoch prometheus.Gauge
	lane, round    prometheus.Gauge // of the head of the line
	window         prometheus.Gauge
	overdue        prometheus.Gauge
	line           lineAge
	delay          prometheus.Observer
	decisionsLag   prometheus.Gauge
	outcomesLag    prometheus.Gauge
	losses         lossPart
	silence        silence
	missing        prometheus.Gauge

	waited int64 // counted of the FIFO tax, ns
}

func (m *joinerMetrics) open() *joinerPart {
	j := &joinerPart{overflow: m.overflow.WithLabelValues(), outcomes: m.outcomes.WithLabelValues(),
		foreign: m.foreign.WithLabelValues(), held: m.held.WithLabelValues()}
	for f := codec.Observed; f <= codec.WithdrawnRound; f++ {
		j.fates[f] = m.feedback.WithLabelValues(f.String())
	}
	g := &j.gauges[0]
	j.pending, j.bytes, j.oldest, j.parked = g.of(m.pending), g.of(m.bytes), g.of(m.oldest), g.of(m.parked)
	j.holding, j.logTime, j.epoch = g.of(m.holding), g.of(m.logTime), g.of(m.epoch)
	j.lane, j.round, j.window, j.delay = g.of(m.headLane), g.of(m.headRound), g.of(m.window), m.delay.WithLabelValues()
	j.overdue = g.of(m.overdue)
	for i, topic := range []string{decisionsKind, outcomesKind} {
		j.gauges[1+i].values = []string{topic}
	}
	j.decisionsLag, j.outcomesLag = j.gauges[1].of(m.lag), j.gauges[2].of(m.lag)
	j.missing = g.of(m.missing)
	j.losses.open(&m.losses)
	return j
}

func (j *joinerPart) close() {
	for i := range j.gauges {
		j.gauges[i].close()
	}
	j.losses.close()
}

// release counts a feedback.
func (j *joinerPart) release(f *codec.Feedback) {
	j.silence.release(f)
	if int(f.Fate) < len(j.fates) && f.Fate > 0 {
		j.fates[f.Fate].Inc()
	}
	if f.Fate == codec.Observed {
		j.delay.Observe(max(0, time.Duration(f.ClosedAt-f.Time).Seconds()))
	}
	if f.Reason == codec.ReasonOverflow {
		j.overflow.Inc()
	}
}

// showWindow shows how long rounds wait.
func (j *joinerPart) showWindow(rules *loop.Rules) {
	switch {
	case rules == nil:
	case rules.Window.Rounds > 0:
		j.window.Set(math.Inf(1))
	default:
		j.window.Set(time.Duration(rules.Window.Nanos).Seconds())
	}
}

// heart shows what waits.
func (j *joinerPart) heart(h *loop.Joiner, scope *monitor.Scope, at time.Time) {
	j.pending.Set(float64(h.Pending()))
	j.bytes.Set(float64(h.PendingBytes()))
	head := monitor.Head{Partition: -1}
	if t, d := h.Head(); d != nil {
		head = monitor.Head{Partition: d.Partition, N: d.N, Time: t, ID: d.ID}
	}
	j.line.note(h, at)
	j.age(at)
	j.lane.Set(float64(head.Partition))
	j.round.Set(float64(head.N))
	scope.Wait(head)
	parked, _ := h.Parked()
	j.parked.Set(float64(parked))
	holding, waited := h.Held()
	j.holding.Set(float64(holding))
	if waited > j.waited {
		j.held.Add(time.Duration(waited - j.waited).Seconds())
		j.waited = waited
	}
	j.logTime.Set(float64(h.Now()) / 1e9)
	j.missing.Set(j.silence.missing(h.Now(), scope.Usual))
	losses := h.LateLosses()
	j.losses.show(&losses)
}
