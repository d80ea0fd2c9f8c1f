package loop

import (
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// Look is what the learner at work thinks of a context.
type Look struct {
	Actions   []string
	Predicted []float64 // losses f̂ in [0,1], by action; nil: this learner predicts none
	Law       []float64 // that it would play now
	Gamma     float64
}

// Look asks the learner at work about a context that was decided before. It changes
// nothing, but decisions that a [Decider] of this replica filled in before are void.
func (r *Replica) Look(raw []byte) (Look, error) {
	if r.epoch == nil {
		return Look{}, ErrNoEpoch
	}
	if err := r.reader.parse(raw); err != nil {
		return Look{}, err
	}
	in := r.reader.input()
	var l Look
	for i := range in.Actions {
		l.Actions = append(l.Actions, string([]byte(in.Actions[i].Name)))
	}
	l.Law, l.Gamma = r.epoch.Learner.Propensities(nil, in)
	if o, ok := r.epoch.Learner.(interface{ Oracle() oracle.Regressor }); ok {
		l.Predicted = make([]float64, len(in.Actions))
		o.Oracle().Predict(l.Predicted, in)
	}
	return l, nil
}

// Match returns the probability with which the learner at work would do now what was played in
// the round of the next feedback, whose actions it had; ok is false for any other feedback, and for
// the record of an earlier stage. It changes nothing.
func (r *Replica) Match(f *codec.Feedback) (p float64, ok bool) {
	if r.epoch == nil || f.Stage > 0 || f.N != r.through+1 || f.Epoch < r.epoch.since() ||
		r.learn.parseAgain(f.Context) != nil {
		return 0, false
	}
	in, err := r.learn.played(f.Actions)
	if err != nil || f.Action < 0 || f.Action >= len(in.Actions) {
		return 0, false
	}
	r.law, _ = r.epoch.Learner.Propensities(r.law[:0], in)
	return r.law[f.Action], true
}
