package service

import (
	"cmp"
	"context"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/internal/watch"
	"hindsight/internal/words"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
)

// lookLimit is how long the log may take to say where it ends.
const lookLimit = 2 * time.Second

// lookOn looks at the log from time to time: what waits there, and whether it answers.
func lookOn(ctx context.Context, look func(context.Context)) error {
	tick := time.NewTicker(watch.BeatEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		look(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// held returns why nothing can be appended to a log now, nil if the log does not know.
func held(log stream.Log) error {
	if h, ok := log.(stream.Holder); ok {
		return h.Held()
	}
	return nil
}

// lag returns how many records of a partition lie at and behind an offset, holes in
// the numbering included. Where the log shows people how far readers are it is told.
func lag(ctx context.Context, log stream.Log, topic string, partition int, read int64) (float64, error) {
	if r, ok := log.(stream.Reporter); ok {
		r.Report(topic, partition, read)
	}
	_, end, err := log.Bounds(ctx, topic, partition)
	return float64(max(0, end-read)), err
}

// look measures what waits for the decider. It runs beside the decider's loops.
func (d *Decider) look(outer context.Context) {
	ctx, cancel := context.WithTimeout(outer, lookLimit)
	defer cancel()
	contexts, err := lag(ctx, d.cfg.Log, d.topics.Contexts, d.cfg.Partition, d.at.contexts.Load())
	if err == nil {
		d.m.ContextsLag.Set(contexts)
		var feedback float64
		if feedback, err = lag(ctx, d.cfg.Log, d.topics.Feedback, 0, d.at.feedback.Load()); err == nil {
			d.m.FeedbackLag.Set(feedback)
			err = d.lookTail(ctx)
		}
	}
	if outer.Err() == nil {
		d.part.Reach(held(d.cfg.Log), err)
	}
	d.m.Age(time.Now())
	d.showCertificate()
}

// showCertificate publishes what bounds the regret; not while the decider is busy, which may
// be for as long as the log is away.
func (d *Decider) showCertificate() {
	if !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	ep := d.follower.Replica().Epoch()
	if ep == nil {
		return
	}
	d.m.Weights(ep.Learner)
	if l, ok := ep.Learner.(*learner.DAFA); ok && len(ep.Rules.Budgets) > 0 {
		budgets := l.Spending(nil)
		d.m.Missed(d.cfg.Metrics.Scope().Spends(d.follower.Replica().LearnedThrough(), budgets))
		d.warnStrange(budgets)
	}
	o := certify.Options{Outstanding: d.outstanding(), Arrival: ep.Rules.Arrival, Late: d.cfg.Insight.lateLosses(),
		Decided: d.rounds(d.appendOpen(nil, valuesOfSecond))}
	if f, ok := certify.Measure(ep.Learner, &o); ok {
		d.m.Certificate(&f)
	}
}

// warnStrange warns of costs in what may be another unit, at first and whenever there are twice as many.
func (d *Decider) warnStrange(budgets []learner.Spending) {
	for _, b := range budgets {
		n, warned := b.Strange, d.strange[b.Budget.Name]
		if n < warned { // another learner counts
			warned = 0
		}
		if d.cfg.Partition == 0 && n > 2*warned {
			d.strange[b.Budget.Name] = n
			d.cfg.Logger.Warn("costs are over 100 times what the model says they are about, or below a hundredth: "+
				"look whether "+
				"an outcome is in another unit, and at the constants", "budget", b.Budget.Name, "costs", n, "of",
				b.Costs)
		}
	}
}

// show publishes where the decider is. mu is held, or nobody else has the decider yet.
func (d *Decider) show() {
	d.m.Replica(d.follower.Replica())
	if e := d.follower.Replica().Epoch(); e != nil {
		d.at.definition.Store(d.follower.Epoch(e.Number))
		d.m.Mode.Set(float64(e.Rules.Mode))
		d.cfg.Metrics.Scope().Worth(e.Number, rewardsOf(e.Rules, false))
	}
	d.showOutstanding()
	d.at.feedback.Store(d.follower.In.Consumed())
	if d.cfg.Learned != nil {
		d.cfg.Learned(d.cfg.Partition, d.follower.Replica().LearnedThrough())
	}
}

// rewardsOf returns the range of the rewards that rounds have, by the model or as outcomes told; nil: they have losses.
func rewardsOf(r *loop.Rules, told bool) *words.Rewards {
	if r == nil || !r.Reward && !told {
		return nil
	}
	return &words.Rewards{Min: r.Range.Min, Max: r.Range.Max}
}

func (d *Decider) showOutstanding() {
	d.m.Outstanding.Set(float64(d.outstanding()))
}

// outstanding returns the decisions of the partition whose feedback is not yet learned.
func (d *Decider) outstanding() int64 {
	seen := d.follower.Rounds()[d.cfg.Partition] // those before it, too, in FIFO order
	if ep := d.follower.Replica().Epoch(); ep != nil && (ep.Rules.Arrival || ep.Rules.Early) &&
		len(d.follower.Rounds()) == 1 {
		seen = d.follower.Replica().LearnedThrough() // as many as there are feedbacks
	}
	return max(0, d.heart.Next()-1-seen)
}

// writeSnapshot writes a snapshot and counts it.
func (d *Decider) writeSnapshot(ctx context.Context, s *follow.Snapshot) error {
	err := d.follower.WriteSnapshot(ctx, s, d.cfg.Owner)
	d.cfg.Metrics.AppendError(watch.SnapshotsKind, err)
	if err != nil {
		d.m.Snapshots[watch.SnapshotFailed].Inc()
		return err
	}
	d.m.Snapshots[watch.SnapshotWritten].Inc()
	d.m.Snapshot(len(s.Bytes), time.Now())
	return nil
}

// look measures what waits for the joiner, and for how long. It runs beside the joiner's
// loop, and goes on if that stands still.
func (j *Joiner) look(outer context.Context) {
	j.m.Age(time.Now())
	ctx, cancel := context.WithTimeout(outer, lookLimit)
	defer cancel()
	var waits [2]float64
	var err error
	for i := range j.at {
		topic := [2]string{j.topics.Decisions, j.topics.Outcomes}[i/j.cfg.Partitions]
		var n float64
		if n, err = lag(ctx, j.cfg.Log, topic, i%j.cfg.Partitions, j.at[i].Load()); err != nil {
			break
		}
		waits[i/j.cfg.Partitions] += n
	}
	if err == nil {
		j.m.DecisionsLag.Set(waits[0])
		j.m.OutcomesLag.Set(waits[1])
	}
	var added error
	if err == nil {
		added, err = j.countPartitions(ctx)
	}
	if outer.Err() == nil {
		j.part.Reach(cmp.Or(held(j.cfg.Log), j.whyHeld(), added), err)
	}
}

// showEvery is how often the guard's figures are worked out anew.
const showEvery = 250 * time.Millisecond

// showControl publishes the mode, and now and then what the guard has seen.
func (j *Joiner) showControl(now time.Time) {
	last := j.epochs.Last
	if last == nil || now.Sub(j.shownAt) < showEvery {
		return
	}
	j.shownAt = now
	guard := j.Heart().Guard()
	page := guardPage(guard, last.Rec.Alarm())
	mode := ModePage{Mode: last.Rules.Mode.String(), Epoch: last.Rec.Epoch, Version: last.Rec.Version,
		Learner: last.Lineage(), Cause: last.Rec.Cause}
	j.cfg.Control.see(mode, page, j.showCandidates())
	j.m.Guard(guard, page.Alarm)
}

// show publishes where the joiner is.
func (j *Joiner) show() {
	for i := range j.at {
		j.at[i].Store(j.core.Consumed(i))
	}
	now := time.Now()
	j.m.Heart(j.Heart(), j.late.Losses, j.cfg.Metrics.Scope(), now)
	j.warnLate()
	j.showControl(now)
	j.cfg.Insight.see(j.late.Losses)
	if j.epochs.Last != nil {
		j.m.Epoch.Set(float64(j.epochs.Last.Rec.Epoch))
		rules := j.epochs.Rules(j.epochs.Last.Rec.Epoch)
		j.m.Window(rules)
		j.cfg.Metrics.Scope().Worth(j.epochs.Last.Rec.Epoch, rewardsOf(rules, j.Heart().Rewards()))
	}
}
