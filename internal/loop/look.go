package loop

import "hindsight/pkg/oracle"

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
