package service

import (
	"context"
	"errors"

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
