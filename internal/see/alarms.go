package see

import "time"

// Severities of alarms.
const (
	Wake = "wake" // someone, at once
	Look = "look" // today
)

// notReady is the alarm whose reason the process knows.
const notReady = "NotReady"

// Alarm is something that an operator must know of.
type Alarm struct {
	Name     string
	Expr     string        // PromQL over all processes of a model, which are one job
	For      time.Duration // how long it must hold
	Severity string
	Says     string // what is wrong
	Do       string // what to do about it

	Elsewhere bool // one process cannot judge it: that takes Prometheus
}

// Alarms returns all of them, the most urgent first.
func Alarms() []Alarm {
	return append(append(loopAlarms(), logAlarms()...), learnerAlarms()...)
}

// loopAlarms tell that the loop stands still or leaks.
func loopAlarms() []Alarm {
	const minute = time.Minute
	return []Alarm{
		{Name: "ProcessDown", Expr: `up{job=~"hindsight.*"} == 0`, For: minute, Severity: Wake, Elsewhere: true,
			Says: "A process does not answer.", Do: "Start it again; it recovers from the log. Its last lines on standard error say why it ended."},
		{Name: "NoProcess", Expr: `absent_over_time(hindsight_ready[1d]) or count by (job) (count_over_time(hindsight_ready[1d])) unless count by (job) (hindsight_ready)`, For: 2 * minute, Severity: Wake, Elsewhere: true,
			Says: "No process of a model shows its metrics, though one did within a day; or none ever did.", Do: "Start them, or mend what Prometheus scrapes (prometheus.yml)."},
		{Name: "CrashLoop", Expr: `changes(process_start_time_seconds{job=~"hindsight.*"}[1h]) > 3`, Severity: Wake, Elsewhere: true, // an hour: who restarts it may wait for 5 minutes each time, and it may live for as long
			Says: "A process ends and is started again and again: more than 3 times within the hour.", Do: "Its last lines on standard error, and its exit code, say why it ends (FAULTS.md)."},
		{Name: notReady, Expr: `hindsight_ready == 0 unless hindsight_standing_by == 1`, For: 2 * minute, Severity: Wake,
			Says: "A process cannot do its work now, and others do not do it for it.", Do: "Open /readyz: it says why in one line."},
		{Name: "NoDecider", Expr: `sum by (job) (hindsight_at_work{role="decider"}) == 0`, For: minute, Severity: Wake, Elsewhere: true,
			Says: "No decider is at work: nothing is decided.", Do: "Start a decider. If one runs, open its /readyz, and look whether it reaches the log and gets its share of the partitions."},
		{Name: "NoJoiner", Expr: `sum by (job) (hindsight_at_work{role="joiner"}) != 1`, For: minute, Severity: Wake, Elsewhere: true,
			Says: "Not exactly one joiner is at work: without one nothing is learned.", Do: "Start a feedback-joiner, or a decider without --joiner=false. If there are two, the older one is fenced off within seconds; else look at their logs."},
		{Name: "NoOutcomes", Expr: `hindsight_outcomes_missing > 10`, For: minute, Severity: Wake,
			Says: "Decisions are made and no outcome arrives, though more than 10 should have since the last one.", Do: "Look at whoever reports outcomes: is it running, does it write to this model's outcomes topic or ask NAME.outcome, with the decision's id? Until then rounds are skipped or imputed."},
		{Name: "JoinRatioFell", Expr: `hindsight_join_ratio < 0.5 * avg_over_time((hindsight_join_ratio >= 0)[1d:1m])`, For: 15 * minute, Severity: Look,
			Says: "Of the rounds released lately less than half as many have their outcome in time as before.", Do: "Outcomes come later, or some sources no longer report, or under other ids: see rejects by reason (late, orphan) and the delays."},
		{Name: "HeadOfLineStuck", Expr: `hindsight_head_of_line_overdue_seconds > 60`, For: 2 * minute, Severity: Wake,
			Says: "The oldest round waits for longer than its window: nothing behind it is learned.", Do: "The joiner stands still, or cannot read to the round's deadline. See /readyz, hindsight_joiner_lag_records and the joiner's log; replayer explain tells the round's life."},
		{Name: "ContextsLag", Expr: `min_over_time(hindsight_contexts_lag_records[5m]) > 1000`, For: minute, Severity: Wake,
			Says: "Contexts come faster than they are decided.", Do: "Start more deciders if there are more partitions than deciders; else look at hindsight_decision_seconds and the log's disks."},
		{Name: "FeedbackLag", Expr: `min_over_time(hindsight_feedback_lag_records[5m]) > 1000`, For: minute, Severity: Look,
			Says: "A decider learns more slowly than feedback is released: it decides with an old model.", Do: "Give it more CPU, fewer partitions a process, or a smaller model (max_features, oracle)."},
		{Name: "JoinerLag", Expr: `min_over_time(hindsight_joiner_lag_records[5m]) > 10000`, For: minute, Severity: Look,
			Says: "The joiner reads more slowly than decisions and outcomes are written.", Do: "Give it a process of its own (feedback-joiner) and CPU; look whether the log answers slowly."},
		{Name: "RequestsRefused", Expr: `sum by (job) (rate(hindsight_requests_refused_total{code="503"}[5m])) > 0`, For: 6 * minute, Severity: Wake,
			Says: "Requests have been answered with 503 again and again, for 6 minutes: nobody is ready to decide them, or there are too many.", Do: "See /readyz of the deciders. If they are ready it is overload: add deciders and partitions, or ask less. Callers retry with the same id."},
		{Name: "DecisionsSlow", Expr: `histogram_quantile(0.99, sum by (job, le) (rate(hindsight_decision_seconds_bucket{source="request"}[5m]))) > 0.25`, For: 5 * minute, Severity: Look, Elsewhere: true,
			Says: "One in a hundred requests waits for more than a quarter of a second.", Do: "The append to the log is most of it: look at the log's disks and network, then at the size of the model."},
		{Name: "ManyRejects", Expr: `sum by (job) (rate(hindsight_rejects_total[10m])) > 0.1 * sum by (job) (rate(hindsight_outcomes_total[10m])) and sum by (job) (increase(hindsight_rejects_total[10m])) > 10`, For: 10 * minute, Severity: Look,
			Says: "More than a tenth of what is reported is rejected.", Do: "See the reasons: late: lengthen the window; orphan: ids do not match; mismatch: another action was shown; malformed: /explain and the topic rejects keep the bytes."},
	}
}

