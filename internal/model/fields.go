package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
)

// field is one key of a mapping, declared once: by this it is read, checked, written and told of in messages.
type field struct {
	key     string
	into    any     // *string, *bool, *int, *int64, *float64, **float64 or value
	what    string  // what a number is; "": a number
	lo, hi  float64 // its range, both 0: any
	ends    string  // "(]" or "[)": without one end of that
	whole   bool
	word    string // which a number may be instead: that is noted, with another number
	is      *bool
	or      float64
	example string // a value
	omit    bool   // leave the key out of the canonical form: older models keep their bytes
}

// value is what a key with a form of its own is read into. where is its path.
type value interface {
	read(p *parser, n *yaml.Node, where string)
	canonical() string
}

// choice is a key whose values are names.
type choice struct {
	names []string
	at    int
	set   func(i int)
}

func (c choice) read(p *parser, n *yaml.Node, where string) { c.set(p.choice(n, where, c.names...)) }
func (c choice) canonical() string                          { return c.names[c.at] }

// either is a choice between two names, of false and of true.
func either(b *bool, no, yes string) choice {
	at := 0
	if *b {
		at = 1
	}
	return choice{[]string{no, yes}, at, func(i int) { *b = i == 1 }}
}

// word is the key kind of a mapping, which has been read before the others.
type word string

func (w word) read(*parser, *yaml.Node, string) {}
func (w word) canonical() string                { return string(w) }

// form is a scalar with a form of its own. Errors of set say what is wrong, and what to do.
type form struct {
	what, example string
	set           func(s string) error
	get           func() string
}

func (f form) read(p *parser, n *yaml.Node, where string) {
	if s, ok := p.scalar(n, where, f.what, f.example); ok {
		if err := f.set(strings.TrimSpace(s)); err != nil {
			p.errorf(n, "%s: %v", where, err)
		}
	}
}

func (f form) canonical() string { return f.get() }

// orWord is a form or a word, which stands for a value.
func orWord[T comparable](at *T, word string, stands T, f form) form {
	return form{word + ", or " + f.what, word, func(s string) error {
		if *at = stands; s == word {
			return nil
		}
		if err := f.set(s); err != nil {
			return fmt.Errorf("%s, or: %w", word, err)
		}
		return nil
	}, func() string {
		if *at == stands {
			return word
		}
		return f.get()
	}}
}

// group is a mapping of some keys, or a word instead.
type group struct {
	words []string
	// sets what a word stands for, or, of "", what a mapping has by default; nil: nothing
	set  func(word string)
	rows func() []field                              // of what set has set
	then func(p *parser, n *yaml.Node, where string) // checks what has been read of a mapping
	word string                                      // the canonical form, "" of a mapping
}

func (g group) read(p *parser, n *yaml.Node, where string) {
	if i := slices.Index(g.words, n.Value); n.Kind == yaml.ScalarNode && i >= 0 {
		g.set(n.Value)
		return
	}
	if g.set != nil {
		g.set("")
	}
	rows := g.rows()
	if n.Kind != yaml.MappingNode {
		keys := strings.Join(each(rows, func(f *field) string { return f.key }), ", ")
		p.expected(n, where, strings.Join(append(g.words, "some of "+keys), ", or "), g.example())
		return
	}
	errs := len(p.errs)
	if p.fields(n, where, rows); g.then != nil && len(p.errs) == errs {
		g.then(p, n, where)
	}
}

