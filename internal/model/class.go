package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// Kinds of function classes.
const (
	LinearClass   = "linear"
	LogisticClass = "logistic"
	tabularClass  = "tabular"
	MixedClass    = "mixed"
	SharedClass   = "shared"
)

// Limits on class files: a class is evaluated whole on every round.
const (
	maxClassBytes   = 64 << 20
	maxClassNumbers = 1 << 22 // over all functions
)

// ClassFile is a finite class of functions as its file says it.
type ClassFile struct {
	Kind           string
	Features       []string
	Actions        []string   // all but shared, which takes any
	ActionFeatures []string   // shared: columns of an action
	Functions      []Function // at least one
}

// Function is one line of a class file.
type Function struct {
	Prior float64              // > 0, up to a common factor
	W     [][]float64          // linear and logistic: a row an action: one number a feature, then the intercept
	Table map[string][]float64 // tabular: one loss an action for each key, feature values joined by "|"
	Mixed oracle.MixedFunction // mixed and shared: linear, logistic or trees
}

// parts returns the keys of a line beside its prior.
func (f *Function) parts() (names []string) {
	m := &f.Mixed
	for i, there := range []bool{f.W != nil, f.Table != nil, m.Linear != nil, m.Logistic != nil, m.Trees != nil} {
		if there {
			names = append(names, []string{"w", "table", "linear", "logistic", "trees"}[i])
		}
	}
	return names
}

// classKind is a kind of class: what a line of it has, and what is made of its lines.
type classKind struct {
	name, parts, example string
	class                func(c *ClassFile) (oracle.Class, error)
}

func classKinds() []classKind {
	const rows, table, mixed = `{"prior":1,"w":[[0.1,0.5],[-0.2,0.5]]}`, `{"prior":1,"table":{"DE|true":[0.2,0.8]}}`,
		`{"prior":1,"%s":[[0.1,0.5],[-0.2,0.5]]} or {"prior":1,"trees":[{"splits":[[%d,14.5,-1,-2]],"leaves":%s}]}`
	weights := func(f *Function) [][]float64 { return f.W }
	function := func(f *Function) oracle.MixedFunction { return f.Mixed }
	return []classKind{
		{LinearClass, "w", rows, func(c *ClassFile) (oracle.Class, error) {
			return oracle.NewLinearClass(c.Features, c.Actions, each(c.Functions, weights))
		}},
		{LogisticClass, "w", rows, func(c *ClassFile) (oracle.Class, error) {
			return oracle.NewLogisticClass(c.Features, c.Actions, each(c.Functions, weights))
		}},
		{tabularClass, "table", table, func(c *ClassFile) (oracle.Class, error) {
			tables := each(c.Functions, func(f *Function) map[string][]float64 { return f.Table })
			return oracle.NewTabularClass(c.Features, c.Actions, tables)
		}},
		{MixedClass, "linear, logistic or trees", fmt.Sprintf(mixed, "logistic", 0, "[[0.2,0.8],[0.6,0.1]]"),
			func(c *ClassFile) (oracle.Class, error) {
				return oracle.NewMixedClass(c.Features, c.Actions, each(c.Functions, function))
			}},
		{SharedClass, "linear, logistic or trees", fmt.Sprintf(mixed, "linear", 1, "[[0.2],[0.6]]"),
			func(c *ClassFile) (oracle.Class, error) {
				return oracle.NewSharedClass(c.Features, c.ActionFeatures, each(c.Functions, function))
			}},
	}
}

func classNames() []string { return each(classKinds(), func(k *classKind) string { return k.name }) }

func (c *ClassFile) kind() *classKind {
	return &classKinds()[slices.Index(classNames(), c.Kind)]
}

// classSize is what the limit on numbers counts: a function of a tabular class
// has a number for every key of the class, whether or not its line names it.
type classSize struct {
	keys    map[string]bool
	numbers int // of all functions, but for tables
}

// add counts a function of a class with so many.
func (s *classSize) add(c *ClassFile, f *Function) (numbers int) {
	m := &f.Mixed
	lists := slices.Concat(f.W, m.Linear, m.Logistic)
	for i := range m.Trees {
		s.numbers += 4 * len(m.Trees[i].Splits)
		lists = append(lists, m.Trees[i].Leaves...)
	}
	for _, l := range lists {
		s.numbers += len(l)
	}
	for key := range f.Table {
		s.keys[key] = true
	}
	return s.numbers + (len(c.Functions)+1)*len(s.keys)*len(c.Actions)
}

type classHeader struct {
	Version        *int     `json:"hindsight_class"`
	Kind           string   `json:"kind"`
	Features       []string `json:"features"`
	Actions        []string `json:"actions"`
	ActionFeatures []string `json:"action_features"`
}

