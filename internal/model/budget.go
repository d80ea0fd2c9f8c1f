package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
)

// maxBudgets bounds what a price for each costs.
const maxBudgets = 4

// Budget is a bound on the mean of what rounds cost, or on the mean of what they are good for.
type Budget struct {
	Name    string
	Of      *learner.Formula
	Limit   float64
	AtLeast bool      // Limit is the least that the mean may be, not the most
	About   []float64 // what Of is about by action, in their order, or one number for all; nil: not known
	PayBack int64     // rounds in which an excess is paid back; 0: by what is outstanding, -1: never
}

// constants are those of formulas.
func (m *Model) constants() entries[learner.Constant] {
	return entries[learner.Constant]{&m.Constants, "", "names", "{usd: {llama: 1e-7, pro: 1e-5}}", maxConstants,
		wrongName,
		func(p *parser, n *yaml.Node, name, where string, c *learner.Constant) {
			c.Name = name
			p.perAction(m, n, where, func(values []float64, missing []int) {
				if c.Values = values; len(missing) > 0 {
					p.errorf(n, "%s: it has no number for the action %q; give one for each action, or one for all",
						where, m.Actions[missing[0]])
				}
			})
		}, func(c *learner.Constant) string { return "\n  " + c.Name + ": " + m.formatPerAction(c.Values) }}
}

// perAction reads one number, or one for each action, which it gives to set when the actions are known.
func (p *parser) perAction(m *Model, n *yaml.Node, where string, set func(values []float64, missing []int)) {
	const example = "{llama: 1e-7, pro: 1e-5}"
	if n.Kind != yaml.MappingNode {
		set([]float64{p.number(n, where, example)}, nil)
		return
	}
	given := map[string]float64{}
	p.mapping(n, where, nil, func(action string, v *yaml.Node) {
		given[action] = p.number(v, where+"."+action, example)
	})
	p.deferred = slices.Insert(p.deferred, 0, func() { // before formulas
		if m.Actions == nil {
			p.errorf(n, "%s: numbers by action need the list of actions; for example: actions: [llama, pro]", where)
			return
		}
		values, missing := make([]float64, len(m.Actions)), []int(nil)
		for i, a := range m.Actions {
			v, ok := given[a]
			if values[i] = v; !ok {
				missing = append(missing, i)
			}
			delete(given, a)
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			a := n.Content[i].Value
			if _, left := given[a]; left {
				p.errorf(n.Content[i], "%s: %q is not in actions%s", where, a, didYouMean(a, m.Actions))
			}
		}
		set(values, missing)
	})
}

