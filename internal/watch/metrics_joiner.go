package watch

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// delayBuckets are the limits of how late outcomes come, in seconds: from a click to a week.
var delayBuckets = []float64{.01, .1, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}

// JoinerMetrics are the metrics of one joiner.
type JoinerMetrics struct {
	*owner
	fates                                  []prometheus.Counter
	Outcomes, Cuts, Eras                   prometheus.Counter // read, written, begun
	overflow, wait                         prometheus.Counter
	missing, pending, bytes, oldest        *gauge
	holding, logTime                       *gauge
	Epoch, DecisionsLag, OutcomesLag       *gauge
	lane, round, overdue, window           *gauge // of the head of the line
	delay                                  prometheus.Observer
	losses                                 lossMetrics
	candidates                             candidateMetrics
	guardAlarm, guardEvidence, guardExcess *gauge
	guardHeld, guardForgone                *gauge

	line    lineAge
	silence silence
	waited  int64 // counted of the FIFO tax, ns
}

func newJoiner(o *owner) *JoinerMetrics {
	var fates []string
	for f := codec.Observed; f <= codec.WithdrawnRound; f++ {
		fates = append(fates, f.String())
	}
	j := &JoinerMetrics{owner: o,
		fates: o.counters("hindsight_feedback_total", "Rounds released, by fate.",
			"observed is less of the sum than it was last week, or all of it stands still while decisions are made",
			label{"fate", fates}),
		overflow: o.counter("hindsight_overflow_rounds_total",
			"Rounds closed before their time because too many waited, or held too many bytes.", "it grows"),
		Outcomes: o.counter("hindsight_outcomes_total", "Records of outcomes read.", ""),
		Cuts: o.counter("hindsight_cuts_total", "Cuts written: how often the joiner has said what it read next.",
			""),
		Eras: o.counter("hindsight_eras_total",
			"Eras begun in the feedback log: a log did not hold what the joiner before had read or written.",
			"it is not 0: a log has lost its tail, and what hung on it was joined again"),
		missing: o.gauge("hindsight_outcomes_missing",
			"Outcomes to be expected, at least, of the rounds decided since the last one came: by the share of rounds "+
				"observed since the start, 1 in 100 before the first; 0 while they may just be late, for 10 minutes "+
				"of log time, and for three times the median delay or a round's whole window.",
			"it passes 10"),
	}
	foreignRecords(o)
	j.pending = o.gauge("hindsight_pending_rounds", "Rounds that wait for their fate or their turn.",
		"it passes half of max_pending")
	j.bytes = o.gauge("hindsight_pending_bytes", "What the decisions of these rounds hold in memory.",
		"it passes half of --pending-mib, 1 GiB by default")
	j.oldest = o.gauge("hindsight_pending_oldest_age_seconds",
		"How long the oldest decision that waits has waited: log time as far as it was read, and what has passed here "+
			"since, less its own; 0 if none waits.", "")
	j.holding = o.gauge("hindsight_fifo_held_rounds", "Rounds that have their fate and wait for the rounds before "+
		"them.", "")
	j.wait = o.counter("hindsight_fifo_wait_seconds_total",
		"What the rounds released had waited, in log time, with their fate known, for the rounds before them.", "")
	j.logTime = o.gauge("hindsight_log_time_seconds", "Largest time of a record read, in seconds since 1970.",
		"it differs from the clock by minutes while records come")
	j.Epoch = o.gauge("hindsight_joiner_epoch", "Number of the epoch that the joiner announced or found.",
		"it differs from hindsight_epoch for 5 minutes")
	lag := o.gauges("hindsight_joiner_lag_records",
		"Records of all partitions that the joiner has not yet read; holes in the numbering count.",
		"it grows for 5 minutes", label{"topic", []string{DecisionsKind, OutcomesKind}})
	j.DecisionsLag, j.OutcomesLag = lag[0], lag[1]
	j.lane = o.gauge("hindsight_head_of_line_partition",
		"Partition of the decision that waits longest, and holds back those behind it; -1: none waits.", "")
	j.round = o.gauge("hindsight_head_of_line_round",
		"Number of that decision in its partition; 0: none waits. replayer explain tells its life.",
		"it stands still for longer than the window")
	j.overdue = o.gauge("hindsight_head_of_line_overdue_seconds",
		"For how long that decision has waited past the end of its window, by the rules of its own epoch; 0: it has "+
			"not, none waits, or the rounds that end its window are not read.",
		"it is over 60 for 2 minutes: nothing is learned")
	j.window = o.gauge("hindsight_window_seconds",
		"How long a round of the last epoch waits for its outcome; +Inf: as many rounds as the model says.", "")
	j.delay = o.histograms("hindsight_outcome_delay_seconds", "From a decision to what closed it, in log time, of "+
		"rounds observed.", "the 99th percentile nears the window", delayBuckets, label{})[0]
	j.losses = newLosses(o)
	return j
}

