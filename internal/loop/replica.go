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

// Replica is one copy of the one learner. It follows the feedback log: Begin at each epoch record, Learn at each
// feedback. Two replicas that followed the same log equally far are equal to the bit.
type Replica struct {
	epoch   *Epoch
	reader  *reader // for deciding
	learn   *reader // for learning: apart, so that a decision's strings survive a Learn
	through int64
	era     int64 // of the feedback log
	round   learner.Round
	law     []float64 // scratch of Match
}

// NewReplica returns a replica that has seen nothing.
func NewReplica() *Replica { return &Replica{} }

// Epoch returns the epoch at work, nil before the first.
func (r *Replica) Epoch() *Epoch { return r.epoch }

// LearnedThrough returns τ: feedbacks 1..τ have been learned, or passed over.
func (r *Replica) LearnedThrough() int64 { return r.through }

// Era returns the era of the feedback log that was reached.
func (r *Replica) Era() int64 { return r.era }

// BeginEra begins an era, which decisions say from here on. One that is over is ignored.
func (r *Replica) BeginEra(era int64) { r.era = max(r.era, era) }

// Begin makes e the epoch at work, from its place in the feedback log on. An epoch with a number that is not higher
// than the one at work is a repeat and ignored. One that continues takes the learner over as it is, into its own if it
// has one, which may then be made for more actions. An error changes nothing.
func (r *Replica) Begin(e Epoch) error {
	if r.epoch != nil && e.Number <= r.epoch.Number {
		return nil
	}
	if e.Since > 0 {
		if err := r.goOn(&e); err != nil {
			return fmt.Errorf("epoch %d goes on with the learner of epoch %d: %w", e.Number, e.Since, err)
		}
	}
	r.begin(e)
	return nil
}

func (r *Replica) begin(e Epoch) {
	e.conserve()
	r.epoch = &e
	r.reader, r.learn = newReader(e.Rules), newReader(e.Rules)
}

// goOn gives e the learner at work.
func (r *Replica) goOn(e *Epoch) error {
	if r.epoch == nil || r.epoch.Number < e.Since || r.epoch.since() != e.Since {
		return ErrNoEpoch
	}
	now := r.epoch.Learner
	if e.Learner == nil {
		e.Learner = now
		return nil
	}
	state, err := now.AppendBinary(nil)
	if err != nil {
		return err
	}
	return e.Learner.UnmarshalBinary(state)
}

// Restore makes the replica equal to the one whose learner state was taken after
// feedback through, in epoch e. e.Learner must be fresh.
func (r *Replica) Restore(e Epoch, through int64, state []byte) error {
	if err := e.Learner.UnmarshalBinary(state); err != nil {
		return fmt.Errorf("restore the learner of epoch %d after feedback %d: %w", e.Number, through, err)
	}
	r.begin(e)
	r.through = through
	return nil
}

// Learn takes the next feedback of the log. One that was taken before is ignored; one that leaves a gap is an [ErrGap]
// and changes nothing. Feedback of an an epoch whose learner was another one is counted and not learned. c is the
// context of the feedback if the caller has parsed it, else nil.
func (r *Replica) Learn(f *codec.Feedback, c *codec.Context) error {
	switch {
	case f.N <= r.through:
		return nil
	case f.N > r.through+1:
		return fmt.Errorf("feedback %d after %d: %w", f.N, r.through, ErrGap)
	case r.epoch == nil:
		return fmt.Errorf("feedback %d: %w", f.N, ErrNoEpoch)
	}
	if f.Epoch >= r.epoch.since() {
		if err := teach(r.epoch.Learner, r.learn, &r.round, f, c, r.epoch.Rules.Mode == codec.Paused); err != nil {
			return err
		}
	}
	r.through = f.N
	return nil
}

// Decided returns a decision whose feedback is not learned as a round, for a certificate to evaluate. It is valid until
// the replica learns or is asked again. It fails for a decision of another learner, and for one that repeats a draw.
func (r *Replica) Decided(d *codec.Decision) (*learner.Round, error) {
	if r.epoch == nil || d.Epoch < r.epoch.since() || d.First.N > 0 {
		return nil, ErrNoEpoch
	}
	if err := r.learn.parseAgain(d.Context); err != nil {
		return nil, err
	}
	in, err := r.learn.played(d.Actions)
	if err != nil {
		return nil, err
	}
	r.round = learner.Round{Input: in, Action: d.Action, Propensities: d.Propensities, Gamma: d.Gamma,
		LearnedThrough: d.LearnedThrough, Decision: d.N, Borrowed: d.Mode != codec.Live}
	return &r.round, nil
}
