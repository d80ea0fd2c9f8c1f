package loop

import (
	"errors"
	"fmt"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Warm teaches the fresh learner of an epoch feedback of the past, before the epoch begins.
type Warm struct {
	Learned int64 // feedbacks
	Passed  int64 // passed over: the epoch's rules do not accept them
	learner learner.Learner
	reader  *reader
	round   learner.Round
}

// NewWarm returns a teacher of e's learner.
func NewWarm(e Epoch) *Warm { return &Warm{learner: e.Learner, reader: newReader(e.Rules)} }

// Again learns a feedback as the replica learned it that had this model before, paused or not at that time.
func (w *Warm) Again(f *codec.Feedback, paused bool) error {
	if err := teach(w.learner, w.reader, &w.round, f, nil, paused); err != nil {
		return err
	}
	if f.Stage == 0 {
		w.Learned++
	}
	return nil
}

var (
	errOtherActions = errors.New("the model has not the action that was played")
	errPaused       = errors.New("it was decided while paused")
	errNoOutcomes   = errors.New("it names no outcomes")
)

// Refit learns a feedback of any epoch under the rules of the new one, or passes over one that these do not accept.
// Actions are known by their names: where the new model gives the context others, the round is learned as one that
// another law played, if what it played is still an action.
func (w *Warm) Refit(f *codec.Feedback) {
	named := len(w.reader.rules.Named) > 0
	if f.Stage > 0 && !named {
		return // its round comes again
	}
	err := w.reader.parse(f.Context)
	if named && len(f.Outcomes) == 0 {
		err = errNoOutcomes
	}
	if f.Mode == codec.Paused {
		err = errPaused
	}
	borrowed := f.Mode != codec.Live
	if strange := errors.Is(err, errAction); strange || err == nil && !sameNames(w.reader.in.Actions, f.Actions) {
		err, borrowed = nil, true
		if !w.knows(f.Actions[f.Action]) {
			err = errOtherActions
		}
	}
	if err == nil {
		err = learn(w.learner, w.reader, &w.round, f, nil, learner.Fate(f.Fate), borrowed)
	}
	switch {
	case f.Stage > 0:
	case err != nil:
		w.Passed++
	default:
		w.Learned++
	}
}

// knows reports whether the learner can be told of an action that the model gives to
// other contexts. Policies advise on a whole round: theirs must be the same.
func (w *Warm) knows(action string) bool {
	if _, ok := w.learner.(interface{ Policies() learner.Policies }); ok {
		return false
	}
	_, ok := w.reader.actions[action]
	return ok || w.reader.actions == nil
}

// learn gives a feedback to a learner, its context, which is c if that is at hand, read under the rules of rd.
func learn(l learner.Learner, rd *reader, round *learner.Round, f *codec.Feedback, c *codec.Context, fate learner.Fate,
	borrowed bool) error {
	var in *oracle.Input
	var err error
	if c != nil {
		rd.ctx = c
	} else {
		err = rd.parseAgain(f.Context)
	}
	if err == nil {
		in, err = rd.played(f.Actions)
	}
	if err == nil && len(f.Propensities) != len(in.Actions) {
		err = fmt.Errorf("%d propensities for %d actions: %w", len(f.Propensities), len(in.Actions), codec.ErrCorrupt)
	}
	if err != nil {
		return fmt.Errorf("feedback %d of round %q: %w", f.N, f.ID, err)
	}
	*round = learner.Round{
		Input: in, Action: f.Action, Propensities: f.Propensities, Gamma: f.Gamma,
		N: f.N, LearnedThrough: f.LearnedThrough, Partition: f.Partition, Decision: f.Round, Fate: fate, Loss: f.Loss,
		Borrowed: borrowed,
	}
	switch {
	case len(rd.rules.Named) > 0:
		rd.outcomes(round, f)
	case f.Stage > 0:
		round.Partial, round.Loss = true, f.Outcomes[0].Value
	}
	l.Learn(round)
	return nil
}
