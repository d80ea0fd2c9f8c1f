package model

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
)

// Limits of what a model may name: every outcome is a regression of its own.
const (
	maxOutcomes  = 16
	maxConstants = 64
)

// formulaName is what a formula can name, but for its functions.
var formulaName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// wrongName says what is wrong with a name that formulas use.
func wrongName(name string) error {
	if !formulaName.MatchString(name) || slices.Contains([]string{"min", "max", "clip"}, name) {
		return errors.New("has not 1 to 40 letters, digits and _, or is min, max or clip, so that no formula can use " +
			"it")
	}
	return nil
}

// outcomes is how the outcomes of a round are taken together, or which outcomes there are by name.
type outcomes struct{ m *Model }

const outcomesExample = "{quality: {window: 24h}, tokens: {max: 100000, clip: true, window: 5m}}"

func (o outcomes) read(p *parser, n *yaml.Node, where string) {
	if n.Kind != yaml.MappingNode {
		o.m.Outcomes = loop.Aggregate(p.choice(n, where, loop.Aggregates()...))
		return
	}
	o.entries().read(p, n, where)
}

func (o outcomes) entries() entries[loop.OutcomeRule] {
	return entries[loop.OutcomeRule]{&o.m.Named, "", "names", outcomesExample, maxOutcomes, wrongName,
		func(p *parser, n *yaml.Node, name, where string, r *loop.OutcomeRule) {
			*r = loop.OutcomeRule{Name: name, Range: loop.Range{Max: 1}, Window: o.m.Window}
			group{rows: func() []field { return outcomeFields(r) }, then: ordered(&r.Range)}.read(p, n, where)
		}, func(r *loop.OutcomeRule) string { return "\n  " + r.Name + ": " + braces(outcomeFields(r)) }}
}

func (o outcomes) canonical() string {
	if o.m.Named == nil {
		return loop.Aggregates()[o.m.Outcomes]
	}
	return o.entries().canonical()
}

func outcomeFields(r *loop.OutcomeRule) []field {
	return append(rangeFields(&r.Range),
		field{key: "window", into: windowForm(&r.Window)},
		field{key: "missing", into: missing(r), example: "skip"},
		field{key: "take", into: choice{loop.Aggregates(), int(r.Take), func(i int) { r.Take = loop.Aggregate(i) }}})
}

// missing is what silence means for one outcome.
func missing(of *loop.OutcomeRule) parameter {
	return parameter{"{impute: 600}", func(name, arg string, has bool) (err error) {
		switch {
		case name == "skip" && !has:
		case name == "impute" && has:
			of.Impute = true
			of.Default, err = parseFloat(arg)
		default:
			err = fmt.Errorf("expected skip or {impute: X}, found %q; for example: missing: {impute: 600}", name)
		}
		return err
	}, func() string {
		if of.Impute {
			return "impute:" + formatFloat(of.Default)
		}
		return "skip"
	}}
}

// formula is a key whose value is a formula. It is parsed when all that it may name has been read.
type formula struct {
	m    *Model
	into **learner.Formula
}

func (f formula) read(p *parser, n *yaml.Node, where string) {
	text, ok := p.scalar(n, where, "a formula of outcomes", "quality - 0.00002*latency_ms")
	if !ok {
		return
	}
	p.deferred = append(p.deferred, func() {
		if f.m.Named == nil {
			p.errorf(n, "%s: a formula is one of named outcomes, and the model has one loss; for example: outcomes: %s",
				where, outcomesExample)
			return
		}
		var err error
		if *f.into, err = f.m.formula(text); err != nil {
			p.errorf(n, "%s: %v", where, err)
		}
	})
}

func (f formula) canonical() string { return strconv.Quote((*f.into).String()) }

