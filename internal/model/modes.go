package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

type baseline struct{ at *loop.Baseline }

// baselines returns the names of loop.FirstAction, … in their order.
func baselines() []string { return []string{"first", "uniform", "fixed", "context"} }

func (b baseline) read(p *parser, n *yaml.Node) {
	p.wordOrAction(n, "baseline", "first | uniform | context | {fixed: NAME}", "baseline: {fixed: red}", baselines(),
		int(loop.FixedAction), func(kind int, action string) {
			*b.at = loop.Baseline{Kind: loop.BaselineKind(kind), Action: action}
		})
}

// wordOrAction reads one of some words, of which one, named, goes with the name of an action.
func (p *parser) wordOrAction(n *yaml.Node, where, expected, example string, words []string, named int,
	set func(word int, action string)) {
	p.parameter(n, where, example, func(name, arg string, has bool) error {
		i := slices.Index(words, name)
		switch {
		case i < 0:
			return fmt.Errorf("expected %s, found %q%s; for example: %s", expected, name, didYouMean(name, words),
				example)
		case has != (i == named):
			return fmt.Errorf("%s takes the name of an action and the others nothing; for example: %s", words[named],
				example)
		case has && checkText(arg) != nil:
			return fmt.Errorf("the name of the action %w; for example: %s", checkText(arg), example)
		}
		set(i, arg)
		return nil
	})
}

func (b baseline) canonical() string {
	if b.at.Kind == loop.FixedAction {
		return "{fixed: " + strconv.Quote(b.at.Action) + "}"
	}
	return baselines()[b.at.Kind]
}

type guard struct{ at *loop.GuardRules }

// defaultGuard is what a guard has that the file does not say.
var defaultGuard = loop.GuardRules{Margin: 0.02, Alpha: 0.01}

func (g guard) fields() []field {
	then := append([]string{"alarm"}, codec.Modes()[1:]...) // an alarm alone, or a mode, too
	return []field{
		{key: "worse_by", into: &g.at.Margin, example: "worse_by: 0.02"},
		{key: "alpha", into: &g.at.Alpha, example: "alpha: 0.01"},
		{key: "then", into: choice{then, int(g.at.Then), func(i int) { g.at.Then = codec.Mode(i) }}},
		{key: "lose_at_most", into: &g.at.LoseAtMost, example: "lose_at_most: 0.02", omit: g.at.LoseAtMost == 0},
	}
}

func (g guard) read(p *parser, n *yaml.Node) {
	const example = "guard: {worse_by: 0.02, alpha: 0.01, then: alarm}"
	if isWord(n, "none") {
		return
	}
	*g.at = defaultGuard
	p.rule(n, "guard", "none, or worse_by, alpha, then and lose_at_most", example, g)
}

// rule is a test that a model file states, with a margin and a level.
type rule interface {
	fields() []field
	problem() string
}

// rule reads a test whose defaults are set.
func (p *parser) rule(n *yaml.Node, key, what, example string, r rule) {
	p.group(n, key, what, example, r.fields())
	if bad := r.problem(); bad != "" {
		p.errorf(n, "%s: %s; for example: %s", key, bad, example)
	}
}

// levelProblem says what is wrong with the margin of a rule, under its key, or with its level.
func levelProblem(key string, margin, alpha float64) string {
	switch {
	case !(margin >= 0 && margin < 1):
		return fmt.Sprintf("%s: expected a loss in [0,1), on the scale where 1 is worst, found %v", key, margin)
	case !(alpha > 0 && alpha <= maxAlpha):
		return fmt.Sprintf("alpha: expected a level in (0, 0.5], found %v", alpha)
	}
	return ""
}

func (g guard) canonical() string { return braces(g.fields()) }

func (g guard) problem() string {
	if bad := levelProblem("worse_by", g.at.Margin, g.at.Alpha); bad != "" {
		return bad
	}
	if !(g.at.LoseAtMost >= 0 && g.at.LoseAtMost < 1) {
		return fmt.Sprintf("lose_at_most: expected a share of the baseline's gain in [0,1), found %v; 0 is off",
			g.at.LoseAtMost)
	}
	return ""
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
		add("guard", "lose_at_most: alpha is %v, and what the certificate refutes at a level below %v is "+
			"forgotten; use a larger alpha", m.Guard.Alpha, m.Certificate.Alpha*learner.LeastShare)
	}
}

// modeProblems are those of the baseline, the guard and the mask.
func (m *Model) modeProblems(add adder) {
	if b := m.Baseline; b.Kind == loop.FixedAction && m.Actions != nil && !slices.Contains(m.Actions, b.Action) {
		add("baseline", "fixed plays %q, which is not in actions; name one of them", b.Action)
	}
	if m.Guard != (loop.GuardRules{}) {
		if bad := (guard{&m.Guard}).problem(); bad != "" {
			add("guard", "%s", bad)
		}
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
