package loop

import (
	"errors"
	"fmt"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

var (
	// ErrGap reports that records are missing before the one given.
	ErrGap = errors.New("records are missing")
	// ErrNoEpoch reports data before the first epoch.
	ErrNoEpoch = errors.New("no epoch has begun")
)

// Replica is one copy of the one learner. It follows the feedback log: Begin at
// each epoch record, Learn at each feedback. Two replicas that followed the same
// log equally far are equal to the bit.
type Replica struct {
	epoch   *Epoch
	reader  *reader // for deciding
	learn   *reader // for learning: apart, so that a decision's strings survive a Learn
	through int64
	round   learner.Round
}

// NewReplica returns a replica that has seen nothing.
func NewReplica() *Replica { return &Replica{} }

// Epoch returns the epoch at work, nil before the first.
func (r *Replica) Epoch() *Epoch { return r.epoch }

// LearnedThrough returns τ: feedbacks 1..τ have been learned, or passed over.
func (r *Replica) LearnedThrough() int64 { return r.through }

// Begin makes e the epoch at work, from its place in the feedback log on. An epoch
// with a number that is not higher than the one at work is a repeat and ignored.
func (r *Replica) Begin(e Epoch) {
	if r.epoch != nil && e.Number <= r.epoch.Number {
		return
	}
	r.epoch = &e
	r.reader, r.learn = newReader(e.Rules), newReader(e.Rules)
}

// Restore makes the replica equal to the one whose learner state was taken after
// feedback through, in epoch e. e.Learner must be fresh.
func (r *Replica) Restore(e Epoch, through int64, state []byte) error {
	if err := e.Learner.UnmarshalBinary(state); err != nil {
		return fmt.Errorf("restore the learner of epoch %d after feedback %d: %w", e.Number, through, err)
	}
	r.epoch = nil
	r.Begin(e)
	r.through = through
	return nil
}

// Learn takes the next feedback of the log. One that was taken before is ignored;
// one that leaves a gap is an [ErrGap] and changes nothing. Feedback of an
// older epoch is counted and not learned.
func (r *Replica) Learn(f *codec.Feedback) error {
	switch {
	case f.N <= r.through:
		return nil
	case f.N > r.through+1:
		return fmt.Errorf("feedback %d after %d: %w", f.N, r.through, ErrGap)
	case r.epoch == nil:
		return fmt.Errorf("feedback %d: %w", f.N, ErrNoEpoch)
	}
	if f.Epoch == r.epoch.Number {
		if err := learn(r.epoch.Learner, r.learn, &r.round, f); err != nil {
			return err
		}
	}
	r.through = f.N
	return nil
}
