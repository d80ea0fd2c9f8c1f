package model

import (
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
			return loop.Window{}, fmt.Errorf("window of %d rounds is not in 1…%d: %w", n, maxWindowRounds, errWindow)
		}
		return loop.Window{Rounds: n}, nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		return loop.Window{}, fmt.Errorf("window %q: %w", s, errWindow)
	}
	if d <= 0 || int64(d) > maxWindowNanos {
		return loop.Window{}, fmt.Errorf("window %q is not in (0, 10 years]: a round without an outcome must end: %w",
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

var errNotFinite = errors.New("not a finite number")

// parseFloat reads a finite decimal number; −0 becomes 0 so that equal models
// have equal bytes.
func parseFloat(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q: %w", s, errNotFinite)
	}
	return f + 0, nil
}

// formatFloat writes the shortest text that reads back; −0 is written as 0.
func formatFloat(f float64) string { return strconv.FormatFloat(f+0, 'g', -1, 64) }
