package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// fields returns the top-level keys, in the order of the canonical form.
func (m *Model) fields() []field {
	mode := choice{codec.Modes(), int(m.Mode), func(i int) { m.Mode = codec.Mode(i) }}
	return []field{
		{key: "name", into: &m.Name, example: "shop"},
		{key: "version", into: &m.Version, lo: 1, hi: 1 << 53, example: "2"},
		{key: "actions", into: nameList{&m.Actions, "any", "[red, green, blue]"}},
		{key: "max_actions", into: &m.MaxActions, lo: 1, hi: codec.MaxActions, example: "1000"},
		{key: "features", into: features{&m.Features}},
		{key: "max_features", into: &m.MaxFeatures, lo: 1, hi: codec.MaxFeatures, example: "256"},
		{key: "loss", into: m.scale(false), omit: m.Reward},
		{key: "reward", into: reward{m}, omit: !m.Reward},
		{key: "learner", into: &m.Learner},
		{key: "explore", into: &m.Explore},
		{key: "oracle", into: &m.Oracle},
		{key: "window", into: window{&m.Window}, omit: m.Named != nil},
		{key: "missing", into: either(&m.Impute, "skip", "impute"), omit: m.Named != nil},
		{key: "default_loss", into: &m.DefaultLoss, what: worst, hi: 1, example: "1", omit: !m.Impute},
		{key: "outcomes", into: outcomes{m}},
		{key: "activation", into: either(&m.Activation, "none", "required")},
		{key: "order", into: m.order()},
		{key: "certificate", into: m.Certificate.group(), omit: m.Certificate == defaultCertificate},
		{key: "warm", into: m.Warm.form()},
		{key: "baseline", into: baseline(&m.Baseline), omit: m.Baseline.Kind == loop.FirstAction},
		{key: "masked", into: nameList{&m.Masked, "none", "[red]"}, omit: len(m.Masked) == 0},
		{key: "guard", into: guard(&m.Guard), omit: !m.Guard.On()},
		{key: "candidates", into: candidates{&m.Candidates}, omit: len(m.Candidates) == 0},
		{key: "promote", into: promotion(&m.Promote), omit: !m.Promote.On()},
		{key: "hold_out", into: &m.HoldOut, what: "a share", hi: .5, example: "0.05", omit: m.HoldOut == 0},
		{key: "mode", into: mode, omit: m.Mode == codec.Live},
		{key: "constants", into: byName{m}, omit: m.Constants == nil},
		{key: "budget", into: budgets{m}, omit: m.Budgets == nil},
		{key: "slots", into: slots{&m.Slots}, omit: m.Slots == nil},
		{key: "early", into: hurry(&m.Hurry), omit: m.Hurry == nil},
		{key: "unit", into: unit(&m.Sticky), omit: m.Sticky == 0},
	}
}

// worst says what a loss is that is a number of a model.
const worst = "a loss, on the scale where 1 is worst,"

// Canonical returns the model file with every default written out. Equal models
// have equal bytes, Parse reads back an equal model, and the canonical form of
// that is the same again.
func (m *Model) Canonical() []byte {
	var b []byte
	for _, f := range m.fields() {
		if !f.omit {
			b = append(append(b, f.line()...), '\n')
		}
	}
	return b
}

// Worth stands for all the keys that say what named outcomes are worth.
const Worth = "worth"

// Differing returns the first of some keys of which two models of a log differ, and how the second one writes it;
// key is "" if they differ in none. With named outcomes reward is what is learned of them, which another formula
// leaves as it is if both are linear; [Worth] is the formula itself.
func Differing(a, b []byte, keys ...string) (key, second string) {
	x, y := loggedLines(a), loggedLines(b)
	for _, key := range keys {
		if x[key] != y[key] {
			return key, y[key]
		}
	}
	return "", ""
}

// loggedLines returns the canonical lines of a model of a log by their keys; of one that cannot be read it has none.
func loggedLines(b []byte) map[string]string {
	m, err := ParseLogged("", b)
	if err != nil {
		return nil
	}
	lines := map[string]string{}
	for _, f := range m.fields() {
		if !f.omit {
			lines[f.key] = f.line()
		}
	}
	if m.Named != nil {
		lines[Worth] = lines["reward"] + lines["constants"] + lines["budget"]
		lines["reward"] = m.learned()
	}
	return lines
}

