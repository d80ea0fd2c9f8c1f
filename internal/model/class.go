package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// Kinds of function classes.
const (
	LinearClass   = "linear"
	LogisticClass = "logistic"
	TabularClass  = "tabular"
	MixedClass    = "mixed"
	SharedClass   = "shared"
)

// Limits on class files: a class is evaluated whole on every round.
const (
	MaxClassBytes   = 64 << 20
	MaxClassNumbers = 1 << 22 // over all functions
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
	headerExample   = `{"hindsight_class":1,"kind":"linear","features":["age"],"actions":["red","green"]}`
	functionExample = `{"prior":1,"w":[[0.1,0.5],[-0.2,0.5]]}`
	tableExample    = `{"prior":1,"table":{"DE|true":[0.2,0.8]}}`
)

// ParseClass reads a class file: JSON lines, a header and then one function a
// line. The error is an *[Error] with the file and the line.
func ParseClass(name string, b []byte) (*ClassFile, error) {
	if len(b) > MaxClassBytes {
		return nil, &Error{File: name, Msg: fmt.Sprintf("the class file has %d bytes, at most %d are allowed", len(b), MaxClassBytes)}
	}
	var c *ClassFile
	size, line := classSize{keys: map[string]bool{}}, 0
	for len(b) > 0 {
		var text []byte
		text, b, _ = bytes.Cut(b, []byte{'\n'})
		line++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		var err error
		if c == nil {
			c, err = parseHeader(text)
		} else {
			err = c.parseFunction(text, &size)
		}
		if err != nil {
			return nil, &Error{File: name, Line: line, Msg: err.Error()}
		}
	}
	switch {
	case c == nil:
		return nil, &Error{File: name, Line: 1, Msg: "the class file is empty; its first line is for example " + headerExample}
	case len(c.Functions) == 0:
		return nil, &Error{File: name, Line: line, Msg: "the class has no function; add a line, for example " + c.example()}
	}
	return c, nil
}

func parseHeader(text []byte) (*ClassFile, error) {
	var h classHeader
	if err := decodeLine(text, &h); err != nil {
		return nil, fmt.Errorf("class header: %w; for example %s", err, headerExample)
	}
	switch {
	case h.Version == nil:
		return nil, errors.New("the first line is not a class header: no hindsight_class; for example " + headerExample)
	case *h.Version != 1:
		return nil, fmt.Errorf("hindsight_class is %d, this version reads 1", *h.Version)
	case !slices.Contains(classKinds(), h.Kind):
		return nil, fmt.Errorf("kind: expected %s, found %q", strings.Join(classKinds(), " | "), h.Kind)
	case h.Kind == SharedClass:
		return sharedHeader(&h)
	case h.ActionFeatures != nil:
		return nil, fmt.Errorf("action_features are of a shared class, not of a %s one; for example %s", h.Kind, sharedHeaderExample)
	case len(h.Actions) == 0:
		return nil, errors.New("actions: expected at least one name; for example " + headerExample)
	case len(h.Actions) > codec.MaxActions || len(h.Features) > codec.MaxFeatures:
		return nil, fmt.Errorf("%d actions and %d features, at most %d and %d are allowed", len(h.Actions), len(h.Features), codec.MaxActions, codec.MaxFeatures)
	}
	if err := checkNames("actions", h.Actions); err != nil {
		return nil, err
	}
	if err := checkNames("features", h.Features); err != nil {
		return nil, err
	}
	return &ClassFile{Kind: h.Kind, Features: h.Features, Actions: h.Actions}, nil
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
	if err := decodeLine(text, &l); err != nil {
		return fmt.Errorf("function: %w; for example %s", err, c.example())
	}
	f := Function{Prior: 1, W: l.W, Table: l.Table}
	if l.Prior != nil {
		f.Prior = *l.Prior
	}
	if f.Prior < 1e-300 {
		return fmt.Errorf("prior: expected a positive number, found %v; leave a function out to give it none", f.Prior)
	}
	if !c.mixed() && l.given() {
		return fmt.Errorf("linear, logistic and trees are of a mixed class or a shared one, not of a %s one; for example %s", c.Kind, c.example())
	}
	switch c.Kind {
	case MixedClass, SharedClass:
		if l.W != nil || l.Table != nil || !l.given() {
			return fmt.Errorf("a function of a %s class has linear, logistic or trees; for example %s", c.Kind, c.example())
		}
		if err := c.parseMixed(&f, &l.mixedLine, size); err != nil {
			return err
		}
	case TabularClass:
		if l.W != nil || l.Table == nil {
			return fmt.Errorf("a function of a tabular class has a table and no w; for example %s", tableExample)
		}
		for key, losses := range l.Table {
			size.keys[key] = true
			if len(losses) != len(c.Actions) {
				return fmt.Errorf("table: a key has %d losses for %d actions; for example %s", len(losses), len(c.Actions), tableExample)
			}
		}
		size.row = max(1, len(size.keys)) * len(c.Actions)
	default:
		if l.Table != nil || l.W == nil {
			return fmt.Errorf("a function of a %s class has w and no table; for example %s", c.Kind, functionExample)
		}
		if len(l.W) != len(c.Actions) {
			return fmt.Errorf("w has %d rows for %d actions: one row an action", len(l.W), len(c.Actions))
		}
		for a, row := range l.W {
			if len(row) != len(c.Features)+1 {
				return fmt.Errorf("w[%d], action %q, has %d numbers: expected %d, one a feature and the intercept", a, c.Actions[a], len(row), len(c.Features)+1)
			}
		}
		size.row = len(c.Actions) * (len(c.Features) + 1)
	}
	if n := len(c.Functions) + 1; n*size.row > MaxClassNumbers {
		return fmt.Errorf("%d functions of %d numbers each are more than the %d that fit; use fewer", n, size.row, MaxClassNumbers)
	}
	c.Functions = append(c.Functions, f)
	return nil
}

