package service

import (
	"cmp"
	"context"
	"time"

	"hindsight/internal/certify"
	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/stream"
)

// lookLimit is how long the log may take to say where it ends.
const lookLimit = 2 * time.Second

// watch looks at the log from time to time: what waits there, and whether it answers.
func watch(ctx context.Context, look func(context.Context)) error {
	tick := time.NewTicker(beatEvery)
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
		d.m.contexts.Set(contexts)
		var feedback float64
		if feedback, err = lag(ctx, d.cfg.Log, d.topics.Feedback, 0, d.at.feedback.Load()); err == nil {
			d.m.feedback.Set(feedback)
			err = d.lookTail(ctx)
		}
	}
	if outer.Err() == nil {
		d.part.reach(held(d.cfg.Log), err)
	}
	d.m.age(time.Now())
	d.showCertificate()
}

// showCertificate publishes what bounds the regret; not while the decider is busy, which may
// be for as long as the log is away.
func (d *Decider) showCertificate() {
	if !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	ep := d.follower.heart.Epoch()
	if ep == nil {
		return
	}
	d.m.certificate.showWeights(&d.m.m.certificate, &d.m.gauges, ep.Learner)
	if f, ok := certify.Measure(ep.Learner, d.outstanding()); ok {
		d.m.certificate.show(&d.m.m.certificate, &d.m.gauges, &f)
	}
}

// show publishes where the decider is. mu is held, or nobody else has the decider yet.
func (d *Decider) show() {
	d.m.replica(d.follower)
	if e := d.follower.heart.Epoch(); e != nil {
		d.at.epoch.Store(e.Number)
		d.m.gauges.of(d.cfg.Metrics.modes.mode).Set(float64(e.Rules.Mode))
		d.cfg.Metrics.scope.Worth(e.Number, rewardsOf(e.Rules, false))
	}
	d.showOutstanding()
	d.at.feedback.Store(d.follower.in.consumed())
	if d.cfg.Learned != nil {
		d.cfg.Learned(d.cfg.Partition, d.follower.heart.LearnedThrough())
	}
}

// rewardsOf returns the range of the rewards that rounds have, by the model or as outcomes told;
// nil: they have losses.
func rewardsOf(r *loop.Rules, told bool) *words.Rewards {
	if r == nil || !r.Reward && !told {
		return nil
	}
	return &words.Rewards{Min: r.Range.Min, Max: r.Range.Max}
}

func (d *Decider) showOutstanding() {
	d.m.outstanding.Set(float64(d.outstanding()))
}

// outstanding returns the decisions of the partition whose feedback is not yet learned.
func (d *Decider) outstanding() int64 {
	seen := d.follower.rounds[d.cfg.Partition] // those before it, too, in FIFO order
	if ep := d.follower.heart.Epoch(); ep != nil && (ep.Rules.Arrival || ep.Rules.Early) && len(d.follower.rounds) == 1 {
		seen = d.follower.heart.LearnedThrough() // as many as there are feedbacks
	}
	return max(0, d.heart.Next()-1-seen)
}

// writeSnapshot writes a snapshot and counts it.
func (d *Decider) writeSnapshot(ctx context.Context, s *state, from int64) error {
	err := d.follower.writeSnapshot(ctx, s, from, d.cfg.Owner)
	d.cfg.Metrics.appendError(snapshotsKind, err)
	if err != nil {
		d.m.failed.Inc()
		return err
	}
	d.m.written.Inc()
	d.m.snapshot(d.follower.size, time.Now())
	return nil
}

// look measures what waits for the joiner, and for how long. It runs beside the joiner's
// loop, and goes on if that stands still.
func (j *Joiner) look(outer context.Context) {
	j.m.age(time.Now())
	ctx, cancel := context.WithTimeout(outer, lookLimit)
	defer cancel()
	var waits [2]float64
	var err error
	for i, in := range j.inputs {
		var n float64
		if n, err = lag(ctx, j.cfg.Log, in.topic, in.partition, j.at[i].Load()); err != nil {
			break
		}
		waits[i/j.cfg.Partitions] += n // decisions of all partitions, then outcomes
	}
	if err == nil {
		j.m.decisionsLag.Set(waits[0])
		j.m.outcomesLag.Set(waits[1])
	}
	var added error
	if err == nil {
		added, err = j.countPartitions(ctx)
	}
	if outer.Err() == nil {
		j.part.reach(cmp.Or(held(j.cfg.Log), j.whyHeld(), added), err)
	}
}

// showEvery is how often the guard's figures are worked out anew.
const showEvery = 250 * time.Millisecond

// showControl publishes the mode, and now and then what the guard has seen.
func (j *Joiner) showControl(now time.Time) {
	if j.epochs.last == nil || now.Sub(j.shownAt) < showEvery {
		return
	}
	j.shownAt = now
	cause := j.epochs.last.rec.Cause
	j.cfg.Control.see(modePage(j.epochs.last), guardPage(j.heart.Guard(), cause))
	j.cfg.Metrics.modes.show(&j.m.gauges[0], j.heart.Guard(), cause)
}

// show publishes where the joiner is.
func (j *Joiner) show() {
	for i, in := range j.inputs {
		j.at[i].Store(in.consumed())
	}
	now := time.Now()
	j.m.heart(j.heart, j.cfg.Metrics.scope, now)
	j.warnLate()
	j.showControl(now)
	j.cfg.Insight.see(j.heart.LateLosses())
	if j.epochs.last != nil {
		j.m.epoch.Set(float64(j.epochs.last.rec.Epoch))
		rules := j.epochs.rules(j.epochs.last.rec.Epoch)
		j.m.showWindow(rules)
		j.cfg.Metrics.scope.Worth(j.epochs.last.rec.Epoch, rewardsOf(rules, j.heart.Rewards()))
	}
}
