package loop

import "hindsight/pkg/codec"

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