func foreignRecords(o *owner) prometheus.Counter {
	return o.counter("hindsight_foreign_records_total",
		"Records in decisions, met by the joiner, and in feedback, met by deciders, that the service did not write: "+
			"passed over, and counted each time that one is met.",
		"it grows: someone else writes to the log")
}

func (j *JoinerMetrics) declareGuard() {
	j.guardAlarm = j.later("hindsight_guard_alarm",
		"1 if the guard has found the learner worse than the baseline by more than worse_by since its epoch began, "+
			"or has switched the mode for that and no mode was requested since, else 0; not there without a guard.",
		"it is 1: see /guard, and switch to the baseline if the guard has not")
	j.guardEvidence = j.later("hindsight_guard_evidence_ratio",
		"Evidence that the learner is worse than the baseline by more than worse_by, as a share of what raises the "+
			"alarm (of the logarithms).", "it passes 0.5")
	j.guardExcess = j.later("hindsight_guard_excess_loss",
		"Estimate of what the learner loses a round over the baseline, of the rounds that the guard counts.", "")
	j.guardHeld = j.later("hindsight_guard_held_rounds",
		"Rounds in which lose_at_most held the learner back since the guard's epoch began; not there without "+
			"lose_at_most.",
		"it still grows by most of the rounds when the learner has learned for long")
	j.guardForgone = j.later("hindsight_guard_forgone_gain",
		"Estimate of the loss that the learner's own law would have saved in these rounds, as a sum: the price of "+
			"lose_at_most.", "")
	j.candidates = newCandidates(j.owner)
}

// Guard shows what the guard has seen, if there is one, and whether it alarms.
func (j *JoinerMetrics) Guard(g *loop.Guard, alarm bool) {
	s, rules := g.Sums(), g.Rules()
	if rules == nil || !rules.Guard.On() {
		// an epoch before may have had one
		j.drop(j.guardAlarm, j.guardEvidence, j.guardExcess, j.guardHeld, j.guardForgone)
		return
	}
	if rules.Guard.LoseAtMost > 0 {
		j.guardHeld.Set(float64(s.Held))
		j.guardForgone.Set(s.Forgone)
	} else {
		j.drop(j.guardHeld, j.guardForgone)
	}
	j.guardAlarm.Set(truth(alarm))
	j.guardEvidence.Set(max(0, s.Peak) / -oracle.Log(rules.Guard.Alpha))
	j.guardExcess.Set(s.Excess / float64(max(s.Rounds, 1)))
}

// OutcomeCame notes an outcome of a round, and Decided a decision of a log time.
func (j *JoinerMetrics) OutcomeCame() { j.silence.outcome() }

// Decided notes a decision of a log time.
func (j *JoinerMetrics) Decided(at int64) { j.silence.decision(at) }

// Release counts a feedback.
func (j *JoinerMetrics) Release(f *codec.Feedback) {
	j.silence.release(f)
	if i := int(f.Fate) - int(codec.Observed); 0 <= i && i < len(j.fates) {
		j.fates[i].Inc()
	}
	if f.Fate == codec.Observed {
		j.delay.Observe(max(0, time.Duration(f.ClosedAt-f.Time).Seconds()))
	}
	if f.Reason == codec.ReasonOverflow {
		j.overflow.Inc()
	}
}

// Window shows how long rounds wait.
func (j *JoinerMetrics) Window(rules *loop.Rules) {
	switch {
	case rules == nil:
	case rules.Window.Rounds > 0:
		j.window.Set(math.Inf(1))
	default:
		j.window.Set(time.Duration(rules.Window.Nanos).Seconds())
	}
}

// Heart shows what waits.
func (j *JoinerMetrics) Heart(h *loop.Joiner, late latelosses.ByOutcome, scope *Scope, at time.Time) {
	j.pending.Set(float64(h.Pending()))
	j.bytes.Set(float64(h.PendingBytes()))
	head := lineHead{Partition: -1}
	if t, d := h.Head(); d != nil {
		head = lineHead{Partition: d.Partition, N: d.N, Time: t, ID: d.ID}
	}
	j.line.note(h, at)
	j.Age(at)
	j.lane.Set(float64(head.Partition))
	j.round.Set(float64(head.N))
	scope.wait(head)
	holding, waited := h.Held()
	j.holding.Set(float64(holding))
	if waited > j.waited {
		j.wait.Add(time.Duration(waited - j.waited).Seconds())
		j.waited = waited
	}
	j.logTime.Set(float64(h.Now()) / 1e9)
	j.missing.Set(j.silence.missing(h.Now(), scope.usual))
	j.losses.show(late)
}
