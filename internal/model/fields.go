package model

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is one key of a mapping: what it is read into, and what the canonical form is written from.
type field struct {
	key      string
	into     any    // *string, *bool, *int, *int64, *float64, *Number, choice or value
	example  string // how to write the key
	lo, hi   int64  // of whole numbers; of a Number 0: it need not be whole
	ok       func(float64) bool
	expected string // of numbers that ok restricts: what a message says after "expected", with the number
	omit     bool   // leave the key out of the canonical form: older models keep their bytes
}

// value is what a key with a form of its own is read into.
type value interface {
	read(p *parser, n *yaml.Node)
	canonical() string
}

// choice is a key whose values are names.
type choice struct {
	names []string
	at    int
	set   func(i int)
}

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

func (w word) read(*parser, *yaml.Node) {}
func (w word) canonical() string        { return string(w) }

// fields reads a mapping and returns the nodes of the keys that it has. where is its path, "" of the root.
func (p *parser) fields(n *yaml.Node, where string, fields []field) map[string]*yaml.Node {
	given, keys := map[string]*yaml.Node{}, each(fields, func(f *field) string { return f.key })
	p.mapping(n, where, keys, func(key string, n *yaml.Node) {
		given[key] = n
		path := key
		if where != "" {
			path = where + "." + key
		}
		p.field(&fields[slices.Index(keys, key)], n, path)
	})
	return given
}

func (p *parser) field(f *field, n *yaml.Node, where string) {
	switch into := f.into.(type) {
	case value:
		into.read(p, n)
	case choice:
		into.set(p.choice(n, where, into.names...))
	case *string:
		*into, _ = p.scalar(n, where, "a text", f.example)
	case *bool:
		*into = p.boolean(n, where, f.example)
	case *int:
		*into = int(p.integer(n, where, f.lo, f.hi, f.example))
	case *int64:
		*into = p.integer(n, where, f.lo, f.hi, f.example)
	case *Number:
		switch {
		case isWord(n, "auto"):
			*into = Number{Auto: true}
		case f.hi > 0:
			*into = Number{Value: float64(p.integer(n, where, f.lo, f.hi, f.example))}
		default:
			*into = Number{Value: p.number(n, where, f.example)}
		}
	case *float64:
		if *into = p.number(n, where, f.example); f.ok != nil && !f.ok(*into) {
			p.errorf(n, "%s: expected "+f.expected, where, *into)
		}
	}
}

// canonical returns the value as the canonical form has it.
func (f *field) canonical() string {
	switch v := f.into.(type) {
	case value:
		return v.canonical()
	case choice:
		return v.names[v.at]
	case *string:
		return strconv.Quote(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	case *Number:
		switch {
		case v.Auto:
			return "auto"
		case f.hi > 0:
			return strconv.FormatInt(int64(v.Value), 10)
		}
		return formatFloat(v.Value)
	case *float64:
		return formatFloat(*v)
	}
	panic("model: a field of an unknown type")
}

// line returns the key with its value as the canonical form has them.
func (f *field) line() string {
	v := f.canonical()
	if v[0] == '\n' {
		return f.key + ":" + v
	}
	return f.key + ": " + v
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

// expected reports that a node is not what belongs there.
func (p *parser) expected(n *yaml.Node, where, what, example string) {
	p.errorf(n, "%s: expected %s, found %s; for example: %s", where, what, describe(n), example)
}

// group reads a mapping of some keys.
func (p *parser) group(n *yaml.Node, key, what, example string, fields []field) {
	if n.Kind != yaml.MappingNode {
		p.expected(n, key, what, example)
		return
	}
	p.fields(n, key, fields)
}

// scalar returns the text of a scalar that is not null.
func (p *parser) scalar(n *yaml.Node, where, what, example string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.expected(n, where, what, example)
		return "", false
	}
	return n.Value, true
}

func (p *parser) integer(n *yaml.Node, where string, lo, hi int64, example string) int64 {
	const what = "a whole number"
	s, ok := p.scalar(n, where, what, example)
	if !ok {
		return lo
	}
	v, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n.Tag != "!!int":
		p.expected(n, where, what, example)
	case v < lo || v > hi:
		p.errorf(n, "%s: expected %s in %d…%d, found %d; for example: %s", where, what, lo, hi, v, example)
	default:
		return v
	}
	return lo
}

func (p *parser) number(n *yaml.Node, where, example string) float64 {
	if s, ok := p.scalar(n, where, "a number", example); ok {
		if v, err := parseFloat(s); err == nil && (n.Tag == "!!int" || n.Tag == "!!float") {
			return v
		}
		p.expected(n, where, "a finite number", example)
	}
	return 0
}

func (p *parser) boolean(n *yaml.Node, where, example string) (v bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.expected(n, where, "true or false", example)
	} else if err := n.Decode(&v); err != nil {
		p.errorf(n, "%s: %v", where, err)
	}
	return v
}

// choice returns the index of the scalar in names.
func (p *parser) choice(n *yaml.Node, where string, names ...string) int {
	what, example := strings.Join(names, " | "), where+": "+names[0]
	if s, ok := p.scalar(n, where, what, example); ok {
		if i := slices.Index(names, s); i >= 0 {
			return i
		}
		p.errorf(n, "%s: expected %s, found %q%s; for example: %s", where, what, s, didYouMean(s, names), example)
	}
	return 0
}
