package service

import (
	"context"
	"errors"

	"hindsight/internal/join"
	"hindsight/pkg/learner"
)

// lacks reports whether a snapshot was written by an earlier program, without something
// that its learner keeps now.
func (f *follower) lacks(s *state) (bool, error) {
	ep, err := newEpochs(f.epochs.build).define(&s.rec, s.files) // this replica has not begun it
	if err != nil {
		return false, err
	}
	l, ok := ep.Learner.(learner.Earlier)
	return ok && l.Lacks(s.learner), nil
}

// passOver reports whether to learn again from the first round rather than go on from a
// snapshot: it lacks something, and all feedback is there. Otherwise this replica would
// differ from one that saw all of it.
func (f *follower) passOver(ctx context.Context, s *stored) (bool, error) {
	lacks, err := f.lacks(&s.state)
	if err != nil || !lacks {
		return false, err
	}
	first, _, err := f.log.Bounds(ctx, f.topics.Feedback, 0)
	if err != nil || first > join.LogStart {
		return false, err
	}
	f.logger.Info("the snapshot is of an earlier program: learning again from the first feedback", "feedback", s.state.through)
	return true, nil
}

// AppendEarlierState appends the bytes of a snapshot as an earlier program would have
// taken it now; none if there was no other layout.
func (a *Audit) AppendEarlierState(dst []byte) ([]byte, error) {
	ep := a.f.heart.Epoch()
	if ep == nil {
		return dst, errors.New("the learner has no snapshot")
	}
	l, ok := ep.Learner.(learner.Earlier)
	if !ok {
		return dst, nil
	}
	s, err := a.f.stateOf(l.AppendEarlier)
	if err != nil {
		return dst, err
	}
	return append(dst, s.bytes...), nil
}
