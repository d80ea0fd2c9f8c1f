package loop

import (
	"errors"
	"fmt"
	"slices"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Warm teaches the fresh learner of an epoch feedback of the past, before the epoch
// begins.
type Warm struct {
	Learned int64 // feedbacks
	Passed  int64 // passed over: the epoch's rules do not accept them
	learner learner.Learner
	reader  *reader
	round   learner.Round
}

// NewWarm returns a teacher of e's learner.
func NewWarm(e Epoch) *Warm { return &Warm{learner: e.Learner, reader: newReader(e.Rules)} }

// Again learns a feedback as the replica learned it that had this model before.
func (w *Warm) Again(f *codec.Feedback) error {
	if err := learn(w.learner, w.reader, &w.round, f); err != nil {
		return err
	}
	w.Learned++
	return nil
}

var errOtherActions = errors.New("the model gives the context other actions")

// Refit learns a feedback of any epoch under the rules of the new one, or passes
// over one that these do not accept.
func (w *Warm) Refit(f *codec.Feedback) {
	err := w.reader.parse(f.Context)
	if err == nil && !slices.EqualFunc(w.reader.input().Actions, f.Actions, func(a oracle.Action, name string) bool { return a.Name == name }) {
		err = errOtherActions
	}
	if err == nil {
		err = learn(w.learner, w.reader, &w.round, f)
	}
	if err != nil {
		w.Passed++
		return
	}
	w.Learned++
}

// learn gives a feedback to a learner, its context read under the rules of rd.
func learn(l learner.Learner, rd *reader, round *learner.Round, f *codec.Feedback) error {
	if err := rd.parseAgain(f.Context); err != nil {
		return fmt.Errorf("feedback %d of round %q: %w", f.N, f.ID, err)
	}
	in := rd.input()
	if len(in.Actions) != len(f.Propensities) {
		return fmt.Errorf("feedback %d of round %q: %d propensities for %d actions: %w",
			f.N, f.ID, len(f.Propensities), len(in.Actions), codec.ErrCorrupt)
	}
	*round = learner.Round{
		Input: in, Action: f.Action, Propensities: f.Propensities, Gamma: f.Gamma,
		N: f.N, LearnedThrough: f.LearnedThrough, Decision: f.Round, Fate: learner.Fate(f.Fate), Loss: f.Loss,
	}
	l.Learn(round)
	return nil
}
