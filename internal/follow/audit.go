package follow

import (
	"context"
	"errors"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/stream"
)

// Take learns from the next record. Damage is a [codec.ErrCorrupt].
func (f *Follower) Take(ctx context.Context, r *stream.Record) error { return corrupt(f.take(ctx, r)) }

// TakeFrom begins at an epoch record, whose class records were taken before it, after feedback that is not known.
func (f *Follower) TakeFrom(ctx context.Context, r *stream.Record, through int64) error {
	rec, err := codec.ParseEpoch(r.Value)
	if err != nil {
		return err
	}
	ep, err := f.epochs.addEpoch(&rec)
	if err != nil {
		return err
	}
	if err := f.warm(ctx, r, ep); err != nil {
		return err
	}
	ep.Since = 0
	fresh, err := ep.Learner.AppendBinary(nil)
	if err != nil {
		return err
	}
	return f.heart.Restore(ep, through, fresh)
}

// AdoptRounds fills in the last rounds of partitions of which no feedback was seen, after a TakeFrom.
func (f *Follower) AdoptRounds(rounds []int64) {
	for p, n := range rounds {
		if p < len(f.rounds) && f.rounds[p] == 0 {
			f.rounds[p] = n
		}
	}
}

// AppendState appends the bytes of a snapshot taken now.
func (f *Follower) AppendState(dst []byte) ([]byte, error) {
	s := f.Snapshot()
	if s == nil {
		return dst, errNoSnapshot
	}
	return append(dst, s.Bytes...), nil
}

var errNoSnapshot = errors.New("the learner has no snapshot")

// AppendEarlierState appends the bytes of a snapshot as an earlier program would have
// taken it now; none if there was no other layout.
func (f *Follower) AppendEarlierState(dst []byte) ([]byte, error) {
	ep := f.heart.Epoch()
	if ep == nil {
		return dst, errNoSnapshot
	}
	l, ok := ep.Learner.(learner.Earlier)
	if !ok {
		return dst, nil
	}
	s, err := f.snapshotOf(l.AppendEarlier)
	if err != nil {
		return dst, err
	}
	return append(dst, s.Bytes...), nil
}
