package model

import (
	"cmp"
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
	actions := nameList{&m.Actions, "any", "actions", "actions: [red, green, blue]"}
	masked := nameList{&m.Masked, "none", "masked", "masked: [red]"}
	mode := choice{codec.Modes(), int(m.Mode), func(i int) { m.Mode = codec.Mode(i) }}
	return []field{
		{key: "name", into: &m.Name, example: "name: shop"},
		{key: "version", into: &m.Version, lo: 1, hi: 1 << 53, example: "version: 2"},
		{key: "actions", into: actions},
		{key: "max_actions", into: &m.MaxActions, lo: 1, hi: codec.MaxActions, example: "max_actions: 1000"},
		{key: "features", into: features{&m.Features}},
		{key: "max_features", into: &m.MaxFeatures, lo: 1, hi: codec.MaxFeatures, example: "max_features: 256"},
		{key: "loss", into: scale{m, "loss"}, omit: m.Reward},
		{key: "reward", into: scale{m, "reward"}, omit: !m.Reward},
		{key: "learner", into: &m.Learner},
		{key: "explore", into: &m.Explore},
		{key: "oracle", into: &m.Oracle},
		{key: "window", into: window{&m.Window}, omit: m.Named != nil},
		{key: "missing", into: either(&m.Impute, "skip", "impute"), omit: m.Named != nil},
		{key: "default_loss", into: &m.DefaultLoss, example: "default_loss: 1", omit: !m.Impute},
		{key: "outcomes", into: outcomes{m}},
		{key: "activation", into: either(&m.Activation, "none", "required")},
		{key: "order", into: m.order()},
		{key: "certificate", into: &m.Certificate, omit: m.Certificate == defaultCertificate},
		{key: "warm", into: &m.Warm},
		{key: "baseline", into: baseline{&m.Baseline}, omit: m.Baseline.Kind == loop.FirstAction},
		{key: "masked", into: masked, omit: len(m.Masked) == 0},
		{key: "guard", into: guard{&m.Guard}, omit: !m.Guard.On()},
		{key: "candidates", into: candidates{&m.Candidates}, omit: len(m.Candidates) == 0},
		{key: "promote", into: promotion{&m.Promote}, omit: !m.Promote.On()},
		{key: "hold_out", into: &m.HoldOut, omit: m.HoldOut == 0, example: "hold_out: 0.05",
			ok: mayHoldOut, expected: "a share in [0, 0.5], found %v"},
		{key: "mode", into: mode, omit: m.Mode == codec.Live},
		{key: "constants", into: byName{m}, omit: m.Constants == nil},
		{key: "budget", into: budgets{m}, omit: m.Budgets == nil},
		{key: "slots", into: slots{&m.Slots}, omit: m.Slots == nil},
		{key: "early", into: hurry{&m.Hurry}, omit: m.Hurry == nil},
		{key: "unit", into: unit{&m.Sticky}, omit: m.Sticky == 0},
	}
}

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
	list              *[]string
	none, at, example string
}