// nameList is names of actions, or a word instead of them.
type nameList struct {
	list          *[]string
	none, example string
}

func (l nameList) read(p *parser, n *yaml.Node, where string) {
	if *l.list = nil; isWord(n, l.none) {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.expected(n, where, l.none+" or a list of names", l.example)
		return
	}
	seen := make(map[string]bool, len(n.Content))
	for _, c := range n.Content {
		name, ok := p.scalar(c, where, "a name", l.example)
		if !ok {
			continue
		}
		if err := checkText(name); err != nil {
			p.errorf(c, "%s: the name %v; for example: %s", where, err, l.example)
		} else if seen[name] {
			p.errorf(c, "%s: the name %q is there twice", where, name)
		}
		seen[name] = true
		*l.list = append(*l.list, name)
	}
}

func (l nameList) canonical() string {
	if *l.list == nil {
		return l.none
	}
	var s strings.Builder
	for _, a := range *l.list {
		s.WriteString("\n  - " + strconv.Quote(a))
	}
	return s.String()
}

type features struct{ list *[]loop.FeatureRule }

func (l features) read(p *parser, n *yaml.Node, where string) {
	const example = "{age: number, price: {number: [0, 100]}, country: text, vip: bool}"
	if *l.list = nil; isWord(n, "auto") {
		return
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.expected(n, where, "auto or names with their types", example)
		return
	}
	p.mapping(n, where, nil, func(name string, v *yaml.Node) {
		if err := checkText(name); err != nil {
			p.errorf(v, "features: the name %v", err)
			return
		}
		*l.list = append(*l.list, p.feature(name, v))
	})
	slices.SortFunc(*l.list, func(a, b loop.FeatureRule) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range *l.list {
		for i := range oracle.TextStatistics {
			name := loop.StatisticName(f.Name, i)
			named := func(o loop.FeatureRule) bool { return o.Name == name }
			if f.Kind == loop.NgramsFeature && slices.ContainsFunc(*l.list, named) {
				p.errorf(n, "features.%s: that is the name of a statistic of the text %s; choose another", name, f.Name)
			}
		}
	}
}

// maxVector is the most numbers of a vector.
const maxVector = 8192

func (p *parser) feature(name string, n *yaml.Node) loop.FeatureRule {
	const example = "{number: [0, 100]}"
	f, where := loop.FeatureRule{Name: name, Kind: loop.NumberFeature}, "features."+name
	if n.Kind != yaml.MappingNode {
		f.Kind += loop.FeatureKind(p.choice(n, where, "number", "text", "bool"))
		return f
	}
	if len(n.Content) != 2 {
		p.expected(n, where, "a type", example)
	}
	p.mapping(n, where, []string{"number", "text", "vector"}, func(key string, v *yaml.Node) {
		switch key {
		case "text":
			p.choice(v, where+".text", "ngrams")
			f.Kind = loop.NgramsFeature
		case "vector":
			f.Kind = loop.VectorFeature
			p.field(&field{into: &f.Hi, whole: true, lo: 1, hi: maxVector, example: "384"}, v, where+".vector")
		default:
			if v.Kind != yaml.SequenceNode || len(v.Content) != 2 {
				p.expected(v, where, "the least and the largest value", example)
				return
			}
			f.Bounded = true
			f.Lo, f.Hi = p.number(v.Content[0], where, example), p.number(v.Content[1], where, example)
			if !(f.Lo < f.Hi) {
				p.errorf(v, "%s: the least value %v is not below the largest %v; for example: %s: %s", where, f.Lo, f.Hi, name,
					example)
			}
		}
	})
	return f
}

func (l features) canonical() string {
	if *l.list == nil {
		return "auto"
	}
	var s strings.Builder
	for _, f := range *l.list {
		kind := f.Kind.String()
		switch {
		case f.Bounded:
			kind = "{number: [" + formatFloat(f.Lo) + ", " + formatFloat(f.Hi) + "]}"
		case f.Kind == loop.VectorFeature:
			kind = "{vector: " + strconv.Itoa(f.Length()) + "}"
		}
		s.WriteString("\n  ? " + strconv.Quote(f.Name) + "\n  : " + kind) // a key after "? " may have any length
	}
	return s.String()
}

// maxRange keeps max − min finite.
const maxRange = 1e300

// scale is the range of losses, or of rewards.
func (m *Model) scale(reward bool) group {
	return group{then: ordered(&m.Range), rows: func() []field { return rangeFields(&m.Range) },
		set: func(string) { m.Range, m.Reward = loop.Range{Max: 1}, reward }}
}

func rangeFields(r *loop.Range) []field {
	return []field{{key: "min", into: &r.Min, example: "0"}, {key: "max", into: &r.Max, example: "1"},
		{key: "clip", into: &r.Clip, example: "false"}}
}

// ordered reports a range that is none.
func ordered(r *loop.Range) func(p *parser, n *yaml.Node, where string) {
	return func(p *parser, n *yaml.Node, where string) {
		if !(r.Min < r.Max) || r.Max-r.Min > maxRange {
			p.errorf(n, "%s: expected min below max, found min %v and max %v; for example: {min: 0, max: 1}", where, r.Min,
				r.Max)
		}
	}
}

// reward is the range of rewards, or a formula.
type reward struct{ m *Model }

func (r reward) read(p *parser, n *yaml.Node, where string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		formula{r.m, &r.m.Worth}.read(p, n, where)
		return
	}
	r.m.scale(true).read(p, n, where)
}

