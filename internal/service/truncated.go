package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// logStart is the highest offset at which a log begins that has lost nothing. Kafka's
// begin at 0, NATS's at 1; nothing of weight happens in less records than that.
const logStart = 2

// acceptLoss says how to go on all the same.
const acceptLoss = "restore the log, or start with --accept-loss to go on without them"

// dropped makes the error for records that retention has dropped before they were
// read: offsets from to before first. what says which they are and why it matters.
func dropped(topic string, partition int, from, first int64, what string) error {
	return &stream.Error{Op: "recover", Topic: topic, Partition: partition, Offset: from,
		Err: fmt.Errorf("%w: retention has dropped the records at offsets %d…%d, %s; %s", stream.ErrTruncated, from, first-1, what, acceptLoss)}
}

// missingFrom turns an error of reading at from into one that says up to where the
// records are gone, if that is what it is.
func missingFrom(ctx context.Context, log stream.Log, topic string, partition int, from int64, err error, what string) error {
	if !errors.Is(err, stream.ErrTruncated) {
		return err
	}
	first, _, bounds := log.Bounds(ctx, topic, partition)
	if bounds != nil {
		return errors.Join(err, bounds)
	}
	return dropped(topic, partition, from, first, what)
}

// checkTail refuses a log of decisions whose records are all gone: which contexts were
// decided, and under which numbers, is not known then. told is whether any record told
// of positions.
func (d *Decider) checkTail(t stream.Tail, told bool) error {
	if told || t.First <= logStart {
		return nil
	}
	err := dropped(d.topics.Decisions, d.cfg.Partition, 0, t.First,
		"and the last of them said which contexts are decided: going on would decide again what contexts still hold")
	if d.cfg.AcceptLoss {
		d.cfg.Logger.Error("going on without records, as --accept-loss says", "error", err)
		return nil
	}
	return err
}

// unlearned names the feedback that a replica without it cannot do without.
func (f *follower) unlearned(ctx context.Context, next int64, err error) error {
	if !errors.Is(err, loop.ErrGap) {
		return err
	}
	first, _, bounds := f.log.Bounds(ctx, f.topics.Feedback, 0)
	if bounds != nil {
		return errors.Join(err, bounds)
	}
	if first <= logStart {
		return err
	}
	return fmt.Errorf("%w: retention has dropped feedback %d…%d, at offsets before %d, which no good snapshot has learned: restore the log or the snapshots, or begin anew under another name",
		stream.ErrTruncated, f.heart.LearnedThrough()+1, next-1, first)
}

// checkTail refuses a feedback log that holds no feedback and no mark any more: how far it
// had come is not known then.
func (j *Joiner) checkTail(t stream.Tail) error {
	if t.First <= logStart {
		return nil
	}
	err := dropped(j.topics.Feedback, 0, 0, t.First, "and with them what was joined and learned: going on would begin anew")
	if j.cfg.AcceptLoss {
		j.cfg.Logger.Error("going on without records, as --accept-loss says", "error", err)
		return nil
	}
	return err
}

// checkTail refuses a feedback log whose marks tell of feedback that is gone and that
// no snapshot has learned.
func (f *follower) checkTail(ctx context.Context) error {
	if f.heart.LearnedThrough() >= f.last {
		return nil
	}
	if err := f.unlearned(ctx, f.last+1, loop.ErrGap); errors.Is(err, stream.ErrTruncated) {
		return &stream.Error{Op: "recover", Topic: f.topics.Feedback, Offset: -1, Err: err}
	}
	return nil
}

// epochsOfSnapshots learns the epochs whose records the feedback log no longer has
// from the snapshots, which hold them.
func (j *Joiner) epochsOfSnapshots(ctx context.Context) error {
	return readSnapshots(ctx, j.cfg.Log, j.topics.Snapshots, &codec.FeedbackMark{Void: j.void}, func(s *stored, err error) error {
		n := s.state.rec.Epoch
		if err != nil || j.epochs.rules(n) != nil {
			return nil // of one that is no use a decider says so
		}
		if _, at := j.offsets[n]; !at {
			return nil // the feedback log does not know of it
		}
		_, err = j.epochs.define(&s.state.rec, s.state.files)
		return err
	})
}

// openContexts begins to read contexts. Those that retention dropped before they were
// read end it, or are passed, which a mark says before anything behind them is decided.
func (d *Decider) openContexts(ctx context.Context, from int64) (err error) {
	c := &d.cfg
	d.contexts, err = openInput(ctx, c.Log, d.topics.Contexts, c.Partition, from, d.seen.time)
	if !errors.Is(err, stream.ErrTruncated) {
		return err
	}
	err = missingFrom(ctx, c.Log, d.topics.Contexts, c.Partition, from, err, "which nobody has decided")
	if !c.AcceptLoss {
		return err
	}
	c.Logger.Error("going on without records, as --accept-loss says", "error", err)
	if d.contexts, err = openInput(ctx, c.Log, d.topics.Contexts, c.Partition, stream.Earliest, d.seen.time); err != nil {
		return err
	}
	d.heart.Pass(d.contexts.next)
	return d.mark(ctx, codec.DecisionMark{})
}

// afterDropped returns the number after the last epoch of which the feedback log knows,
// if retention has dropped its record and no snapshot has it; else 0. What it was is not
// known then: another begins, even if it is the same.
func (j *Joiner) afterDropped() int64 {
	var last int64
	for n := range j.offsets {
		last = max(last, n)
	}
	if last == 0 || j.epochs.rules(last) != nil {
		return 0
	}
	j.cfg.Logger.Error("the record of an epoch was dropped by retention, and no snapshot holds it: another begins, and learns anew", "epoch", last)
	return last + 1
}

// CheckTopics refuses a model some of whose topics are gone: made again they would be
// empty, and what they said forgotten in silence. They are made in one order, so that
// one that is missing before one that is there was deleted.
func CheckTopics(ctx context.Context, log stream.Log, name string) error {
	t := TopicsOf(name)
	order := []string{t.Contexts, t.Decisions, t.Outcomes, t.Feedback, t.Rejects, t.Snapshots}
	for start := time.Now(); ; { // a broker may learn later than another of what is new
		var missing, absent, there string
		for _, topic := range order {
			switch _, err := log.Partitions(ctx, topic); {
			case err == nil:
				missing, there = absent, topic
			case !errors.Is(err, stream.ErrNotFound):
				return err
			case absent == "":
				absent = topic
			}
		}
		if missing == "" {
			return nil
		}
		if time.Since(start) > lookLimit {
			return fmt.Errorf("model %q: %w: %s is gone, but %s is there: somebody deleted it; %s", name, stream.ErrNotFound, missing, there, acceptLoss)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lastRetry / 20):
		}
	}
}
