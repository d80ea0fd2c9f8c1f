package model

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// fields returns the top-level keys, in the order of the canonical form.
func (m *Model) fields() []field {
	mode := choice{codec.Modes(), int(m.Mode), func(i int) { m.Mode = codec.Mode(i) }}
	return []field{
		{key: "name", into: &m.Name, example: "shop"},
		{key: "version", into: &m.Version, whole: true, lo: 1, hi: 1 << 53, example: "2"},
		{key: "actions", into: nameList(&m.Actions, "any", "[red, green, blue]")},
		{key: "max_actions", into: &m.MaxActions, whole: true, lo: 1, hi: codec.MaxActions, example: "1000"},
		{key: "features", into: m.features()},
		{key: "max_features", into: &m.MaxFeatures, whole: true, lo: 1, hi: codec.MaxFeatures, example: "256"},
		{key: "loss", into: m.scale(false), omit: m.Reward},
		{key: "reward", into: reward{m}, omit: !m.Reward},
		{key: "learner", into: &m.Learner},
		{key: "explore", into: m.Explore.parameter()},
		{key: "oracle", into: &m.Oracle},
		{key: "window", into: windowForm(&m.Window), omit: m.Named != nil},
		{key: "missing", into: either(&m.Impute, "skip", "impute"), omit: m.Named != nil},
		{key: "default_loss", into: &m.DefaultLoss, what: worst, hi: 1, example: "1", omit: !m.Impute},
		{key: "outcomes", into: outcomes{m}},
		{key: "activation", into: either(&m.Activation, "none", "required")},
		{key: "order", into: m.order()},
		{key: "certificate", into: m.Certificate.group(), omit: m.Certificate == defaultCertificate},
		{key: "warm", into: m.Warm.form()},
		{key: "baseline", into: baseline(&m.Baseline), omit: m.Baseline.Kind == loop.FirstAction},
		{key: "masked", into: nameList(&m.Masked, "none", "[red]"), omit: len(m.Masked) == 0},
		{key: "guard", into: guard(&m.Guard), omit: !m.Guard.On()},
		{key: "candidates", into: candidates(&m.Candidates), omit: len(m.Candidates) == 0},
		{key: "promote", into: promotion(&m.Promote), omit: !m.Promote.On()},
		{key: "hold_out", into: &m.HoldOut, what: "a share", hi: .5, example: "0.05", omit: m.HoldOut == 0},
		{key: "mode", into: mode, omit: m.Mode == codec.Live},
		{key: "constants", into: m.constants(), omit: m.Constants == nil},
		{key: "budget", into: m.budgets(), omit: m.Budgets == nil},
		{key: "slots", into: slotsOf(&m.Slots), omit: m.Slots == nil},
		{key: "early", into: hurry(&m.Hurry), omit: m.Hurry == nil},
		{key: "unit", into: unit(&m.Sticky), omit: m.Sticky == 0},
	}
}

// worst says what a loss is that is a number of a model.
const worst = "a loss, on the scale where 1 is worst,"

// Canonical returns the model file with every default written out, as logs have it. Equal models have equal bytes,
// [ParseLogged] reads back an equal model, and the canonical form of that is the same again.
func (m *Model) Canonical() []byte { return lines(m.fields()) }

// File is [Model.Canonical] for people: [Parse] reads back an equal model, too, for it says version 1 of an oracle,
// which logs leave out.
func (m *Model) File() []byte {
	fields, oracle := m.fields(), m.Oracle.keys()
	for i := range oracle {
		oracle[i].omit = oracle[i].omit && oracle[i].key != "version"
	}
	at := slices.IndexFunc(fields, func(f field) bool { return f.key == "oracle" })
	fields[at].into = group{rows: func() []field { return oracle }}
	return lines(fields)
}

