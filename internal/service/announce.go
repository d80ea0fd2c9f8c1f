package service

import (
	"context"
	"time"

	"hindsight/pkg/codec"
)

// announce writes the model as an epoch record if the log does not have it.
func (j *Joiner) announce(ctx context.Context) error {
	s := j.cfg.Source
	fresh, err := s.Follows(j.epochs.Last, j.cfg.Partitions, j.cfg.seedHash())
	if err != nil {
		return err
	}
	if !fresh {
		return j.resume(ctx)
	}
	rec := s.Record(j.nextEpoch(), j.cfg.Partitions, j.cfg.seedHash(), j.Heart().LastN())
	if mode, ok := j.lost.modeBehind(j.epochs.Newest()); ok && mode != rec.Mode { // as somebody had asked
		rec.Mode, rec.Cause = mode, codec.CauseLost
	}
	if err := j.epochs.Plan(ctx, s, &rec, j.pause); err != nil {
		return err
	}
	return j.begin(ctx)
}

// nextEpoch returns a number that no epoch has had.
func (j *Joiner) nextEpoch() int64 { return 1 + max(j.epochs.Newest(), j.lost.epoch) }

// resume goes on with the model of the log. Where the record of an epoch behind the last one is gone
// another begins in its place.
func (j *Joiner) resume(ctx context.Context) error {
	last, mode := j.epochs.Last, j.epochs.Last.Rules.Mode
	if j.nextEpoch() > last.Rec.Epoch+1 {
		if lost, ok := j.lost.modeBehind(j.epochs.Newest()); ok {
			mode = lost
		}
		j.cfg.Logger.Error("the record of an epoch is gone, with the feedback log's tail or by retention: another begins",
			"lost", j.nextEpoch()-1, "mode", mode.String())
		return j.goOn(ctx, j.nextEpoch(), mode, codec.CauseLost)
	}
	if file := j.cfg.Source.Mode; file != mode {
		j.cfg.Logger.Warn("the mode that was asked for last holds, not the model file's", "mode", mode.String(),
			"file", file.String(), "cause", last.Rec.Cause)
	}
	return nil
}

// begin writes the epoch that is planned.
func (j *Joiner) begin(ctx context.Context) error {
	d := j.epochs.Last
	first, err := j.core.Append(ctx, d.Records())
	if err != nil {
		return err
	}
	j.epochs.Began(d.Rec.Epoch, first)
	j.shownAt = time.Time{}
	j.showControl(time.Now())
	j.cfg.Logger.Info("epoch begins", "model", d.Rec.Name, "version", d.Rec.Version, "epoch", d.Rec.Epoch,
		"mode", d.Rules.Mode.String(), "continues", d.Rec.Continues)
	return j.core.Mark(ctx)
}
