package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// classKind is a kind of class: one file, and a name in classNames.
type classKind interface {
	example() string
	// read checks a line, fills f from it and counts its numbers.
	read(c *ClassFile, f *Function, l *classLine, size *classSize) error
	write(dst []byte, f *Function) []byte // what a line has beside its prior
	class(c *ClassFile) (oracle.Class, error)
}

func classNames() []string {
	return []string{LinearClass, LogisticClass, tabularClass, MixedClass, SharedClass}
}

func (c *ClassFile) kind() classKind {
	switch c.Kind {
	case tabularClass:
		return tableClass{}
	case MixedClass, SharedClass:
		return mixedClass{c.Kind == SharedClass}
	}
	return rowClass{c.Kind == LogisticClass}
}

// classSize is what the limit on numbers counts: a function of a tabular class
// has a number for every key of the class, whether or not its line names it.
type classSize struct {
	keys  map[string]bool
	row   int // numbers a function
	mixed int // numbers of all functions of a mixed class
}

type classHeader struct {
	Version        *int     `json:"hindsight_class"`
	Kind           string   `json:"kind"`
	Features       []string `json:"features"`
	Actions        []string `json:"actions"`
	ActionFeatures []string `json:"action_features"`
}

type classLine struct {
	Prior *float64             `json:"prior"`
	W     [][]float64          `json:"w"`
	Table map[string][]float64 `json:"table"`
	mixedLine
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
			return &Error{File: name, Line: line, Msg: err.Error()}
		}
		return nil
	})
	if err == nil && len(c.Functions) == 0 {
		msg := "the class has no function; add a line, for example " + c.kind().example()
		err = &Error{File: name, Line: lines, Msg: msg}
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
	var l classLine
	k := c.kind()
	if err := decodeLine(text, &l); err != nil {
		return fmt.Errorf("function: %w; for example %s", err, k.example())
	}
	f := Function{Prior: 1, W: l.W, Table: l.Table}
	if l.Prior != nil {
		f.Prior = *l.Prior
	}
	if f.Prior < 1e-300 {
		return fmt.Errorf("prior: expected a positive number, found %v; leave a function out to give it none", f.Prior)
	}
	if _, mixed := k.(mixedClass); !mixed && l.given() {
		return fmt.Errorf("linear, logistic and trees are of a mixed class or a shared one, not of a %s one; for "+
			"example %s", c.Kind, k.example())
	}
	if err := k.read(c, &f, &l, size); err != nil {
		return err
	}
	if n := len(c.Functions) + 1; n*size.row > maxClassNumbers {
		return fmt.Errorf("%d functions of %d numbers each are more than the %d that fit; use fewer", n, size.row,
			maxClassNumbers)
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

// Append appends the class file's bytes; equal classes have equal bytes. The
// numbers must be finite.
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
		dst = append(c.kind().write(append(dst, ','), f), "}\n"...)
	}
	return dst
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