// logAlarms tell of the log and of who owns it.
func logAlarms() []Alarm {
	const minute = time.Minute
	return []Alarm{
		{Name: "AppendErrors", Expr: `sum by (job, topic) (increase(hindsight_append_errors_total[5m])) > 0`, Severity: Wake,
			Says: "The log refused records, or did not say whether it has them.", Do: "Look at the process's log: no space left on device: make room, and an embedded log goes on by itself (a NATS server or broker of your own: start it anew); else broker away, rights. Nothing acknowledged is lost; the part opens itself again."},
		{Name: "StoreFills", Expr: `hindsight_store_bytes > 0.8 * hindsight_store_limit_bytes or hindsight_store_free_bytes < 0.1 * (hindsight_store_bytes + hindsight_store_free_bytes)`, For: 5 * minute, Severity: Look,
			Says: "The store of the embedded log has used four fifths of what it may hold, or its disk has little more room, a tenth of what the store has and could have: full, it takes no more decisions and outcomes.", Do: "Let the log forget what is old (--retention), or make room: a larger disk, and a larger number in the file limit of its folder, at the next start."},
		{Name: "OwnersFight", Expr: `increase(hindsight_fences_total[10m]) > 3`, Severity: Wake,
			Says: "Partitions change hands again and again.", Do: "Two processes believe that they own the same partition: two systems with one model name on one log, or a network that splits. Stop one."},
		{Name: "Restarts", Expr: `increase(hindsight_restarts_total[10m]) > 3`, Severity: Wake,
			Says: "A part stops with an error again and again.", Do: "Its log says the error each time (\"stopped; it will be opened again\")."},
		{Name: "LeaseLost", Expr: `increase(hindsight_lease_events_total{event="lost"}[10m]) > 0`, Severity: Look,
			Says: "A process lost a lease that it did not give back: it stood still for longer than the lease lives.", Do: "Look for pauses (CPU, memory, network) of that process."},
		{Name: "ForeignRecords", Expr: `increase(hindsight_foreign_records_total[10m]) > 0`, Severity: Wake,
			Says: "Someone else writes to decisions or feedback. Nothing stops for it.", Do: "Only the service may: take that right from all others (its log says where the records are), and run replayer verify."},
		{Name: "TailLost", Expr: `hindsight_eras_total > 0`, Severity: Wake,
			Says: "A log did not hold what the joiner had read, or had written: it has lost its tail, as a power failure may " +
				"take it. An era of the feedback log began, and what hung on what is gone was joined again.",
			Do: "The joiner's log names what is lost. Look at the disks and at the log's settings for durability (DEPLOY.md); " +
				"replayer verify says what can no longer be recomputed. It goes away with the joiner's next start."},
		{Name: "Overflow", Expr: `increase(hindsight_overflow_rounds_total[10m]) > 0`, Severity: Wake,
			Says: "Rounds are closed before their time because too many wait, or hold too much.", Do: "Find out why the head of the line waits; shorten the window, or raise --pending-mib where hindsight_pending_bytes has reached it."},
		{Name: "ManyPending", Expr: `hindsight_pending_rounds > 500000`, For: 5 * minute, Severity: Look,
			Says: "Half of the rounds that may wait do.", Do: "At 1,000,000 the oldest are closed without their outcomes. Shorten the window."},
		{Name: "SnapshotsFail", Expr: `increase(hindsight_snapshots_total{result="failed"}[1h]) > 0`, Severity: Look,
			Says: "The state of the learner cannot be stored.", Do: "A restart will take longer, and retention may drop what it needs. The log line \"snapshot not written\" says why."},
		{Name: "SnapshotDamaged", Expr: `hindsight_snapshots_total{result="damaged"} > 0`, Severity: Look,
			Says: "A snapshot in the log was found damaged when a decider started; it began from the one before.", Do: "Look at the log's disks, and run replayer verify. It goes away with the next start after the damaged one is dropped (the last 8 are kept)."},
		{Name: "SnapshotOld", Expr: `hindsight_snapshot_age_seconds > 86400 and delta(hindsight_learned_through[1h]) > 0`, Severity: Look,
			Says: "The last snapshot is a day old though the model learns.", Do: "Only the owner of partition 0 writes them: is it at work?"},
		{Name: "LogClockOff", Expr: `abs(time() - hindsight_log_time_seconds) > 300 and on (job) sum by (job) (rate(hindsight_outcomes_total[5m])) > 0`, For: 5 * minute, Severity: Look,
			Says: "The log's clock is minutes away from this machine's.", Do: "Set the clocks. Fates are by the log's clock alone and stay right; windows open and close by it."},
		{Name: "ReplicasDiffer", Expr: `max by (job) (hindsight_learned_through) - min by (job) (hindsight_learned_through) > 10000 or max by (job) (hindsight_epoch) != min by (job) (hindsight_epoch)`, For: 5 * minute, Severity: Look, Elsewhere: true,
			Says: "Deciders have learned differently far.", Do: "One lags: see hindsight_feedback_lag_records by process."},
	}
}

