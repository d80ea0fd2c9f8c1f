package watch

import (
	"math"

	"hindsight/pkg/codec"
)

// shadowed is what is kept of a law beside that of the baseline, which answered.
type shadowed struct {
	there     bool
	epoch     int64
	agrees    float64 // the law's probability of the action that was answered
	weight    float64 // that by the baseline's propensity
	uncovered float64 // the law's probability of actions that the baseline never plays
}

// shadow compares a law with the baseline's; without a law it says that there is none.
func shadow(would, law []float64, action int) shadowed {
	if len(would) == 0 || len(would) != len(law) {
		return shadowed{}
	}
	s := shadowed{there: true, agrees: would[action]}
	if law[action] > 0 {
		s.weight = would[action] / law[action]
	}
	for a, p := range law {
		if p == 0 {
			s.uncovered += would[a]
		}
	}
	return s
}

// besides compares the law beside that of the baseline. A round that was held out of a live epoch is none in mode
// shadow; s.mu is held.
func (s *Scope) besides(mode codec.Mode, epoch int64, would, law []float64, action int) shadowed {
	if mode == codec.Live && epoch > s.liveEpoch {
		s.liveEpoch = epoch
		for i := range s.decisions.all {
			s.decisions.all[i].shadow.forget(epoch)
		}
		for i := range s.feedback.all {
			s.feedback.all[i].shadow.forget(epoch)
		}
	}
	if epoch <= s.liveEpoch {
		return shadowed{}
	}
	x := shadow(would, law, action)
	x.epoch = epoch
	return x
}

func (s *shadowed) forget(epoch int64) {
	if s.epoch == epoch {
		*s = shadowed{}
	}
}

// maxUncovered is how much of the learner's law the baseline may leave out before the
// learner's losses are not estimated: the estimate may be wrong by as much, on the scale of losses.
const maxUncovered = 0.05

// shadowWorth says what the learner would have done in the last rounds of mode shadow, and what that
// would have been worth. What nothing is known of is NaN.
type shadowWorth struct {
	Decisions int     // of the last [windowSize], made in shadow
	Agreement float64 // mean probability that the learner agrees with the baseline

	Rounds    int     // of the last [windowSize] released, made in shadow and with a loss
	Uncovered float64 // mean share of the learner's law that the baseline never plays
	// estimate of what the learner would have lost a round over the baseline; NaN if Uncovered is over 5 %
	Excess float64
	StdErr float64 // of Excess, as if rounds were independent
}

func (w *decisionWindow) shadow(s *shadowWorth) {
	var sum float64
	for i := range w.n {
		if x := &w.all[i].shadow; x.there {
			s.Decisions++
			sum += x.agrees
		}
	}
	s.Agreement = sum / float64(s.Decisions)
}

// shadow estimates by importance weights w = would(a)/p(a), about the baseline's mean loss m:
// the mean of w·(loss − m). That has the same mean as that of w·loss − m, since w has mean 1
// where the baseline leaves nothing out, and less variance.
func (w *feedbackWindow) shadow(s *shadowWorth) {
	var loss, uncovered float64
	for i := range w.n {
		if x := &w.all[i]; x.inShadow() {
			s.Rounds++
			loss += x.loss
			uncovered += x.shadow.uncovered
		}
	}
	n := float64(s.Rounds) // 0: the quotients are NaN
	mean := loss / n
	s.Uncovered = uncovered / n
	if s.Excess, s.StdErr = math.NaN(), math.NaN(); !(s.Uncovered <= maxUncovered) {
		return
	}
	var sum, squares float64
	for i := range w.n {
		if x := &w.all[i]; x.inShadow() {
			e := x.shadow.weight * (x.loss - mean)
			sum += e
			squares += e * e
		}
	}
	s.Excess = sum / n
	s.StdErr = math.Sqrt(max(0, squares/n-s.Excess*s.Excess) / n)
}

func (r *released) inShadow() bool { return r.shadow.there && r.worth() }

// shadow says what the learner would have done where the baseline answered; s.mu is held.
func (s *Scope) shadow() shadowWorth {
	var out shadowWorth
	s.decisions.shadow(&out)
	s.feedback.shadow(&out)
	return out
}