func (l nameList) read(p *parser, n *yaml.Node) {
	if *l.list = nil; isWord(n, l.none) {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.expected(n, l.at, l.none+" or a list of names", l.example)
		return
	}
	seen := make(map[string]bool, len(n.Content))
	for _, c := range n.Content {
		name, ok := p.scalar(c, l.at, "a name", l.example)
		if !ok {
			continue
		}
		if err := checkText(name); err != nil {
			p.errorf(c, "%s: the name %v; for example: %s", l.at, err, l.example)
		} else if seen[name] {
			p.errorf(c, "%s: the name %q is there twice", l.at, name)
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

func (l features) read(p *parser, n *yaml.Node) {
	const example = "features: {age: number, price: {number: [0, 100]}, country: text, vip: bool}"
	if *l.list = nil; isWord(n, "auto") {
		return
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.expected(n, "features", "auto or names with their types", example)
		return
	}
	p.mapping(n, "features", nil, func(name string, v *yaml.Node) {
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
	const example = "price: {number: [0, 100]}"
	f, where := loop.FeatureRule{Name: name, Kind: loop.NumberFeature}, "features."+name
	if n.Kind != yaml.MappingNode {
		f.Kind += loop.FeatureKind(p.choice(n, where, "number", "text", "bool"))
		return f
	}
	if len(n.Content) != 2 {
		p.errorf(n, "%s: expected a type; for example: %s", where, example)
	}
	p.mapping(n, where, []string{"number", "text", "vector"}, func(key string, v *yaml.Node) {
		switch key {
		case "text":
			p.choice(v, where+".text", "ngrams")
			f.Kind = loop.NgramsFeature
		case "vector":
			f.Kind = loop.VectorFeature
			f.Hi = float64(p.integer(v, where+".vector", 1, maxVector, name+": {vector: 384}"))
		default:
			f.Bounded, f.Hi = true, 1
			p.bounds(v, where, example, &f)
		}
	})
	return f
}

// bounds reads the range of a number.
func (p *parser) bounds(n *yaml.Node, where, example string, f *loop.FeatureRule) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		p.expected(n, where, "the least and the largest value", example)
		return
	}
	f.Lo, f.Hi = p.number(n.Content[0], where, example), p.number(n.Content[1], where, example)
	if !(f.Lo < f.Hi) {
		p.errorf(n, "%s: the least value %v is not below the largest %v; for example: %s", where, f.Lo, f.Hi, example)
	}
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

// scale is the key loss or reward.
type scale struct {
	m   *Model
	key string
}

func (s scale) fields(example string) []field {
	r := &s.m.Range
	return []field{{key: "min", into: &r.Min, example: example}, {key: "max", into: &r.Max, example: example},
		{key: "clip", into: &r.Clip, example: example}}
}

// maxRange keeps max − min finite.
const maxRange = 1e300

func (s scale) read(p *parser, n *yaml.Node) {
	if s.key == "reward" && n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		formula{s.m, s.key, &s.m.Worth}.read(p, n)
		return
	}
	example := s.key + ": {min: 0, max: 1, clip: false}"
	r := &s.m.Range
	*r, s.m.Reward = loop.Range{Min: 0, Max: 1}, s.key == "reward"
	p.group(n, s.key, "min, max and clip", example, s.fields(example))
	if !(r.Min < r.Max) || r.Max-r.Min > maxRange {
		p.errorf(n, "%s: expected min below max, found min %v and max %v; for example: %s", s.key, r.Min, r.Max, example)
	}
}

func (s scale) canonical() string {
	if s.m.Worth != nil {
		return formula{into: &s.m.Worth}.canonical()
	}
	return braces(s.fields(""))
}

type window struct{ at *loop.Window }

func (w window) read(p *parser, n *yaml.Node) {
	s, ok := p.scalar(n, "window", "a duration or a number of rounds", "window: 10m")
	if !ok {
		return
	}
	var err error
	if *w.at, err = ParseWindow(s); err != nil {
		p.errorf(n, "%v", err)
		return
	}
	if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil && w.at.Rounds < fewRounds {
		p.warn(n, "window: %s means rounds: a round waits until %d later ones are decided; "+
			"for minutes write window: %[2]dm, and if rounds are meant, window: %[3]s", n.Value, w.at.Rounds, w.canonical())
	}
}

// fewRounds is below which a window that is a bare number was perhaps meant in other units.
const fewRounds = 100

func (w window) canonical() string { return FormatWindow(*w.at) }

func (w *Warm) read(p *parser, n *yaml.Node) {
	const what, example = "none, keep, refit or the number of a feedback", "warm: refit"
	*w = Warm{}
	s, ok := p.scalar(n, "warm", what, example)
	switch {
	case !ok || s == "none":
	case s == "refit":
		w.Refit = true
	case s == "keep":
		w.Keep = true
	case n.Tag == "!!int":
		w.Through = p.integer(n, "warm", 1, 1<<53, "warm: 12000")
	default:
		p.expected(n, "warm", what, example)
	}
}

func (w *Warm) canonical() string { return w.String() }

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
