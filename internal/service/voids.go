package service

import (
	"context"
	"errors"
	"math"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// errVoid reports a snapshot whose feedback was lost and may have been given anew,
// otherwise.
var errVoid = errors.New("the feedback log had lost its tail behind it")

// findVoid finds the snapshots of feedback that the log no longer holds: what is
// learned next is not what those snapshots learned. Every mark names them, from the
// first record on that is added to the feedback log.
func (j *Joiner) findVoid(ctx context.Context) error {
	through, epoch := j.heart.LastN(), int64(0)
	if j.epochs.last != nil {
		epoch = j.epochs.last.rec.Epoch
	}
	_, end, err := j.cfg.Log.Bounds(ctx, j.topics.Snapshots, 0)
	if err != nil {
		return err
	}
	var void []codec.SnapshotRef
	err = scan(ctx, j.cfg.Log, j.topics.Snapshots, 0, stream.Earliest, end, func(r *stream.Record) error {
		c, err := codec.ParseSnapshot(r.Value)
		if r.Type != "" || err != nil {
			return nil // it is no use to anyone
		}
		ref := codec.SnapshotRef{SHA256: c.SHA256}
		known := slices.Contains(j.void, ref)
		if !known && c.LearnedThrough <= through && c.Epoch <= epoch || slices.Contains(void, ref) {
			return nil
		}
		void = append(void, ref)
		if !known {
			j.lost.void = true
			j.lost.learned = max(j.lost.learned, c.LearnedThrough)
		}
		return nil
	})
	j.void = void
	return err
}

// lastMark returns the last mark of the feedback log, an empty one if there is none.
func lastMark(ctx context.Context, log stream.Log, topic string) (m codec.FeedbackMark, err error) {
	err = stream.ScanBack(ctx, log, topic, 0, math.MaxInt64, 1024, func(r *stream.Record) error {
		if r.Type != codec.TypeMark {
			return nil
		}
		x, err := codec.ParseFeedbackMark(r.Value)
		if err == nil {
			m = x
		}
		return unlessForeign(err)
	}, func() bool { return m.V != 0 })
	return m, err
}