type classLine struct {
	Prior float64              `json:"prior"`
	W     [][]float64          `json:"w"`
	Table map[string][]float64 `json:"table"`
	// a row an action, or a feature of actions and one more: one number a feature, then the intercept
	Linear   [][]float64 `json:"linear"`
	Logistic [][]float64 `json:"logistic"` // the same
	Trees    []treeLine  `json:"trees"`    // the function is their mean
}

// treeLine is one tree: [column, at, low, high] a split, the first being the root, and a loss an action a leaf. A
// column of at most `at` goes to low: to a later split, counted from 0, or to leaf i, which is −1−i.
type treeLine struct {
	Splits [][4]float64 `json:"splits"`
	Leaves [][]float64  `json:"leaves"`
}

const (
	headerExample       = `{"hindsight_class":1,"kind":"linear","features":["age"],"actions":["red","green"]}`
	sharedHeaderExample = `{"hindsight_class":1,"kind":"shared","features":["age"],"action_features":["price"]}`
)

// ParseClass reads a class file: JSON lines, a header and then one function a
// line. The error is an *[Error] with the file and the line.
func ParseClass(name string, b []byte) (*ClassFile, error) {
	var c *ClassFile
	size := classSize{keys: map[string]bool{}}
	lines, err := jsonLines(name, "class", headerExample, b, func(line int, text []byte) (err error) {
		if text = bytes.TrimSpace(text); c == nil {
			c, err = parseHeader(text)
		} else {
			err = c.parseFunction(text, &size)
		}
		if err != nil {
			return &Error{File: name, Line: int64(line), Msg: err.Error()}
		}
		return nil
	})
	if err == nil && len(c.Functions) == 0 {
		msg := "the class has no function; add a line, for example " + c.kind().example
		err = &Error{File: name, Line: int64(lines), Msg: msg}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func parseHeader(text []byte) (*ClassFile, error) {
	var h classHeader
	if err := decodeLine(text, &h); err != nil {
		return nil, fmt.Errorf("class header: %w; for example %s", err, headerExample)
	}
	shared, n := h.Kind == SharedClass, len(h.ActionFeatures)
	switch {
	case h.Version == nil:
		return nil, errors.New("the first line is not a class header: no hindsight_class; for example " + headerExample)
	case *h.Version != 1:
		return nil, fmt.Errorf("hindsight_class is %d, this version reads 1", *h.Version)
	case !slices.Contains(classNames(), h.Kind):
		return nil, fmt.Errorf("kind: expected %s, found %q", strings.Join(classNames(), " | "), h.Kind)
	case shared && h.Actions != nil:
		return nil, errors.New("a shared class takes any action and lists none; for example " + sharedHeaderExample)
	case shared && n == 0:
		return nil, errors.New("action_features: expected at least one name; for example " + sharedHeaderExample)
	case shared && (n > codec.MaxFeatures || len(h.Features) > codec.MaxFeatures):
		return nil, fmt.Errorf("%d features and %d of actions, at most %d of each are allowed", len(h.Features), n,
			codec.MaxFeatures)
	case !shared && h.ActionFeatures != nil:
		return nil, fmt.Errorf("action_features are of a shared class, not of a %s one; for example %s", h.Kind,
			sharedHeaderExample)
	case !shared && len(h.Actions) == 0:
		return nil, errors.New("actions: expected at least one name; for example " + headerExample)
	case len(h.Actions) > codec.MaxActions || len(h.Features) > codec.MaxFeatures:
		return nil, fmt.Errorf("%d actions and %d features, at most %d and %d are allowed",
			len(h.Actions), len(h.Features), codec.MaxActions, codec.MaxFeatures)
	}
	c := &ClassFile{Kind: h.Kind, Features: h.Features, Actions: h.Actions, ActionFeatures: h.ActionFeatures}
	return c, cmp.Or(checkNames("actions", h.Actions), checkNames("features", h.Features),
		checkNames("action_features", h.ActionFeatures))
}

func checkNames(what string, names []string) error {
	seen := make(map[string]bool, len(names))
	for i, n := range names {
		if err := checkText(n); err != nil {
			return fmt.Errorf("%s[%d] %w", what, i, err)
		}
		if seen[n] {
			return fmt.Errorf("%s[%d]: %q is there twice", what, i, n)
		}
		seen[n] = true
	}
	return nil
}

func (c *ClassFile) parseFunction(text []byte, size *classSize) error {
	l, k := classLine{Prior: 1}, c.kind()
	if err := decodeLine(text, &l); err != nil {
		return fmt.Errorf("function: %w; for example %s", err, k.example)
	}
	if l.Prior < 1e-300 {
		return fmt.Errorf("prior: expected a positive number, found %v; leave a function out to give it none", l.Prior)
	}
	f := Function{Prior: l.Prior, W: l.W, Table: l.Table,
		Mixed: oracle.MixedFunction{Linear: l.Linear, Logistic: l.Logistic}}
	if l.Trees != nil {
		f.Mixed.Trees = make([]oracle.Tree, len(l.Trees))
	}
	for i, t := range l.Trees {
		f.Mixed.Trees[i].Leaves = t.Leaves
		for j, s := range t.Splits {
			split := oracle.Split{Column: int(s[0]), At: s[1], Low: int(s[2]), High: int(s[3])}
			if float64(split.Column) != s[0] || float64(split.Low) != s[2] || float64(split.High) != s[3] {
				return fmt.Errorf("trees[%d].splits[%d] is %v: expected [column, at, low, high], all but at whole; "+
					"for example %s", i, j, s, k.example)
			}
			f.Mixed.Trees[i].Splits = append(f.Mixed.Trees[i].Splits, split)
		}
	}
	return c.add(f, size)
}

// add adds a function, if it is one of the class and there is room for it.
func (c *ClassFile) add(f Function, size *classSize) error {
	k := c.kind()
	if given := f.parts(); len(given) != 1 || !strings.Contains(k.parts, given[0]) {
		return fmt.Errorf("a function of a %s class has %s, and nothing else; for example %s", c.Kind, k.parts,
			k.example)
	}
	if n := size.add(c, &f); n > maxClassNumbers {
		return fmt.Errorf("the functions so far have %d numbers, more than the %d that fit; use fewer, or smaller ones",
			n, maxClassNumbers)
	}
	one := *c
	one.Functions = []Function{f}
	if _, err := one.Class(); err != nil {
		return fmt.Errorf("%s; for example %s", strings.Replace(err.Error(), "function 0: ", "", 1), k.example)
	}
	c.Functions = append(c.Functions, f)
	return nil
}

// decodeLine reads exactly one JSON object without unknown keys.
func decodeLine(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); errors.Is(err, io.ErrUnexpectedEOF) {
		return errLineEnds
	} else if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON object on the line")
	}
	return nil
}