func (c *ClassFile) example() string {
	switch c.Kind {
	case TabularClass:
		return tableExample
	case MixedClass:
		return mixedExample
	case SharedClass:
		return sharedExample
	}
	return functionExample
}

// decodeLine reads exactly one JSON object without unknown keys.
func decodeLine(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the line ends inside a JSON object")
		}
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
	dst = append(dst, `{"hindsight_class":1,"kind":`...)
	dst = appendJSON(dst, c.Kind)
	dst = append(dst, `,"features":`...)
	dst = appendStrings(dst, c.Features)
	if c.Kind == SharedClass {
		dst = appendStrings(append(dst, `,"action_features":`...), c.ActionFeatures)
	} else {
		dst = appendStrings(append(dst, `,"actions":`...), c.Actions)
	}
	dst = append(dst, "}\n"...)
	for _, f := range c.Functions {
		dst = append(dst, `{"prior":`...)
		dst = appendNumber(dst, f.Prior)
		switch c.Kind {
		case TabularClass:
			dst = appendTable(append(dst, `,"table":`...), f.Table)
		case MixedClass, SharedClass:
			dst = appendMixed(dst, &f.Mixed)
		default:
			dst = appendRows(append(dst, `,"w":`...), f.W)
		}
		dst = append(dst, "}\n"...)
	}
	return dst
}

func appendTable(dst []byte, table map[string][]float64) []byte {
	keys := make([]string, 0, len(table))
	for k := range table {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSON(dst, k), ':')
		dst = appendNumbers(dst, table[k])
	}
	return append(dst, '}')
}

func appendRows(dst []byte, rows [][]float64) []byte { return appendList(dst, rows, appendNumbers) }

func appendStrings(dst []byte, s []string) []byte { return appendList(dst, s, appendJSON) }

func appendNumbers(dst []byte, v []float64) []byte { return appendList(dst, v, appendNumber) }

// appendList appends a JSON list whose entries one appends.
func appendList[T any](dst []byte, list []T, one func(dst []byte, v T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(dst, v)
	}
	return append(dst, ']')
}

func appendNumber(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		panic("model: a class file cannot hold a number that is not finite")
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

func appendJSON(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("model: a string has no JSON: " + err.Error())
	}
	return append(dst, b...)
}

// Class returns the functions in the form that an oracle evaluates.
func (c *ClassFile) Class() (oracle.Class, error) {
	switch c.Kind {
	case TabularClass:
		tables := make([]map[string][]float64, len(c.Functions))
		for i, f := range c.Functions {
			tables[i] = f.Table
		}
		return oracle.NewTabularClass(c.Features, c.Actions, tables)
	case LogisticClass:
		return oracle.NewLogisticClass(c.Features, c.Actions, c.weights())
	case SharedClass:
		functions := make([]oracle.SharedFunction, len(c.Functions))
		for i, f := range c.Functions {
			functions[i] = oracle.SharedFunction(f.Mixed)
		}
		return oracle.NewSharedClass(c.Features, c.ActionFeatures, functions)
	case MixedClass:
		functions := make([]oracle.MixedFunction, len(c.Functions))
		for i, f := range c.Functions {
			functions[i] = f.Mixed
		}
		return oracle.NewMixedClass(c.Features, c.Actions, functions)
	}
	return oracle.NewLinearClass(c.Features, c.Actions, c.weights())
}

func (c *ClassFile) weights() [][][]float64 {
	w := make([][][]float64, len(c.Functions))
	for i, f := range c.Functions {
		w[i] = f.W
	}
	return w
}

// Priors returns the prior weight of each function, up to a factor.
func (c *ClassFile) Priors() []float64 {
	q := make([]float64, len(c.Functions))
	for i, f := range c.Functions {
		q[i] = f.Prior
	}
	return q
}
