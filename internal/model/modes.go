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

// defaultGuard is what a guard has that the file does not say.
var defaultGuard = loop.GuardRules{Margin: 0.02, Alpha: 0.01}

// modeKey reads one of the keys of this file.
func (p *parser) modeKey(m *Model, key string, n *yaml.Node) {
	switch key {
	case "baseline":
		m.Baseline = p.baseline(n)
	case "masked":
		m.Masked = p.masked(n)
	case "guard":
		m.Guard = p.guard(n)
	case "mode":
		m.Mode = codec.Mode(p.choice(n, key, codec.Modes()...))
	}
}

func (p *parser) baseline(n *yaml.Node) loop.Baseline {
	const example = "baseline: {fixed: red}"
	name, arg, has, ok := p.parameter(n, "baseline", example)
	if !ok {
		return loop.Baseline{}
	}
	kinds := baselines()
	switch i := slices.Index(kinds, name); {
	case i < 0:
		p.errorf(n, "baseline: expected first | uniform | context | {fixed: NAME}, found %q%s; for example: %s", name, didYouMean(name, kinds), example)
	case has != (loop.BaselineKind(i) == loop.FixedAction):
		p.errorf(n, "baseline: fixed takes the name of an action and the others nothing; for example: %s", example)
	case has && checkText(arg) != nil:
		p.errorf(n, "baseline: the name of the action %v; for example: %s", checkText(arg), example)
	default:
		return loop.Baseline{Kind: loop.BaselineKind(i), Action: arg}
	}
	return loop.Baseline{}
}

// baselines returns the names of loop.FirstAction, … in their order.
func baselines() []string { return []string{"first", "uniform", "fixed", "context"} }

func (p *parser) masked(n *yaml.Node) []string {
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		return nil
	}
	return p.names(n, "masked", "none or a list of names", "masked: [red]")
}

func (p *parser) guard(n *yaml.Node) loop.GuardRules {
	const example = "guard: {worse_by: 0.02, alpha: 0.01, then: alarm}"
	g := defaultGuard
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		return loop.GuardRules{}
	}
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "guard: expected none, or worse_by, alpha and then, found %s; for example: %s", describe(n), example)
		return g
	}
	p.mapping(n, "guard", []string{"worse_by", "alpha", "then"}, func(k string, v *yaml.Node) {
		switch k {
		case "worse_by":
			g.Margin = p.number(v, "guard.worse_by", "worse_by: 0.02")
		case "alpha":
			g.Alpha = p.number(v, "guard.alpha", "alpha: 0.01")
		case "then":
			g.Then = codec.Mode(p.choice(v, "guard.then", guardActions()...))
		}
	})
	if bad := guardProblem(g); bad != "" {
		p.errorf(n, "guard: %s; for example: %s", bad, example)
	}
	return g
}

// guardActions returns what an alarm may lead to: nothing else, or a mode.
func guardActions() []string { return append([]string{"alarm"}, codec.Modes()[1:]...) }

func guardProblem(g loop.GuardRules) string {
	switch {
	case !(g.Margin >= 0 && g.Margin < 1):
		return fmt.Sprintf("worse_by: expected a loss in [0,1), on the scale where 1 is worst, found %v", g.Margin)
	case !(g.Alpha > 0 && g.Alpha <= maxAlpha):
		return fmt.Sprintf("alpha: expected a level in (0, 0.5], found %v", g.Alpha)
	}
	return ""
}

// writeModes writes the keys that are not as if they were not there: the canonical form of
// a file that an older program read stays what it was. The mode is the last of all, where
// [service.Source] puts another one.
func (m *Model) writeModes(w *writer) {
	if b := m.Baseline; b.Kind == loop.FixedAction {
		w.line("baseline", "{fixed: "+strconv.Quote(b.Action)+"}")
	} else if b.Kind != loop.FirstAction {
		w.line("baseline", baselines()[b.Kind])
	}
	if len(m.Masked) > 0 {
		w.b = append(w.b, "masked:\n"...)
		for _, a := range m.Masked {
			w.b = append(append(append(w.b, "  - "...), strconv.Quote(a)...), '\n')
		}
	}
	if g := m.Guard; g.On() {
		w.line("guard", "{worse_by: "+formatFloat(g.Margin)+", alpha: "+formatFloat(g.Alpha)+", then: "+guardActions()[g.Then]+"}")
	}
	if m.Mode != codec.Live {
		w.line("mode", m.Mode.String())
	}
}

func (m *Model) modeProblems(add func(key, format string, args ...any)) {
	if b := m.Baseline; b.Kind == loop.FixedAction && m.Actions != nil && !slices.Contains(m.Actions, b.Action) {
		add("baseline", "fixed plays %q, which is not in actions; name one of them", b.Action)
	}
	if m.Guard != (loop.GuardRules{}) {
		if bad := guardProblem(m.Guard); bad != "" {
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
	if left := slices.IndexFunc(m.Actions, func(a string) bool { return !slices.Contains(m.Masked, a) }); left < 0 {
		add("masked", "no action is left; use mode: paused to stop the learner (masked: %s)", strings.Join(m.Masked, ", "))
	}
}