// Append appends the class file's bytes; equal classes have equal bytes. The numbers must be finite.
func (c *ClassFile) Append(dst []byte) []byte {
	dst = appendJSON(append(dst, `{"hindsight_class":1,"kind":`...), c.Kind)
	dst = appendStrings(append(dst, `,"features":`...), c.Features)
	if c.Kind == SharedClass {
		dst = appendStrings(append(dst, `,"action_features":`...), c.ActionFeatures)
	} else {
		dst = appendStrings(append(dst, `,"actions":`...), c.Actions)
	}
	dst = append(dst, "}\n"...)
	for i := range c.Functions {
		f := &c.Functions[i]
		dst = appendNumber(append(dst, `{"prior":`...), f.Prior)
		dst = append(f.append(append(dst, ',')), "}\n"...)
	}
	return dst
}

// append appends what a line has beside its prior.
func (f *Function) append(dst []byte) []byte {
	switch m := &f.Mixed; {
	case f.W != nil:
		return appendRows(append(dst, `"w":`...), f.W)
	case f.Table != nil:
		dst = append(dst, `"table":`...)
		start := byte('{')
		for _, key := range slices.Sorted(maps.Keys(f.Table)) {
			dst = appendNumbers(append(appendJSON(append(dst, start), key), ':'), f.Table[key])
			start = ','
		}
		if start == '{' {
			dst = append(dst, start)
		}
		return append(dst, '}')
	case m.Linear != nil:
		return appendRows(append(dst, `"linear":`...), m.Linear)
	case m.Logistic != nil:
		return appendRows(append(dst, `"logistic":`...), m.Logistic)
	}
	return appendList(append(dst, `"trees":`...), f.Mixed.Trees, func(dst []byte, t oracle.Tree) []byte {
		dst = appendList(append(dst, `{"splits":`...), t.Splits, func(dst []byte, s oracle.Split) []byte {
			return appendNumbers(dst, []float64{float64(s.Column), s.At, float64(s.Low), float64(s.High)})
		})
		return append(appendRows(append(dst, `,"leaves":`...), t.Leaves), '}')
	})
}

// Class returns the functions in the form that an oracle evaluates.
func (c *ClassFile) Class() (oracle.Class, error) { return c.kind().class(c) }

// each returns what one returns of each element of a list.
func each[S, T any](list []S, one func(*S) T) []T {
	out := make([]T, len(list))
	for i := range list {
		out[i] = one(&list[i])
	}
	return out
}

// Priors returns the prior weight of each function, up to a factor.
func (c *ClassFile) Priors() []float64 {
	return each(c.Functions, func(f *Function) float64 { return f.Prior })
}
