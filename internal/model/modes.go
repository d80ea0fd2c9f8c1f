package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

type baseline struct{ at *loop.Baseline }

// baselines returns the names of loop.FirstAction, … in their order.
func baselines() []string { return []string{"first", "uniform", "fixed", "context"} }

func (b baseline) read(p *parser, n *yaml.Node) {
	const example = "baseline: {fixed: red}"
	p.parameter(n, "baseline", example, func(name, arg string, has bool) error {
		i := slices.Index(baselines(), name)
		kind := loop.BaselineKind(i)
		switch {
		case i < 0:
			return fmt.Errorf("expected first | uniform | context | {fixed: NAME}, found %q%s; for example: %s",
				name, didYouMean(name, baselines()), example)
		case has != (kind == loop.FixedAction):
			return fmt.Errorf("fixed takes the name of an action and the others nothing; for example: %s", example)
		case has && checkText(arg) != nil:
			return fmt.Errorf("the name of the action %w; for example: %s", checkText(arg), example)
		}
		*b.at = loop.Baseline{Kind: kind, Action: arg}
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
	}
}

func (g guard) read(p *parser, n *yaml.Node) {
	const example = "guard: {worse_by: 0.02, alpha: 0.01, then: alarm}"
	if isWord(n, "none") {
		return
	}
	*g.at = defaultGuard
	p.group(n, "guard", "none, or worse_by, alpha and then", example, g.fields())
	if bad := g.problem(); bad != "" {
		p.errorf(n, "guard: %s; for example: %s", bad, example)
	}
}

func (g guard) canonical() string { return braces(g.fields()) }

func (g guard) problem() string {
	switch {
	case !(g.at.Margin >= 0 && g.at.Margin < 1):
		return fmt.Sprintf("worse_by: expected a loss in [0,1), on the scale where 1 is worst, found %v", g.at.Margin)
	case !(g.at.Alpha > 0 && g.at.Alpha <= maxAlpha):
		return fmt.Sprintf("alpha: expected a level in (0, 0.5], found %v", g.at.Alpha)
	}
	return ""
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
	if m.Actions == nil {
		return
	}
	for _, name := range m.Masked {
		if !slices.Contains(m.Actions, name) {
			add("masked", "%q is not in actions; masked actions stay listed there", name)
		}
	}
	if !slices.ContainsFunc(m.Actions, func(a string) bool { return !slices.Contains(m.Masked, a) }) {
		add("masked", "no action is left; use mode: paused to stop the learner (masked: %s)", strings.Join(m.Masked, ", "))
	}
}
