package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/internal/scan"
	"hindsight/pkg/oracle"
)

// Error is one thing wrong in a model file. Line and Column count from 1; 0 means the file as a whole.
type Error = scan.LineError

// Errors is everything wrong in a model file, in the order of its lines.
type Errors []*Error

func (es Errors) Error() string {
	return strings.Join(each(es, func(e **Error) string { return (*e).Error() }), "\n")
}

// sorted sorts es by lines and columns.
func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}

// Unwrap gives errors.As and errors.Is each of them.
func (es Errors) Unwrap() []error {
	return each(es, func(e **Error) error { return *e })
}

// MaxBytes is the size limit of a model file.
const MaxBytes = 1 << 20

// Parse reads a model file; file is its name in errors. Whatever is left out has its default. An error is an [Errors]
// with all that is wrong, each with the line and column, what was expected, and an example.
func Parse(file string, b []byte) (*Model, error) {
	m, _, err := ParseWithWarnings(file, b)
	return m, err
}

// ParseWithWarnings is [Parse] that also returns what is allowed and yet seldom what is meant, in
// the order of the lines.
func ParseWithWarnings(file string, b []byte) (*Model, Errors, error) {
	return parse(file, b, oracle.Newest)
}

// ParseLogged is [Parse] of a model as a log keeps it: an oracle without a version has version 1.
func ParseLogged(file string, b []byte) (*Model, error) {
	m, _, err := parse(file, b, 1)
	return m, err
}

func parse(file string, b []byte, version int) (*Model, Errors, error) {
	p := &parser{file: file, version: version}
	m := p.parse(b)
	if len(p.errs) > 0 {
		return nil, nil, p.errs.sorted()
	}
	return m, p.warnings.sorted(), nil
}

type parser struct {
	file     string
	version  int // of an oracle that says none
	errs     Errors
	warnings Errors                // what is no error
	at       map[string]*yaml.Node // the value of each key and named thing that is there, by its path
	deferred []func()              // what needs all keys to be read
}

func (p *parser) errorf(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, p.errorAt(n, format, args...))
}

// warn adds what is allowed, but seldom what is meant.
func (p *parser) warn(n *yaml.Node, format string, args ...any) {
	p.warnings = append(p.warnings, p.errorAt(n, format, args...))
}

func (p *parser) errorAt(n *yaml.Node, format string, args ...any) *Error {
	return scan.AtNode(p.file, n, fmt.Sprintf(format, args...))
}

func (p *parser) parse(b []byte) *Model {
	if len(b) > MaxBytes {
		p.errorf(nil, "the model file has %d bytes, at most %d are allowed", len(b), MaxBytes)
		return nil
	}
	root, err := scan.YAML(p.file, b)
	if err == nil && root != nil && root.Kind != yaml.MappingNode {
		err = p.errorAt(root, "expected keys and values, found %s; for example: name: shop", describe(root))
	}
	if err != nil {
		if strings.Contains(err.Msg, "mapping values are not allowed") {
			err.Msg += "; a key with a parameter goes in braces, for example: learner: {egreedy: 0.05}"
		}
		p.errs = append(p.errs, err)
		return nil
	}
	m := Default()
	p.at = map[string]*yaml.Node{}
	if root != nil {
		p.fields(root, "", m.fields())
	}
	if len(p.errs) > 0 {
		return nil // what follows would complain about half-read values
	}
	if p.finish(m); len(p.errs) > 0 && m.Named != nil {
		return nil
	}
	m.check(func(key, format string, args ...any) { p.errorf(p.nearest(key), key+": "+format, args...) })
	return m
}

// nearest returns the value at a path, or of the nearest key above that is there, nil if none is.
func (p *parser) nearest(path string) *yaml.Node {
	for {
		n, dot := p.at[path], strings.LastIndexByte(path, '.')
		if n != nil || dot < 0 {
			return n
		}
		path = path[:dot]
	}
}

// fewRounds is below which a window that is a bare number was perhaps meant in other units.
const fewRounds = 100

