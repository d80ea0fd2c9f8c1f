package follow

import (
	"context"
	"errors"
	"fmt"
	"math"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
)

// lacks reports whether a snapshot was written by an earlier program, without something that its learner keeps now.
func (f *Follower) lacks(s *Snapshot) (bool, error) {
	ep, err := NewEpochs(f.epochs.build).AddSnapshot(s) // this replica has not begun it
	if err != nil {
		return false, err
	}
	l, ok := ep.Learner.(learner.Earlier)
	return ok && l.Lacks(s.learner), nil
}

// passOver reports whether to learn again from the first round rather than go on from a snapshot: it lacks something,
// and all feedback is there. Otherwise this replica would differ from one that saw all of it.
func (f *Follower) passOver(ctx context.Context, s *Snapshot) (bool, error) {
	lacks, err := f.lacks(s)
	if err != nil || !lacks {
		return false, err
	}
	first, _, err := f.log.Bounds(ctx, f.topics.Feedback, 0)
	if err != nil || first > join.LogStart {
		return false, err
	}
	f.logger.Info("the snapshot is of an earlier program: learning again from the first feedback", "feedback",
		s.Through)
	return true, nil
}

// unlearned names the feedback that a replica without it cannot do without.
func (f *Follower) unlearned(ctx context.Context, next int64, err error) error {
	if !errors.Is(err, loop.ErrGap) {
		return err
	}
	first, _, bounds := f.log.Bounds(ctx, f.topics.Feedback, 0)
	if bounds != nil {
		return errors.Join(err, bounds)
	}
	if first <= join.LogStart {
		return err
	}
	return fmt.Errorf("%w: retention has dropped feedback %d…%d, at offsets before %d, which no good snapshot has "+
		"learned: restore the log or the snapshots, or begin anew under another name",
		stream.ErrTruncated, f.heart.LearnedThrough()+1, next-1, first)
}

// checkTail refuses a feedback log whose marks tell of feedback that is gone and that no snapshot has learned.
func (f *Follower) checkTail(ctx context.Context) error {
	if f.heart.LearnedThrough() >= f.last {
		return nil
	}
	if err := f.unlearned(ctx, f.last+1, loop.ErrGap); errors.Is(err, stream.ErrTruncated) {
		return &stream.Error{Op: "recover", Topic: f.topics.Feedback, Offset: -1, Err: err}
	}
	return nil
}

// Announced reports whether a mark in the feedback log says that feedback was lost, which was learned in an era.
func (f *Follower) Announced(ctx context.Context, era, n int64) (found bool, err error) {
	err = stream.ScanBack(ctx, f.log, f.topics.Feedback, 0, math.MaxInt64, 1024, func(r *stream.Record) error {
		if r.Type != codec.TypeMark {
			return nil
		}
		m, err := codec.ParseFeedbackMark(r.Value)
		found = found || err == nil && (m.Lost >= n || m.Voids(era, n))
		return codec.UnlessForeign(err)
	}, func() bool { return found })
	return found, err
}