func (g group) example() string {
	var parts []string
	for _, f := range g.rows() {
		if f.omit {
			continue
		}
		switch into := f.into.(type) {
		case form:
			f.example = into.example
		case choice:
			f.example = into.names[0]
		}
		if f.example != "" {
			parts = append(parts, f.key+": "+f.example)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (g group) canonical() string { return cmp.Or(g.word, braces(g.keys())) }

// keys returns the fields, none of a word.
func (g group) keys() []field {
	if g.word != "" {
		return nil
	}
	return g.rows()
}

// parameter is NAME, NAME:ARG or {NAME: ARG}. Errors of set say what is wrong, and what to do.
type parameter struct {
	example string
	set     func(name, arg string, has bool) error
	get     func() string // NAME or NAME:ARG
}

func (v parameter) read(p *parser, n *yaml.Node, where string) {
	var name, arg string
	has, ok := true, false
	switch {
	case n.Kind != yaml.MappingNode:
		name, ok = p.scalar(n, where, "a name", v.example)
		name, arg, has = cutParameter(name)
	case len(n.Content) != 2 || n.Content[0].Kind != yaml.ScalarNode:
		p.expected(n, where, "one name with one parameter, not several or none", v.example)
	default:
		name = n.Content[0].Value
		arg, ok = p.scalar(n.Content[1], where, "a parameter", v.example)
	}
	if ok {
		if err := v.set(name, arg, has); err != nil {
			p.errorf(n, "%s: %v", where, err)
		}
	}
}

func (v parameter) canonical() string {
	if name, arg, has := strings.Cut(v.get(), ":"); has {
		return "{" + name + ": " + arg + "}"
	}
	return v.get()
}

// cutParameter splits NAME:ARG.
func cutParameter(s string) (name, arg string, has bool) {
	name, arg, has = strings.Cut(s, ":")
	return strings.TrimSpace(name), strings.TrimSpace(arg), has
}

// fields reads a mapping, whose path is where, "" of the root.
func (p *parser) fields(n *yaml.Node, where string, fields []field) {
	keys := each(fields, func(f *field) string { return f.key })
	p.mapping(n, where, keys, func(key string, n *yaml.Node) {
		path := under(where, key)
		p.at[path] = n
		p.field(&fields[slices.Index(keys, key)], n, path)
	})
}

// under returns the path of a key.
func under(where, key string) string { return strings.TrimPrefix(where+"."+key, ".") }

func (p *parser) field(f *field, n *yaml.Node, where string) {
	switch into := f.into.(type) {
	case value:
		into.read(p, n, where)
	case *string:
		*into, _ = p.scalar(n, where, "a text", f.example)
	case *bool:
		if n.Tag != "!!bool" || n.Decode(into) != nil {
			p.expected(n, where, "true or false", f.example)
		}
	default:
		if f.is != nil {
			if *f.is = isWord(n, f.word); *f.is {
				f.setNumber(f.or)
				return
			}
		}
		if v, ok := number(n, f.whole); !ok || !f.holds(v) {
			p.expected(n, where, f.expects(), f.example)
		} else {
			f.setNumber(v)
		}
	}
}

// number returns the finite number of a node.
func number(n *yaml.Node, whole bool) (v float64, ok bool) {
	if whole && n.Tag == "!!int" { // all digits of which count
		i, err := strconv.ParseInt(n.Value, 10, 64)
		return float64(i), err == nil && int64(float64(i)) == i
	}
	v, err := parseFloat(n.Value)
	return v, err == nil && (n.Tag == "!!int" || n.Tag == "!!float")
}

// holds reports whether a number is in the range.
func (f *field) holds(v float64) bool {
	ends := cmp.Or(f.ends, "[]")
	return f.lo == f.hi || (v > f.lo || v == f.lo && ends[0] == '[') && (v < f.hi || v == f.hi && ends[1] == ']') &&
		(!f.whole || v == math.Floor(v))
}

// expects says what the number should be.
func (f *field) expects() string {
	what, ends := cmp.Or(f.what, "a number"), cmp.Or(f.ends, "[]")
	switch {
	case f.whole:
		what = "a whole number in " + f.text(f.lo) + "…" + f.text(f.hi)
	case f.lo == f.hi:
		what = "a finite number"
	default:
		what += " in " + ends[:1] + f.text(f.lo) + ", " + f.text(f.hi) + ends[1:]
	}
	if f.word != "" {
		return f.word + " or " + what
	}
	return what
}

// text writes a number of the field.
func (f *field) text(v float64) string {
	if f.whole {
		return strconv.FormatInt(int64(v), 10)
	}
	return formatFloat(v)
}

func (f *field) setNumber(v float64) {
	switch into := f.into.(type) {
	case *int:
		*into = int(v)
	case *int64:
		*into = int64(v)
	case *float64:
		*into = v
	case **float64:
		*into = &v
	}
}

// number returns the number of the field; it is not ok of another one, and of a word instead.
func (f *field) number() (v float64, ok bool) {
	switch into := f.into.(type) {
	case *int:
		return float64(*into), true
	case *int64:
		return float64(*into), true
	case *float64:
		return *into, f.is == nil || !*f.is
	case **float64:
		return **into, true
	}
	return 0, false
}

// canonical returns the value as the canonical form has it.
func (f *field) canonical() string {
	switch v := f.into.(type) {
	case value:
		return v.canonical()
	case *string:
		return strconv.Quote(*v)
	case *bool:
		return strconv.FormatBool(*v)
	}
	if v, ok := f.number(); ok {
		return f.text(v)
	}
	return f.word
}

// line returns the key with its value as the canonical form has them.
func (f *field) line() string {
	v := f.canonical()
	if v[0] == '\n' {
		return f.key + ":" + v
	}
	return f.key + ": " + v
}

// outOfRange reports the numbers of fields that are written and out of their range.
func outOfRange(fields []field, where string, add adder) {
	for i := range fields {
		f := &fields[i]
		path := under(where, f.key)
		if f.omit {
			continue
		}
		if v, ok := f.number(); ok && !f.holds(v) {
			add(path, "expected %s, found %v; for example: %s: %s", f.expects(), v, f.key, f.example)
		}
		if g, ok := f.into.(interface{ keys() []field }); ok {
			outOfRange(g.keys(), path, add)
		}
	}
}

// braces writes fields in one line.
func braces(fields []field) string {
	var parts []string
	for i := range fields {
		if f := &fields[i]; !f.omit {
			parts = append(parts, f.key+": "+f.canonical())
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func isWord(n *yaml.Node, word string) bool { return n.Kind == yaml.ScalarNode && n.Value == word }

// expected reports that a node is not what belongs at a path, with a value for example. It may be one of names that
// is mistyped.
func (p *parser) expected(n *yaml.Node, where, what, example string, names ...string) {
	p.errorf(n, "%s: expected %s, found %s%s; for example: %s: %s", where, what, describe(n),
		didYouMean(n.Value, names), where[strings.LastIndexByte(where, '.')+1:], example)
}

// scalar returns the text of a scalar that is not null.
func (p *parser) scalar(n *yaml.Node, where, what, example string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.expected(n, where, what, example)
		return "", false
	}
	return n.Value, true
}

// number returns the number of a node that is no field.
func (p *parser) number(n *yaml.Node, where, example string) (v float64) {
	p.field(&field{into: &v, example: example}, n, where)
	return v
}

// choice returns the index of the scalar in names.
func (p *parser) choice(n *yaml.Node, where string, names ...string) int {
	i := slices.Index(names, n.Value)
	if n.Kind != yaml.ScalarNode || i < 0 {
		p.expected(n, where, strings.Join(names, " | "), names[0], names...)
	}
	return max(i, 0)
}

// Limits on windows: longer ones would hold more than any log keeps.
const (
	maxWindowRounds = 1_000_000_000
	maxWindowNanos  = int64(10 * 365 * 24 * time.Hour)
)

var errWindow = errors.New(
	`expected a duration or a number of rounds, positive and finite; for example: 10m, 36h, 7d, "200 rounds" or 200r`)

// ParseWindow reads how long a round waits for its outcome: a duration (10m,
// 36h, 7d) or a number of later rounds (200, 200r, "200 rounds").
func ParseWindow(s string) (loop.Window, error) {
	text := strings.TrimSpace(s)
	digits := text
	for _, suffix := range []string{"rounds", "round", "r"} {
		if cut, ok := strings.CutSuffix(text, suffix); ok {
			digits = strings.TrimSpace(cut)
			break
		}
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		if n < 1 || n > maxWindowRounds {
			return loop.Window{}, fmt.Errorf("a window of %d rounds is not in 1…%d: %w", n, maxWindowRounds,
				errWindow)
		}
		return loop.Window{Rounds: n}, nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		return loop.Window{}, fmt.Errorf("%q is no window: %w", s, errWindow)
	}
	if d <= 0 || int64(d) > maxWindowNanos {
		return loop.Window{}, fmt.Errorf("%q is no window in (0, 10 years]: a round without an outcome must end: %w",
			s, errWindow)
	}
	return loop.Window{Nanos: int64(d)}, nil
}

// ParseDuration is [time.ParseDuration] that also reads whole days: 7d.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil {
			s = strconv.FormatUint(24*n, 10) + "h"
		}
	}
	return time.ParseDuration(s)
}

// FormatWindow writes a window as ParseWindow reads it.
func FormatWindow(w loop.Window) string {
	switch {
	case w.Rounds == 1:
		return "1 round"
	case w.Rounds > 0:
		return strconv.FormatInt(w.Rounds, 10) + " rounds"
	}
	s := time.Duration(w.Nanos).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseFloat reads a finite decimal number; −0 becomes 0 so that equal models have equal bytes.
func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q: not a finite number", s)
	}
	return f + 0, nil
}

// formatFloat writes the shortest text that reads back; −0 is written as 0.
func formatFloat(f float64) string { return strconv.FormatFloat(f+0, 'g', -1, 64) }