// lines writes a field a line.
func lines(fields []field) (b []byte) {
	for i := range fields {
		if f := &fields[i]; !f.omit {
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
	if bytes.Equal(a, b) { // as where a mode is switched
		return "", ""
	}
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

// list is a list of different things, or a word instead.
type list[T comparable] struct {
	at                  *[]T
	word, what, example string
	most                int
	one                 func(p *parser, n *yaml.Node, where string, into *T) (ok bool)
	item                func(v *T) string // as the canonical form has it
}

func (l list[T]) read(p *parser, n *yaml.Node, where string) {
	if *l.at = nil; isWord(n, l.word) {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > l.most {
		p.expected(n, where, l.word+" or a list of "+l.what, l.example)
		return
	}
	for _, c := range n.Content {
		var v T
		if !l.one(p, c, where, &v) {
			continue
		}
		if slices.Contains(*l.at, v) {
			p.errorf(c, "%s: %s is there twice", where, l.item(&v))
		}
		*l.at = append(*l.at, v)
	}
}

func (l list[T]) canonical() string {
	if *l.at == nil {
		return l.word
	}
	return strings.Join(each(*l.at, func(v *T) string { return "\n  - " + l.item(v) }), "")
}

// nameList is names of actions, or a word instead of them.
func nameList(at *[]string, word, example string) list[string] {
	return list[string]{at, word, "names", example, math.MaxInt,
		func(p *parser, n *yaml.Node, where string, into *string) bool {
			name, ok := p.scalar(n, where, "a name", example)
			if err := checkText(name); ok && err != nil {
				p.errorf(n, "%s: the name %v; for example: %s", where, err, example)
			}
			*into = name
			return ok
		}, func(v *string) string { return strconv.Quote(*v) }}
}

// entries is a mapping from names, which are sorted, or a word instead.
type entries[T any] struct {
	at                  *[]T
	word, what, example string
	most                int
	wrong               func(name string) error // with a name
	one                 func(p *parser, n *yaml.Node, name, where string, into *T)
	line                func(v *T) string // as the canonical form has it
}

func (l entries[T]) read(p *parser, n *yaml.Node, where string) {
	if *l.at = nil; l.word != "" && isWord(n, l.word) {
		return
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.expected(n, where, l.what, l.example)
		return
	}
	if len(n.Content)/2 > l.most {
		p.errorf(n, "%s: %d are named, at most %d are allowed", where, len(n.Content)/2, l.most)
		return
	}
	found := map[string]*yaml.Node{}
	p.mapping(n, where, nil, func(name string, v *yaml.Node) {
		if err := l.wrong(name); err != nil {
			p.errorf(v, "%s: the name %q %v; for example: %[1]s: %[4]s", where, name, err, l.example)
			return
		}
		found[name] = v
	})
	*l.at = make([]T, len(found)) // which stay where they are
	for i, name := range slices.Sorted(maps.Keys(found)) {
		path := under(where, name)
		p.at[path] = found[name]
		l.one(p, found[name], name, path, &(*l.at)[i])
	}
}

func (l entries[T]) canonical() string {
	if *l.at == nil {
		return l.word
	}
	return strings.Join(each(*l.at, l.line), "")
}

// features are the features that are listed.
func (m *Model) features() entries[loop.FeatureRule] {
	return entries[loop.FeatureRule]{&m.Features, "auto", "auto or names with their types",
		"{age: number, price: {number: [0, 100]}, country: text, vip: bool}", math.MaxInt, checkText, (*parser).feature,
		func(f *loop.FeatureRule) string {
			kind := f.Kind.String()
			switch {
			case f.Bounded:
				kind = "{number: [" + formatFloat(f.Lo) + ", " + formatFloat(f.Hi) + "]}"
			case f.Kind == loop.VectorFeature:
				kind = "{vector: " + strconv.Itoa(f.Length()) + "}"
			}
			return "\n  ? " + strconv.Quote(f.Name) + "\n  : " + kind // a key after "? " may have any length
		}}
}

// maxVector is the most numbers of a vector.
const maxVector = 8192

func (p *parser) feature(n *yaml.Node, name, where string, f *loop.FeatureRule) {
	const example = "{number: [0, 100]}"
	*f = loop.FeatureRule{Name: name, Kind: loop.NumberFeature}
	if n.Kind != yaml.MappingNode {
		f.Kind += loop.FeatureKind(p.choice(n, where, "number", "text", "bool"))
		return
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
				p.errorf(v, "%s: the least value %v is not below the largest %v; for example: %s: %s", where,
					f.Lo, f.Hi, name, example)
			}
		}
	})
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
			p.errorf(n, "%s: expected min below max, found min %v and max %v; for example: {min: 0, max: 1}", where,
				r.Min, r.Max)
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

// windowForm is a key window.
func windowForm(at *loop.Window) form {
	return form{"a duration or a number of rounds", "10m", func(s string) (err error) {
		*at, err = ParseWindow(s)
		return err
	}, func() string { return FormatWindow(*at) }}
}

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

// slots are the slots that a context may have.
type slots struct{ entries[loop.SlotRule] }

func slotsOf(at *[]loop.SlotRule) slots {
	return slots{entries[loop.SlotRule]{at, "any", "any or the names of slots, each with any or a list of actions",
		"{hero: any, side: [a, b]}", math.MaxInt, func(name string) error {
			if strings.Contains(name, ":") {
				return errors.New("has a colon, which is before the slot in its round's id")
			}
			return checkText(name)
		}, func(p *parser, n *yaml.Node, name, where string, into *loop.SlotRule) {
			into.Name = name
			nameList(&into.Actions, "any", "[a, b]").read(p, n, where)
		}, func(r *loop.SlotRule) string {
			actions := "any"
			if r.Actions != nil {
				quoted := each(r.Actions, func(a *string) string { return strconv.Quote(*a) })
				actions = "[" + strings.Join(quoted, ", ") + "]"
			}
			return strconv.Quote(r.Name) + ": " + actions
		}}}
}

func (s slots) canonical() string { return "{" + strings.Join(each(*s.at, s.line), ", ") + "}" }

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
