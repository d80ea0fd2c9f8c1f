package service

import (
	"context"
	"time"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// announce writes the model as an epoch record if the log does not have it.
func (j *Joiner) announce(ctx context.Context) error {
	s := j.cfg.Source
	s.goOn(j.epochs.last)
	fresh, err := s.follows(j.epochs.last, j.cfg.Partitions, j.cfg.seedHash())
	if err != nil {
		return err
	}
	if !fresh {
		return j.resume(ctx)
	}
	_, first, err := j.cfg.Log.Bounds(ctx, j.topics.Feedback, 0)
	if err != nil {
		return err
	}
	rec := s.record(j.nextEpoch(), j.cfg.Partitions, j.cfg.seedHash(), j.Heart().LastN())
	if mode, ok := j.lost.modeBehind(j.epochs.newest()); ok && mode != rec.Mode { // as somebody had asked
		rec.Mode, rec.Cause = mode, causeLost
	}
	if err := j.planKeep(&rec); err != nil {
		return err
	}
	if err := j.planWarm(ctx, &rec, first); err != nil {
		return err
	}
	rec.SHA256 = hexSum(rec.LoggedModel())
	ep, err := j.epochs.define(&rec, s.Files)
	if err != nil {
		return err
	}
	if err := j.tryWarm(ctx, &rec, ep, first); err != nil {
		return err
	}
	if err := j.tryKeep(&rec, ep); err != nil {
		return err
	}
	return j.begin(ctx, &rec, classRecords(s.Order, s.Files))
}

// nextEpoch returns a number that no epoch has had.
func (j *Joiner) nextEpoch() int64 { return 1 + max(j.epochs.newest(), j.lost.epoch) }

// resume goes on with the model of the log. Where the record of an epoch behind the last one is gone
// another begins in its place.
func (j *Joiner) resume(ctx context.Context) error {
	last, mode := j.epochs.last, j.epochs.last.rules.Mode
	if j.nextEpoch() > last.rec.Epoch+1 {
		if lost, ok := j.lost.modeBehind(j.epochs.newest()); ok {
			mode = lost
		}
		j.cfg.Logger.Error("the record of an epoch is gone, with the feedback log's tail or by retention: another begins",
			"lost", j.nextEpoch()-1, "mode", mode.String())
		return j.goOn(ctx, j.nextEpoch(), mode, causeLost)
	}
	if file := j.cfg.Source.Mode; file != mode {
		j.cfg.Logger.Warn("the mode that was asked for last holds, not the model file's", "mode", mode.String(),
			"file", file.String(), "cause", last.rec.Cause)
	}
	return nil
}

// begin writes an epoch that is defined, with its class records before it.
func (j *Joiner) begin(ctx context.Context, rec *codec.Epoch, classes []codec.Class) error {
	var records []stream.Record
	for i := range classes {
		records = append(records, stream.Record{Type: codec.TypeClass, Value: codec.AppendClass(nil, &classes[i])})
	}
	first, err := j.core.Append(ctx, append(records, stream.Record{Type: codec.TypeEpoch, Value: codec.AppendEpoch(nil, rec)}))
	if err != nil {
		return err
	}
	j.epochs.offsets[rec.Epoch] = first
	j.shownAt = time.Time{}
	j.showControl(time.Now())
	j.cfg.Logger.Info("epoch begins", "model", rec.Name, "version", rec.Version, "epoch", rec.Epoch,
		"mode", j.epochs.rules(rec.Epoch).Mode.String(), "continues", rec.Continues)
	return j.core.Mark(ctx)
}