// formula parses a formula over the outcomes of the model. Equal formulas become equal values, however they are
// written.
func (m *Model) formula(text string) (*learner.Formula, error) {
	scope := m.scope()
	f, err := learner.NewFormula(text, scope)
	if wrong := (*learner.FormulaError)(nil); errors.As(err, &wrong) {
		var names []string
		for _, r := range m.Named {
			names = append(names, r.Name)
		}
		for _, c := range m.Constants {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("%w%s", err, didYouMean(wrong.Name, names))
	}
	return learner.NewFormula(f.String(), scope)
}

// scope is what formulas of the model may name.
func (m *Model) scope() *learner.Scope {
	s := &learner.Scope{Constants: m.Constants, Actions: m.Actions}
	for _, r := range m.Named {
		s.Outcomes = append(s.Outcomes, learner.Variable{Name: r.Name, Lo: r.Range.Min, Hi: r.Range.Max})
	}
	return s
}

// SetReward gives a model with named outcomes another formula.
func (m *Model) SetReward(text string) error {
	if m.Named == nil {
		return errors.New("the model names no outcomes, which a formula is of; for example: outcomes: " +
			outcomesExample)
	}
	f, err := m.formula(text)
	if err != nil {
		return fmt.Errorf("reward: %w", err)
	}
	m.Worth = f
	m.finishNamed()
	return nil
}

// finishNamed sets the rules that follow from named outcomes: rewards are told on the formula's range, and a round
// ends when its last outcome does.
func (m *Model) finishNamed() {
	m.Reward = true
	m.Range.Min, m.Range.Max = m.Worth.Range()
	m.Window = loop.Window{}
	for _, r := range m.Named {
		m.Window.Nanos, m.Window.Rounds = max(m.Window.Nanos, r.Window.Nanos), max(m.Window.Rounds, r.Window.Rounds)
	}
}

// finishNamed parses formulas, when all that they name has been read, and reports keys that fight with named outcomes.
func (p *parser) finishNamed(m *Model) {
	for _, f := range p.deferred {
		f()
	}
	if m.Named == nil || len(p.errs) > 0 {
		return
	}
	for _, key := range []string{"loss", "window", "missing", "default_loss"} {
		if n := p.at[key]; n != nil {
			p.errorf(n, "%s: the model names its outcomes, and each has its own; for example: outcomes: %s", key,
				outcomesExample)
		}
	}
	if m.Worth == nil {
		p.errorf(cmp.Or(p.at["reward"], p.at["outcomes"]), "reward: named outcomes need a formula that says what they "+
			"are worth; for example: reward: %s", m.Named[0].Name)
		return
	}
	m.finishNamed()
}

// namedProblems are those of named outcomes, with each other and with other keys.
func (m *Model) namedProblems(add adder) {
	if m.Named == nil {
		if m.Constants != nil {
			add("constants", "they are for formulas of named outcomes; for example: outcomes: %s", outcomesExample)
		}
		if m.Budgets != nil {
			add("budget", "it is for models that name their outcomes; for example: outcomes: %s", outcomesExample)
		}
		return
	}
	for i := range m.Named {
		r, key := &m.Named[i], "outcomes."+m.Named[i].Name
		if lo, hi := r.Range.Min, r.Range.Max; r.Impute && (r.Default < lo || r.Default > hi) {
			add(key+".missing", "the imputed %v is not in [%v, %v]", r.Default, lo, hi)
		}
		if (r.Window.Rounds > 0) != (m.Named[0].Window.Rounds > 0) {
			add(key+".window", "%s is one kind and that of %s another; give all windows in rounds, or all as durations",
				FormatWindow(r.Window), m.Named[0].Name)
		}
	}
	for _, c := range m.Constants {
		if slices.ContainsFunc(m.Named, func(r loop.OutcomeRule) bool { return r.Name == c.Name }) {
			add("constants."+c.Name, "an outcome is called so, too; choose another name")
		}
	}
	switch l := m.Learner.Kind; {
	case l != DAFA && l != Uniform && l != Fixed:
		add("learner", "%s does not learn named outcomes; use learner: dafa, uniform or fixed", l)
	case l != DAFA && m.Budgets != nil:
		add("learner", "%s keeps no budget; use learner: dafa, or take budget out", l)
	}
	if m.UsesOracle() && !m.Oracle.kind().orders.early {
		add("oracle", "%s does not learn named outcomes; use oracle: %s", m.Oracle.Kind,
			strings.Join(kindNames(true), " or "))
	}
	if m.Arrival || m.Early {
		add("order", "named outcomes are learned in the order of decisions; use order: fifo")
	}
	if m.Activation {
		add("activation", "it does not go with named outcomes; take it out")
	}
	m.budgetProblems(add)
}

// learned says what the learner of a model with named outcomes has learned: it can go on where that stays the same.
func (m *Model) learned() string {
	var s strings.Builder
	for _, r := range m.Named {
		fmt.Fprintf(&s, "%s in [%v, %v]; ", r.Name, r.Range.Min, r.Range.Max)
	}
	if !m.Worth.Linear() {
		s.WriteString("the reward " + m.Worth.String() + "; ")
	}
	whole := !m.Worth.Linear()
	for _, b := range m.Budgets {
		if !b.Of.Linear() {
			whole = true
			fmt.Fprintf(&s, "the budget %s of %s; ", b.Name, b.Of)
		}
	}
	if whole {
		s.WriteString("constants" + m.constants().canonical())
	}
	return strings.TrimSuffix(s.String(), "; ")
}