// learnerAlarms tell that what is learned, or what is promised of it, does not hold.
func learnerAlarms() []Alarm {
	const minute = time.Minute
	return []Alarm{
		{Name: "DrawsDoNotFollowLaws", Expr: `max by (job) (hindsight_draw_evidence) >= 10000`, Severity: Wake,
			Says: "Drawn actions do not follow the propensities that are logged with them.", Do: "No estimate from this log holds until it is understood. Run replayer verify, which names the first wrong decision. By chance this happens to one process in 10,000."},
		{Name: "WorseThanBaseline", Expr: `max by (job) (hindsight_guard_alarm) == 1`, Severity: Wake,
			Says: "The guard has found the learner worse than the baseline by more than the model allows.", Do: "See /guard and /mode. If the guard has switched the mode, it stays so and alarms until you ask for a mode: live again when the learner is mended, or the one that it chose. If not, switch to the baseline (curl localhost:9464/mode -H 'Content-Type: application/json' -d '{\"mode\":\"paused\"}', or apprentice to go on learning), or let the guard do it (guard: {then: shadow}): MODES.md."},
		{Name: "ClassRefuted", Expr: `max by (job) (hindsight_class_refuted) == 1`, Severity: Look,
			Says: "The data refute that any function of the class is the truth: the bounds that need one are void.", Do: "Fit another class (replayer fit), or use oracle: auto. Decisions go on."},
		{Name: "LateLossesDiffer", Expr: `hindsight_late_losses_differ == 1`, For: time.Hour, Severity: Look,
			Says: "Losses that come after the window differ from those in time: what is learned is biased.", Do: "Lengthen the window (a new version of the model file)."},
		{Name: "WorseThanUniform", Expr: `hindsight_recent_excess_loss > 0.05 and hindsight_recent_excess_loss > 3 * hindsight_recent_excess_loss_error`, For: 30 * minute, Severity: Look,
			Says: "The last rounds lost more than uniform play would have, by more than three standard errors.", Do: "Did the world change, or the meaning of the outcomes (loss for reward)? Roll back with warm: N, or compare models with replayer backtest."},
		{Name: "WorldChanged", Expr: `delta(hindsight_oracle_changes[10m]) > 0`, Severity: Look,
			Says: "What is played lost more than predicted, by more than chance explains: regressions were started anew.", Do: "Nothing must be done to go on: the model learns again. The decider's log says at which feedback, and which action. Look whether the world changed, or a feature, or the meaning or the noise of the outcomes. Falsely, between two changes, with probability 0.002 at most, if what is played loses, in expectation, no more than predicted."},
		{Name: "NothingExplored", Expr: `hindsight_propensity_entropy_ratio < 0.001 and on (job) sum by (job) (rate(hindsight_decisions_total[10m])) > 0`, For: 30 * minute, Severity: Look,
			Says: "One action gets nearly all probability in every round: a change would be seen late, and off-policy estimates have no support.", Do: "That is right if the world stands still. Else explore more (explore: cautious), or give every action a least chance (learner: {egreedy: 0.05})."},
		{Name: "FeaturesRefused", Expr: `delta(hindsight_refused_feature_values[10m]) > 0`, For: 10 * minute, Severity: Look,
			Says: "The model has no room for features that come: it reads them as 0.", Do: "Raise max_features, or send fewer distinct texts (no ids, no free text)."},
		{Name: "ExamplesRefused", Expr: `delta(hindsight_refused_examples[10m]) > 0`, For: 10 * minute, Severity: Look,
			Says: "The model has no room for actions that come, and does not learn them.", Do: "Name fewer actions, or use oracle: shared, which learns from the actions' features."},
	}
}
