package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hindsight/internal/intake"
	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// checkTail refuses a log of decisions whose records are all gone: which contexts were
// decided, and under which numbers, is not known then. told is whether any record told
// of positions.
func (d *Decider) checkTail(t stream.Tail, told bool) error {
	if told || t.First <= join.LogStart {
		return nil
	}
	err := join.Dropped(d.topics.Decisions, d.cfg.Partition, 0, t.First,
		"and the last of them said which contexts are decided: going on would decide again what contexts still hold")
	if d.cfg.AcceptLoss {
		d.cfg.Logger.Error(join.GoingOn, "error", err)
		return nil
	}
	return err
}

// openContexts begins to read contexts. Those that retention dropped before they were
// read end it, or are passed, which a mark says before anything behind them is decided.
func (d *Decider) openContexts(ctx context.Context, from int64) (err error) {
	c := &d.cfg
	d.contexts, err = intake.Open(ctx, c.Log, d.topics.Contexts, c.Partition, from)
	if !errors.Is(err, stream.ErrTruncated) {
		return err
	}
	err = join.MissingFrom(ctx, c.Log, d.topics.Contexts, c.Partition, from, err, "which nobody has decided")
	if !c.AcceptLoss {
		return err
	}
	c.Logger.Error(join.GoingOn, "error", err)
	if d.contexts, err = intake.Open(ctx, c.Log, d.topics.Contexts, c.Partition, stream.Earliest); err != nil {
		return err
	}
	d.heart.Pass(d.contexts.Next)
	return d.mark(ctx, codec.DecisionMark{})
}

// CheckTopics refuses a model some of whose topics are gone: made again they would be
// empty, and what they said forgotten in silence. They are made in one order, so that
// one that is missing before one that is there was deleted.
func CheckTopics(ctx context.Context, log stream.Log, name string) error {
	t := join.TopicsOf(name)
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
			return fmt.Errorf("model %q: %w: %s is gone, but %s is there: somebody deleted it; %s", name, stream.ErrNotFound, missing, there, join.AcceptLoss)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lastRetry / 20):
		}
	}
}
