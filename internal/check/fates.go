package check

import (
	"math"
	"slices"

	"hindsight/pkg/codec"
)

// parseOutcome parses a record of outcomes.
func parseOutcome(r *record) *said {
	s := new(said)
	if s.err = codec.ParseOutcome(&s.Outcome, r.Value); s.err == nil {
		s.err = s.Validate()
	}
	return s
}

// said is an outcome, or what is wrong with it.
type said struct {
	codec.Outcome
	err error
}

// take gives a round that waits an outcome in time. It sets the round's fate, or returns why the outcome is rejected.
func (w *waiting) take(s *said, at *moment) string {
	if s.Action != "" && s.Action != w.Actions[w.Action] {
		return codec.ReasonMismatch
	}
	switch s.Kind {
	case codec.Named:
		return codec.ReasonMalformed
	case codec.Withdrawn:
		w.end(codec.WithdrawnRound, "", 0, at.time)
	case codec.Activated:
		return codec.ReasonMalformed
	default:
		loss, ok := w.rules.loss(s)
		if !ok {
			return codec.ReasonMalformed
		}
		w.end(codec.Observed, "", loss, at.time)
	}
	w.fate.OutcomePartition, w.fate.OutcomeOffset = at.partition, at.record.Offset
	return ""
}

// loss maps an outcome to [0,1]; false: it is out of the model's range.
func (r *Rules) loss(s *said) (float64, bool) {
	x := s.Value
	if x < r.Min || x > r.Max {
		if !r.Clip {
			return 0, false
		}
		x = math.Min(math.Max(x, r.Min), r.Max)
	}
	loss := (x - r.Min) / (r.Max - r.Min)
	if s.Kind == codec.Reward {
		loss = (r.Max - x) / (r.Max - r.Min)
	}
	return math.Min(math.Max(loss, 0), 1), true
}

// close ends the wait of a round without an outcome.
func (w *waiting) close(at int64, reason string) {
	if w.outs != nil {
		w.closeNamed(at, reason)
		return
	}
	if w.rules.Impute {
		w.end(codec.Imputed, reason, w.rules.DefaultLoss, at)
		return
	}
	w.end(codec.Skipped, reason, 0, at)
}

func (w *waiting) end(fate codec.Fate, reason string, loss float64, at int64) {
	w.fate = &codec.Feedback{Fate: fate, Reason: reason, Loss: loss, OutcomePartition: -1, OutcomeOffset: -1,
		ClosedAt: at}
}

// waits reports whether feedback waits for the rounds before it.
func (w *waiting) waits() bool {
	outstanding := w.N - 1 - w.LearnedThrough
	return w.rules == nil || !w.rules.Arrival && !(w.rules.Early && outstanding > (w.N-1)/3)
}

// reasonAfter is why an outcome of a round with a fate is rejected.
func reasonAfter(f *codec.Feedback, rules *Rules) string {
	if rules != nil && f.Fate == codec.Observed && slices.ContainsFunc(rules.Named,
		func(o Named) bool { return o.Last }) {
		return codec.ReasonLate
	}
	if f.Fate == codec.Observed || f.Fate == codec.WithdrawnRound {
		return codec.ReasonDuplicate
	}
	return codec.ReasonLate
}
