package replay

import (
	"fmt"
	"math"
	"strings"

	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// LateLosses are the losses that came after the window beside those in time: rounds
// that were observed, and rounds that were skipped or imputed and got a loss later
// ([loop.LateLosses]). Differ: the means differ by more than twice the standard error
// of their difference, and there are 30 of each or more. What is learned is biased
// then, since it leaves the late ones out.
type LateLosses struct {
	OnTime LossFigures `json:"on_time"`
	Late   LossFigures `json:"late"`
	Differ bool        `json:"differ"`
}

// LossFigures are the mean of losses in [0,1], nil of none, and its standard error, nil
// of fewer than two.
type LossFigures struct {
	N    int64    `json:"n"`
	Mean *float64 `json:"mean"`
	SE   *float64 `json:"se"`
}

func newLateLosses(l *loop.LateLosses) LateLosses {
	return LateLosses{OnTime: newLossFigures(&l.OnTime), Late: newLossFigures(&l.Late), Differ: l.Differ()}
}

func newLossFigures(m *loop.Moments) LossFigures {
	known := func(x float64) *float64 {
		if math.IsNaN(x) {
			return nil
		}
		return &x
	}
	return LossFigures{N: m.N, Mean: known(m.Mean()), SE: known(m.SE())}
}

// line compares the two for people, "" if nothing was late.
func (l *LateLosses) line() string {
	if l.Late.N == 0 {
		return ""
	}
	return words.Items("%s, against %s in time", l.Late.line(), l.OnTime.line())
}

// line is the mean, ± its standard error, and of how many.
func (f *LossFigures) line() string {
	if f.Mean == nil {
		return "none"
	}
	text := fmt.Sprintf("%.3f", *f.Mean)
	if f.SE != nil {
		text += fmt.Sprintf(" ± %.3f", *f.SE)
	}
	return text + " of " + words.Count(f.N)
}

// Warning says that losses which came late differ from those in time, "" if they do not.
func (l *LateLosses) Warning() string {
	if !l.Differ {
		return ""
	}
	side := "lower"
	if *l.Late.Mean < *l.OnTime.Mean {
		side = "higher"
	}
	return fmt.Sprintf("the losses that came late differ (%s, against %s in time): leaving them out biases what is learned, which takes losses to be %s than they are; lengthen the window",
		l.Late.line(), l.OnTime.line(), side)
}

// lateOutcomes knows the losses that rejects say came late, by round, in the order of the
// rejects.
type lateOutcomes map[string][]lateValue

type lateValue struct {
	kind  codec.OutcomeKind
	value float64
}

// addReject takes a reject that was not there before.
func (x lateOutcomes) addReject(r *codec.Reject) {
	var o codec.Outcome
	if r.Topic != outcomesTopic || r.Reason != codec.ReasonLate || codec.ParseOutcome(&o, r.Bytes) != nil {
		return // or its bytes were cut
	}
	if o.Kind == codec.Loss || o.Kind == codec.Reward {
		id := strings.Clone(r.ID)
		x[id] = append(x[id], lateValue{o.Kind, o.Value})
	}
}

// addFeedback adds the loss of a round to those in time, or to the late ones.
func (x lateOutcomes) addFeedback(l *loop.LateLosses, f *codec.Feedback, rules *loop.Rules) {
	switch {
	case f.Fate == codec.Observed:
		l.AddObserved(f.Epoch, f.Loss)
	case (f.Fate == codec.Skipped || f.Fate == codec.Imputed) && f.Reason != codec.ReasonDuplicateID:
		for _, o := range x[f.ID] {
			if l.AddLate(f.Epoch, rules, o.kind, o.value) {
				break
			}
		}
	}
}
