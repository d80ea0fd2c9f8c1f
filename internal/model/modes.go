package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// baseline is the key baseline.
func baseline(at *loop.Baseline) parameter {
	words := []string{"first", "uniform", "fixed", "context"} // loop.FirstAction, … in their order
	return wordOrAction("first | uniform | context | {fixed: NAME}", "{fixed: red}", words, int(loop.FixedAction),
		func(kind int, action string) { *at = loop.Baseline{Kind: loop.BaselineKind(kind), Action: action} },
		func() string { return worded(words[at.Kind], at.Action) })
}

// worded writes a word, with the name of an action if it has one.
func worded(word, action string) string {
	if action != "" {
		word += ":" + strconv.Quote(action)
	}
	return word
}

// wordOrAction is one of some words, of which one goes with the name of an action.
func wordOrAction(expected, example string, words []string, with int, set func(word int, action string),
	get func() string) parameter {
	return parameter{example, func(name, arg string, has bool) error {
		i := slices.Index(words, name)
		switch {
		case i < 0:
			return fmt.Errorf("expected %s, found %q%s; for example: %s", expected, name, didYouMean(name, words),
				example)
		case has != (i == with):
			return fmt.Errorf("%s takes the name of an action and the others nothing; for example: %s", words[with],
				example)
		case has && checkText(arg) != nil:
			return fmt.Errorf("the name of the action %w; for example: %s", checkText(arg), example)
		}
		set(i, arg)
		return nil
	}, get}
}

// guard is the key guard.
func guard(at *loop.GuardRules) group {
	then := append([]string{"alarm"}, codec.Modes()[1:]...) // an alarm alone, or a mode, too
	return group{words: []string{"none"}, set: func(word string) {
		if *at = (loop.GuardRules{Margin: .02, Alpha: .01}); word != "" {
			*at = loop.GuardRules{}
		}
	}, rows: func() []field {
		return []field{
			{key: "worse_by", into: &at.Margin, what: worst, hi: 1, ends: "[)", example: "0.02"},
			alphaField(&at.Alpha, "0.01"),
			{key: "then", into: choice{then, int(at.Then), func(i int) { at.Then = codec.Mode(i) }}},
			{key: "lose_at_most", into: &at.LoseAtMost, what: "a share of the baseline's gain, 0 for off,", hi: 1,
				ends: "[)", example: "0.02", omit: at.LoseAtMost == 0},
		}
	}}
}

// alphaField is the level of a test.
func alphaField(at *float64, example string) field {
	return field{key: "alpha", into: at, what: "a level", hi: .5, ends: "(]", example: example}
}

// holdProblems say why no decision of the model can be held to a share of the baseline's gain: nothing then bounds how
// far predictions are from the truth.
func (m *Model) holdProblems(add adder) {
	if m.Guard.LoseAtMost == 0 {
		return
	}
	finite, linear := m.Oracle.Kind == Hedge && m.Certificate.Alpha > 0, m.Oracle.Kind == Ridge
	switch {
	case m.Learner.Kind != DAFA && m.Learner.Kind != elimination || !finite && !linear:
		add("guard", "lose_at_most needs a theorem on the error of predictions: use learner: dafa with oracle: "+
			"{kind: hedge, class: FILE} and its certificate, or oracle: {kind: ridge, certified: true}; worse_by and "+
			"then work with every learner")
	case m.Arrival:
		add("guard", "lose_at_most needs outcomes in the order of decisions, since early ones are a choice among "+
			"all; use order: fifo")
	case m.Hurry != nil:
		add("guard", "lose_at_most bounds the error of what final outcomes taught, and early decides by more; take "+
			"early out")
	case m.Named != nil:
		add("guard", "lose_at_most is for models with one loss or reward; take outcomes out")
	case m.Impute && linear:
		add("guard", "lose_at_most with ridge needs losses that were observed, and missing: impute makes some up; use "+
			"missing: skip")
	case finite && m.Guard.Alpha < m.Certificate.Alpha*learner.LeastShare:
		add("guard", "lose_at_most: alpha is %v, and what the certificate refutes at a level below %v is forgotten; "+
			"use a larger alpha", m.Guard.Alpha, m.Certificate.Alpha*learner.LeastShare)
	}
}

// modeProblems are those of the baseline, the guard and the mask.
func (m *Model) modeProblems(add adder) {
	if b := m.Baseline; b.Kind == loop.FixedAction && m.Actions != nil && !slices.Contains(m.Actions, b.Action) {
		add("baseline", "fixed plays %q, which is not in actions; name one of them", b.Action)
	}
	m.holdProblems(add)
	if m.Actions == nil {
		return
	}
	for _, name := range m.Masked {
		if !slices.Contains(m.Actions, name) {
			add("masked", "%q is not in actions; masked actions stay listed there", name)
		}
	}
	if !slices.ContainsFunc(m.Actions, func(a string) bool { return !slices.Contains(m.Masked, a) }) {
		add("masked", "no action is left; use mode: paused to stop the learner (masked: %s)",
			strings.Join(m.Masked, ", "))
	}
}
