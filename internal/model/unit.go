package model

import (
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
)

// unit is the key unit: for how long the draw of a unit holds for its later contexts.
func unit(sticky *int64) group {
	hold := form{"a duration", "30d", func(s string) error {
		d, err := ParseDuration(s)
		if *sticky = int64(d); err != nil || d < time.Second || int64(d) > maxWindowNanos {
			return fmt.Errorf("expected a duration from 1s to 10 years, found %q; for example: sticky: 30d", s)
		}
		return nil
	}, func() string { return FormatWindow(loop.Window{Nanos: *sticky}) }}
	return group{words: []string{"none"}, set: func(string) { *sticky = 0 }, rows: func() []field {
		return []field{{key: "sticky", into: hold}, {key: "credit", into: credit}}
	}, then: func(p *parser, n *yaml.Node, where string) {
		if *sticky == 0 {
			p.errorf(n, "unit: sticky is missing: for how long does a draw hold? For example: unit: {sticky: 30d, "+
				"credit: first}")
		}
	}}
}

// credit is the key unit.credit, which has one value: outcomes of a unit count for its draw, which is its first round.
var credit = form{"first", "first", func(s string) error {
	switch s {
	case "first":
		return nil
	case "last":
		return errors.New("last would be first: a repeat is no draw and has no propensity of its own, so an outcome " +
			"can only count for what it repeats, and one that names the unit counts for its last draw; use credit: " +
			"first")
	case "all":
		return errors.New("with all what a draw is worth would depend on draws to come, which no estimate here " +
			"allows; use credit: first, and report an outcome for each draw by its id")
	}
	return fmt.Errorf("expected first, found %q; for example: credit: first", s)
}, func() string { return "first" }}

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
