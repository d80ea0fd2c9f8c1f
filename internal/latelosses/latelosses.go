// Package latelosses says whether the losses that came after the window are like those in time, from what the logs of a
// run have: of a backtest, of a live system, of an audit. The joiner counts them as it goes ([Losses]); here they are
// found again in rejects and feedback, and put into words and JSON.
package latelosses

import (
	"fmt"
	"math"
	"strings"

	"hindsight/internal/loop"
	"hindsight/internal/words"
	"hindsight/pkg/codec"
)

// Comparison is of the losses that came after the window with those in time: rounds that were observed, and rounds that
// were skipped or imputed and got a loss later ([Losses]). Differ: the means differ significantly (anytime-valid test,
// false-alarm rate at most 1 in 100: [Moments.Radius]). What is learned is then biased, since it leaves the late ones
// out.
type Comparison struct {
	Outcome string  `json:"outcome,omitempty" csv:"-"` // of a model that names them
	OnTime  Figures `json:"on_time"`
	Late    Figures `json:"late"`
	Differ  bool    `json:"differ"`
}

// Figures are the mean of losses in [0,1], nil of none, and its standard error, nil of fewer than two.
type Figures struct {
	N    int64    `json:"n"`
	Mean *float64 `json:"mean"`
	SE   *float64 `json:"se"`
}

// Compare returns what has been counted.
func Compare(l *Losses) Comparison {
	return Comparison{OnTime: figuresOf(&l.OnTime), Late: figuresOf(&l.Late), Differ: l.Differ()}
}

func figuresOf(m *Moments) Figures {
	known := func(x float64) *float64 {
		if math.IsNaN(x) {
			return nil
		}
		return &x
	}
	return Figures{N: m.N, Mean: known(m.Mean()), SE: known(m.SE())}
}

// Line compares the two for people, as what the data has, "" if nothing was late.
func (l *Comparison) Line(shown *words.Rewards) string {
	if l.Late.N == 0 {
		return ""
	}
	return words.Items("%s, against %s in time", l.Late.line(shown), l.OnTime.line(shown))
}

// line is the mean, ± its standard error, and of how many.
func (f *Figures) line(shown *words.Rewards) string {
	if f.Mean == nil {
		return "none"
	}
	text := fmt.Sprintf("%.3f", shown.Shown(*f.Mean))
	if f.SE != nil {
		text += fmt.Sprintf(" ± %.3f", shown.Length(*f.SE))
	}
	return text + " of " + words.Count(f.N)
}

// Warning says that losses, or rewards, which came late differ from those in time, "" if they do not.
func (l *Comparison) Warning(shown *words.Rewards) string {
	if !l.Differ {
		return ""
	}
	side, those := "lower", "losses"
	if shown != nil {
		those = "rewards"
	}
	if (*l.Late.Mean < *l.OnTime.Mean) == (shown == nil) {
		side = "higher"
	}
	return fmt.Sprintf("the %[1]s that came late differ (%[2]s, against %[3]s in time): leaving them out biases what "+
		"is learned, which takes %[1]s to be %[4]s than they are; lengthen the window",
		those, l.Late.line(shown), l.OnTime.line(shown), side)
}

// Arrival says which guarantee is gone where late losses differ and feedback is in the order of arrival,
// and what to do.
const Arrival = "with order: arrival the bounds by measured drift and a priori are void; use order: fifo, whose " +
	"bounds allow it, or eta: outstanding, which has one under any delays"

// Warning is that of what has been counted, where feedback is in the order of arrival or not.
func Warning(l ByOutcome, arrival bool) string {
	name, worst := l.Worst()
	if !worst.Differ() {
		return ""
	}
	c := Compare(worst)
	text := c.Warning(nil)
	switch {
	case name != "":
		text = "outcome " + name + ", as losses in [0,1]: " + text
	case arrival:
		text += "; " + Arrival
	}
	return text
}

// Outcomes are the losses that rejects say came late, by round and outcome, in the order of the rejects.
type Outcomes map[string][]value

// AddReject takes the reject of an outcome. A repeat counts as little as its first.
func (x Outcomes) AddReject(r *codec.Reject) {
	of, values := lateValues(r)
	for _, v := range values {
		key := strings.Clone(keyOf(of, v.name))
		x[key] = append(x[key], v)
	}
}

// AddFeedback adds the losses of a round to those in time, or to the late ones.
func (x Outcomes) AddFeedback(l ByOutcome, f *codec.Feedback, rules *loop.Rules) {
	if f.Stage > 0 {
		return
	}
	l.AddInTime(f, rules)
	for name := range silences(f) {
		for _, v := range x[keyOf(f.ID, name)] {
			if l.addLate(f.Epoch, rules, &v) {
				break
			}
		}
	}
}