// warnSeldom warns of what is seldom meant.
func (p *parser) warnSeldom(m *Model) {
	for path, n := range p.at {
		if rounds, err := strconv.Atoi(n.Value); err == nil && rounds < fewRounds &&
			(path == "window" || strings.HasPrefix(path, "outcomes.") && strings.HasSuffix(path, ".window")) {
			p.warn(n, "window: %d means rounds: a round waits until %[1]d later ones are decided; for minutes write "+
				"window: %[1]dm, and if rounds are meant, window: %s", rounds,
				FormatWindow(loop.Window{Rounds: int64(rounds)}))
		}
	}
	if text := m.Explore.Warning(); text != "" {
		p.warn(p.at["explore"], "%s", text)
	}
	if m.Arrival && m.Oracle.Kind == Ridge {
		p.warn(p.at["order"], "order: arrival costs linear oracles up to twice the regret of fifo where the world "+
			"stands still: gains come first, silence a window later; for most, order: fifo is better")
	}
}

// finish fills what depends on several keys, and reports keys that fight.
func (p *parser) finish(m *Model) {
	if p.finishNamed(m); len(p.errs) > 0 && m.Named != nil {
		return // half-read formulas
	}
	if p.at["loss"] != nil && p.at["reward"] != nil {
		p.errorf(p.at["reward"], "reward: loss is given too; keep one of them")
	}
	if p.at["default_loss"] != nil && !m.Impute {
		p.errorf(p.at["default_loss"], "default_loss: it has no effect without missing: impute; for example: "+
			"missing: impute")
	}
	if x := &m.Learner.EXP4; m.Learner.Kind == EXP4DALE && x.Policies == "" && m.Oracle.Kind == Hedge {
		x.Policies = m.Oracle.Class
	}
	if m.Actions != nil && p.at["max_actions"] == nil {
		m.MaxActions = len(m.Actions)
	}
	if p.at["oracle"] == nil {
		m.defaultOracle(p.version)
	}
	if p.at["order"] == nil {
		if m.DefaultOrder(); p.version == 1 {
			m.Early = false
		}
	}
	p.warnSeldom(m)
	if m.Oracle.Kind == Hedge && m.Oracle.Eta == 0 {
		m.Oracle.Eta = m.defaultEta()
	}
}

// mapping calls f for each key of n that is in allowed, and reports the others
// and repeats. where is the path of n: "" for the root.
func (p *parser) mapping(n *yaml.Node, where string, allowed []string, f func(key string, value *yaml.Node)) {
	seen, path := map[string]bool{}, strings.TrimPrefix(where+": ", ": ")
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.errorf(key, "%sexpected a key, found %s", path, describe(key))
		case allowed != nil && !slices.Contains(allowed, key.Value):
			p.errorf(key, "%sunknown key %q%s; expected one of %s", path, key.Value, didYouMean(key.Value, allowed),
				strings.Join(allowed, ", "))
		case seen[key.Value]:
			p.errorf(key, "%sthe key %q is there twice", path, key.Value)
		default:
			seen[key.Value] = true
			f(key.Value, value)
		}
	}
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (anchors and aliases are not supported)"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return n.Value
	}
	return strconv.Quote(n.Value)
}

// didYouMean names the allowed key nearest to a wrong one, if it is near.
func didYouMean(key string, allowed []string) string {
	best, at := 3, ""
	for _, a := range allowed {
		if d := distance(key, a, best); d < best && d < len(a) {
			best, at = d, a
		}
	}
	if at == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", at)
}

// distance is the Levenshtein distance of two texts, or most if it is larger.
func distance(a, b string, most int) int {
	switch {
	case most == 0, a == "", b == "":
		return min(len(a)+len(b), most)
	case a[0] == b[0]:
		return distance(a[1:], b[1:], most)
	}
	return 1 + min(distance(a[1:], b, most-1), distance(a, b[1:], most-1), distance(a[1:], b[1:], most-1))
}