func (r reward) canonical() string {
	if r.m.Worth != nil {
		return formula{into: &r.m.Worth}.canonical()
	}
	return r.m.scale(true).canonical()
}

type window struct{ at *loop.Window }

func (w window) form() form {
	return form{"a duration or a number of rounds", "10m", func(s string) (err error) {
		*w.at, err = ParseWindow(s)
		return err
	}, w.canonical}
}

func (w window) read(p *parser, n *yaml.Node, where string) {
	w.form().read(p, n, where)
	if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil && w.at.Rounds > 0 && w.at.Rounds < fewRounds {
		p.warn(n, "window: %s means rounds: a round waits until %d later ones are decided; "+
			"for minutes write window: %[2]dm, and if rounds are meant, window: %[3]s", n.Value, w.at.Rounds, w.canonical())
	}
}

// fewRounds is below which a window that is a bare number was perhaps meant in other units.
const fewRounds = 100

func (w window) canonical() string { return FormatWindow(*w.at) }

func (w *Warm) form() form {
	const what = "none, keep, refit or the number of a feedback"
	return form{what, "refit", func(s string) (err error) {
		if *w = (Warm{Refit: s == "refit", Keep: s == "keep"}); s == "none" || w.Refit || w.Keep {
			return nil
		}
		if w.Through, err = strconv.ParseInt(s, 10, 64); err != nil || w.Through < 1 || w.Through > 1<<53 {
			return fmt.Errorf("expected %s, from 1, found %q; for example: warm: refit", what, s)
		}
		return nil
	}, w.String}
}

// String writes the key as the model file has it.
func (w Warm) String() string {
	switch {
	case w.Refit:
		return "refit"
	case w.Keep:
		return "keep"
	case w.Through > 0:
		return strconv.FormatInt(w.Through, 10)
	}
	return "none"
}

const slotsExample = "{hero: any, side: [a, b]}"

// slots are the slots that a context may have, sorted by name.
type slots struct{ at *[]loop.SlotRule }

func (s slots) read(p *parser, n *yaml.Node, where string) {
	if *s.at = nil; isWord(n, "any") {
		return
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.expected(n, where, "any or the names of slots, each with any or a list of actions", slotsExample)
		return
	}
	p.mapping(n, "slots", nil, func(name string, n *yaml.Node) {
		rule := loop.SlotRule{Name: name}
		if err := checkText(name); err != nil {
			p.errorf(n, "slots: the name of a slot %v; for example: slots: %s", err, slotsExample)
		} else if strings.Contains(name, ":") {
			p.errorf(n, "slots: the name %q has a colon, which is before the slot in its round's id; for example: slots: %s",
				name, slotsExample)
		}
		nameList{&rule.Actions, "any", "[a, b]"}.read(p, n, "slots."+name)
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
