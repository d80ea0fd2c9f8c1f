package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

const slotsExample = "slots: {hero: any, side: [a, b]}"

// slots are the slots that a context may have, sorted by name.
type slots struct{ at *[]loop.SlotRule }

func (s slots) read(p *parser, n *yaml.Node) {
	if *s.at = nil; isWord(n, "any") {
		return
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.expected(n, "slots", "any or the names of slots, each with any or a list of actions", slotsExample)
		return
	}
	p.mapping(n, "slots", nil, func(name string, n *yaml.Node) {
		rule := loop.SlotRule{Name: name}
		if err := checkText(name); err != nil {
			p.errorf(n, "slots: the name of a slot %v; for example: %s", err, slotsExample)
		} else if strings.Contains(name, ":") {
			p.errorf(n, "slots: the name %q has a colon, which is before the slot in its round's id; for example: %s",
				name, slotsExample)
		}
		nameList{&rule.Actions, "any", "slots." + name, slotsExample}.read(p, n)
		*s.at = append(*s.at, rule)
	})
	slices.SortFunc(*s.at, func(a, b loop.SlotRule) int { return cmp.Compare(a.Name, b.Name) })
}

func (s slots) canonical() string {
	return "{" + strings.Join(each(*s.at, func(r *loop.SlotRule) string {
		actions := "any"
		if r.Actions != nil {
			quoted := each(r.Actions, func(a *string) string { return strconv.Quote(*a) })
			actions = "[" + strings.Join(quoted, ", ") + "]"
		}
		return strconv.Quote(r.Name) + ": " + actions
	}), ", ") + "}"
}

// slotProblems are those of the slots with other keys.
func (m *Model) slotProblems(add adder) {
	if len(m.Slots) > codec.MaxSlots {
		add("slots", "%d slots are listed, at most %d are allowed", len(m.Slots), codec.MaxSlots)
	}
	if m.Slots == nil {
		return
	}
	for _, s := range m.Slots {
		for _, a := range s.Actions {
			if m.Actions != nil && !slices.Contains(m.Actions, a) {
				add("slots", "%s has %q, which is not in actions; name some of them", s.Name, a)
			}
		}
	}
	if m.Features != nil && !slices.ContainsFunc(m.Features, func(f loop.FeatureRule) bool {
		return f.Name == loop.SlotFeature && f.Kind == loop.TextFeature
	}) {
		add("slots", "the learner does not see which slot a round is of; add %s: text to features", loop.SlotFeature)
	}
}
