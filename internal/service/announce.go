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
	if j.epochs.last != nil {
		if err := j.regain(ctx); err != nil {
			return err
		}
	}
	if last := j.epochs.last; !fresh {
		if modeOf(s.Model) != last.rules.Mode {
			j.cfg.Logger.Warn("the mode that was asked for last holds, not the model file's", "mode", last.rules.Mode.String(), "file", modeOf(s.Model).String(), "cause", last.rec.Cause)
		}
		return nil
	}
	_, first, err := j.cfg.Log.Bounds(ctx, j.topics.Feedback, 0)
	if err != nil {
		return err
	}
	number := int64(1)
	if j.epochs.last != nil {
		number = j.epochs.last.rec.Epoch + 1
	}
	number = max(number, j.lost.epoch, j.afterDropped()) // decisions were made in it, and its record is lost
	rec := s.record(number, j.cfg.Partitions, j.cfg.seedHash(), j.heart.LastN())
	j.lost.keepMode(&rec)
	if err := j.planKeep(&rec); err != nil {
		return err
	}
	if err := j.planWarm(ctx, &rec, first); err != nil {
		return err
	}
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

// begin writes an epoch that is defined, with its class records before it.
func (j *Joiner) begin(ctx context.Context, rec *codec.Epoch, classes []codec.Class) error {
	if err := j.feedback.Flush(ctx); err != nil {
		return err
	}
	_, first, err := j.cfg.Log.Bounds(ctx, j.topics.Feedback, 0)
	if err != nil {
		return err
	}
	for _, c := range classes {
		if _, err := j.feedback.Append(ctx, &stream.Record{Type: codec.TypeClass, Value: codec.AppendClass(nil, &c)}); err != nil {
			return err
		}
	}
	if _, err := j.feedback.Append(ctx, &stream.Record{Type: codec.TypeEpoch, Value: codec.AppendEpoch(nil, rec)}); err != nil {
		return err
	}
	if err := j.feedback.Flush(ctx); err != nil {
		return err
	}
	j.offsets[rec.Epoch] = first
	rules := j.epochs.rules(rec.Epoch)
	j.heart.Guard().Begin(rec.Epoch, rec.Continues > 0, rules)
	j.shownAt = time.Time{}
	j.showControl(time.Now())
	j.cfg.Logger.Info("epoch begins", "model", rec.Name, "version", rec.Version, "epoch", rec.Epoch, "mode", rules.Mode.String(), "continues", rec.Continues)
	return j.mark(ctx)
}
