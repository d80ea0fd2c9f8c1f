package verify

import (
	"errors"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// old checks of a decision what needs no learner, for its state is gone: that the law is one
// that can be drawn from, and that the draw follows from it, the seed and the id. Where the
// rules of its model are known, all but the learner's own law is decided again.
func (d *decisionCheck) old(l *decisionLane, src loop.Source, id string, lost bool) error {
	v, got := d.v, &l.head
	e := v.models.epochs[got.Epoch]
	if lost {
		e = nil // its epoch may be lost too, and another have the number
	}
	v.count(&v.report.Decisions, Tally{TooOld: 1})
	v.report.Old.Drawn++
	if e != nil {
		v.report.Old.Ruled++
	}
	if err := got.Validate(); err != nil {
		field := "bytes"
		if e := (*codec.Error)(nil); errors.As(err, &e) {
			field = e.Field
		}
		l.wrong(field, "what can be decided", err)
		return nil
	}
	if e == nil {
		if !codec.SameContext(l.raw, got.Context) {
			_, want, have := bytesField(l.raw, got.Context)
			l.wrong("context", want, have)
		}
		if a := v.draw(l, got.Propensities); a != got.Action && got.Mode != codec.External && got.First.N == 0 {
			l.wrong("action", got.Actions[a], got.Actions[got.Action])
		}
		return nil
	}
	if l.ruledBy != e || l.ruled.Next() != got.N {
		l.ruledBy, l.ruled = e, l.newHeart(e.replica)
		l.ruled.Since = e.since
	}
	ok, err := d.again(l, l.ruled, src, id)
	if ok {
		l.learned(e.rules)
		if l.want.Mode != codec.External && l.want.First.N == 0 {
			l.want.Action = v.draw(l, l.want.Propensities)
		}
		l.compare()
	}
	return err
}

// learned takes from the decision at the head what only its learner knew: with a guard that holds back its mode, too.
func (l *decisionLane) learned(rules *loop.Rules) {
	want, got := &l.want, &l.head
	want.LearnedThrough, want.Era, want.Learned = got.LearnedThrough, got.Era, got.Learned
	if want.First.N > 0 { // what its draw was is all in the log
		return
	}
	if rules.Mode == codec.Live && rules.Guard.LoseAtMost > 0 && max(want.Mode, got.Mode) <= codec.Shadow {
		want.Mode, want.Would = got.Mode, append(want.Would[:0], got.Would...)
		copy(want.Propensities, got.Propensities)
	}
	if want.Mode != codec.External { // which has none
		want.Gamma = got.Gamma
	}
	if want.Mode == codec.Live && len(got.Propensities) == len(want.Propensities) {
		copy(want.Propensities, got.Propensities)
	}
	if len(got.Would) == len(want.Would) {
		copy(want.Would, got.Would)
	}
}

// draw draws again for the decision at a lane's head.
func (v *verification) draw(l *decisionLane, law []float64) int {
	return learner.Draw(law, learner.Uniform(v.Seed, v.Name, l.partition, l.head.N, l.head.ID))
}