func (m *Model) formatPerAction(values []float64) string {
	if len(values) == 1 && len(m.Actions) != 1 {
		return formatFloat(values[0])
	}
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = strconv.Quote(m.Actions[i]) + ": " + formatFloat(v)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

const budgetExample = "{cost: {of: usd*tokens, mean_at_most: 0.0005, about: {llama: 3e-5, pro: 0.015}}}"

// budgets is the key budget.
func (m *Model) budgets() entries[Budget] {
	return entries[Budget]{&m.Budgets, "", "names", budgetExample, maxBudgets, wrongName,
		func(p *parser, n *yaml.Node, name, where string, b *Budget) {
			b.Name = name
			group{rows: func() []field { return m.budgetFields(b) }, then: b.complete}.read(p, n, where)
		}, func(b *Budget) string { return "\n  " + b.Name + ": " + braces(m.budgetFields(b)) }}
}

// complete reports what a budget must have.
func (b *Budget) complete(p *parser, n *yaml.Node, where string) {
	given := func(key string) bool { return p.at[where+"."+key] != nil }
	if !given("of") {
		p.errorf(n, "%s: it has no formula; for example: budget: %s", where, budgetExample)
	}
	if b.AtLeast = given("mean_at_least"); b.AtLeast == given("mean_at_most") {
		p.errorf(n, "%s: expected either mean_at_most or mean_at_least; for example: budget: %s", where, budgetExample)
	}
	if !given("about") && !b.AtLeast {
		p.warn(n, "%s: without about the first rounds, of which no outcome has come, may cost many times what is "+
			"allowed; say roughly what an action costs, for example: about: {llama: 3e-5, pro: 0.015}", where)
	}
}

func (m *Model) budgetFields(b *Budget) []field {
	return []field{
		{key: "of", into: formula{m, &b.Of}, example: "usd*tokens"},
		{key: "mean_at_most", into: &b.Limit, example: "0.0005", omit: b.AtLeast},
		{key: "mean_at_least", into: &b.Limit, example: "0.8", omit: !b.AtLeast},
		{key: "about", into: about{m, b}, omit: b.About == nil},
		{key: "pay_back", into: payBack(b), omit: b.PayBack == 0},
	}
}

// about is what a budgeted formula is about, by action.
type about struct {
	m *Model
	b *Budget
}

func (a about) read(p *parser, n *yaml.Node, where string) {
	p.perAction(a.m, n, where, func(values []float64, missing []int) {
		if a.b.About = values; len(missing) == 0 {
			return
		}
		// an action that is not named is taken for the dearest of the others: nothing is spent on it unseen
		var given []float64
		for i, v := range values {
			if !slices.Contains(missing, i) {
				given = append(given, v)
			}
		}
		if given == nil {
			p.expected(n, where, "numbers by action", "{llama: 3e-5, pro: 0.015}")
			return
		}
		for _, i := range missing {
			if values[i] = slices.Max(given); a.b.AtLeast {
				values[i] = slices.Min(given)
			}
		}
	})
}

func (a about) canonical() string { return a.m.formatPerAction(a.b.About) }

// payBack is in how many rounds an excess is paid back.
func payBack(b *Budget) form {
	return orWord(&b.PayBack, "never", -1, form{"a number of rounds", "1000 rounds", func(s string) error {
		w, err := ParseWindow(s)
		if b.PayBack = w.Rounds; err != nil || w.Rounds == 0 {
			return fmt.Errorf("expected a number of rounds, found %q; for example: pay_back: 1000 rounds", s)
		}
		return nil
	}, func() string { return FormatWindow(loop.Window{Rounds: b.PayBack}) }})
}

// budgetProblems are budgets that bind never, or always.
func (m *Model) budgetProblems(add adder) {
	for i := range m.Budgets {
		b := &m.Budgets[i]
		key := "budget." + b.Name
		if b.About != nil && m.Actions == nil {
			add(key, "about needs the list of actions; for example: actions: [llama, pro]")
		}
		if m.Oracle.Kind == Shared || m.Oracle.Kind == Hybrid {
			add(key, "it does not go with oracle: %s; use oracle: auto, linear or diagonal", m.Oracle.Kind)
		}
		if m.severalWindows(b.Of) {
			add(key, "%s is not linear, and its outcomes have different windows; give them one window", b.Of)
		}
		lo, hi := b.Of.Range()
		if lo < 0 && !b.AtLeast {
			add(key, "%s may be as low as %v: what is spent must not be negative; for example: max(0, %s)",
				b.Of, lo, b.Of)
		}
		if b.Limit <= max(lo, 0) || b.Limit >= hi {
			add(key, "the bound %v is not inside (%v, %v), where %s lies by the ranges of the outcomes", b.Limit,
				max(lo, 0), hi, b.Of)
		}
		for _, v := range b.About {
			if v < lo || v > hi {
				add(key, "about: %v is not in [%v, %v], where %s lies by the ranges of the outcomes", v, lo, hi, b.Of)
				break
			}
		}
	}
}

// severalWindows reports whether a formula that is not linear needs outcomes that no one record tells of.
func (m *Model) severalWindows(f *learner.Formula) bool {
	windows := map[loop.Window]bool{}
	for k, r := range m.Named {
		if f.Uses(k) {
			windows[r.Window] = true
		}
	}
	return !f.Linear() && len(windows) > 1
}
