package model

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
)

const unitExample = "unit: {sticky: 30d, credit: first}"

// unit is the key unit: for how long the draw of a unit holds for its later contexts.
type unit struct{ sticky *int64 }

func (u unit) read(p *parser, n *yaml.Node) {
	if *u.sticky = 0; isWord(n, "none") {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.expected(n, "unit", "none, or sticky and credit", unitExample)
		return
	}
	if given := p.fields(n, "unit", u.fields()); given["sticky"] == nil {
		p.errorf(n, "unit: sticky is missing: for how long does a draw hold? For example: %s", unitExample)
	}
}

func (u unit) canonical() string { return braces(u.fields()) }

func (u unit) fields() []field {
	return []field{{key: "sticky", into: sticky{u.sticky}}, {key: "credit", into: credit{}}}
}

// sticky is the key unit.sticky.
type sticky struct{ at *int64 }

func (s sticky) read(p *parser, n *yaml.Node) {
	text, ok := p.scalar(n, "unit.sticky", "a duration", unitExample)
	if !ok {
		return
	}
	d, err := ParseDuration(strings.TrimSpace(text))
	if err != nil || d < time.Second || int64(d) > maxWindowNanos {
		p.errorf(n, "unit.sticky: expected a duration from 1s to 10 years, found %q; for example: %s", text,
			unitExample)
		return
	}
	*s.at = int64(d)
}

func (s sticky) canonical() string { return FormatWindow(loop.Window{Nanos: *s.at}) }

// credit is the key unit.credit, which has one value: outcomes of a unit count for its draw, which is its first round.
type credit struct{}

func (credit) read(p *parser, n *yaml.Node) {
	switch {
	case isWord(n, "last"):
		p.errorf(n, "unit.credit: last would be first: a repeat is no draw and has no propensity of its own, so an "+
			"outcome can only count for what it repeats, and one that names the unit counts for its last draw; use "+
			"credit: first")
		return
	case isWord(n, "all"):
		p.errorf(n, "unit.credit: with all what a draw is worth would depend on draws to come, which no estimate here "+
			"allows; use credit: first, and report an outcome for each draw by its id")
		return
	}
	p.choice(n, "unit.credit", "first")
}

func (credit) canonical() string { return "first" }

// unitProblems are those of the key unit.
func (m *Model) unitProblems(add adder) {
	switch {
	case m.Sticky == 0:
	case m.Sticky < 0 || m.Sticky > maxWindowNanos:
		add("unit", "sticky: expected a duration from 1s to 10 years, found %v", time.Duration(m.Sticky))
	case m.Arrival || m.Early:
		add("unit", "repeats of a draw wait for it; use order: fifo")
	case m.Slots != nil:
		add("unit", "draws of slots do not hold for a unit yet; take slots or unit out")
	case m.Guard.LoseAtMost > 0:
		add("unit", "it does not go with guard: {lose_at_most: …}, which bounds each round by what is known then, and "+
			"a repeat plays what was known earlier; keep one of them")
	}
}
