package learner

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Formula turns the named outcomes of a round into a number, its reward or a cost: an expression of names, numbers,
// constants by action, + − * /, min, max and clip. Its operations have a fixed order and are rounded one by one, so
// that the bits are the same everywhere, and its range is known beforehand. It does not change once it is made.
type Formula struct {
	root   *term
	rows   map[string]int // of the action: of its constants; nil: no constant in it differs by action
	lo, hi float64
	uses   []bool
	value  []linear // by row; nil: it is not linear
	loss   []linear
}

// Scope is what a formula may name.
type Scope struct {
	Outcomes  []Variable // in the order of the values that a formula is computed from
	Constants []Constant
	Actions   []string
}

// Variable is an outcome with the range that its values keep.
type Variable struct {
	Name   string
	Lo, Hi float64
}

// Constant is a named number, or one number for each action of the scope.
type Constant struct {
	Name   string
	Values []float64
}

// FormulaError is what is wrong in a formula.
type FormulaError struct {
	Column int    // from 1
	Name   string // which nothing has; "": another error
	Msg    string // what is wrong and what to do
}

func (e *FormulaError) Error() string { return fmt.Sprintf("at its character %d: %s", e.Column, e.Msg) }

func wrong(column int, format string, args ...any) *FormulaError {
	return &FormulaError{Column: column, Msg: fmt.Sprintf(format, args...)}
}

// term is a node of the tree. Its arguments are evaluated from the left.
type term struct {
	op     byte // literal, outcome, or one of + - * / and negated, least, largest
	args   []*term
	k      int       // of an outcome
	values []float64 // of a literal: one, or one a row
	name   string    // of an outcome or a constant; "clip" of the least that a clip ends with
	column int
	varies bool // an outcome is in it
}

const (
	literal = '#'
	outcome = 'y'
	negated = '~'
	least   = '<'
	largest = '>'
)

// linear is c + Σ w[k]·ŷ[k], where ŷ are outcomes in [0,1] of their ranges.
type linear struct {
	c float64
	w []float64 // nil: all 0
}

// NewFormula reads a formula. An error is a [*FormulaError].
func NewFormula(text string, s *Scope) (*Formula, error) {
	root, err := parseFormula(text, s)
	if err != nil {
		return nil, err
	}
	f := &Formula{root: root, lo: math.Inf(1), hi: math.Inf(-1), uses: make([]bool, len(s.Outcomes))}
	rows := max(1, root.mark(f.uses))
	if rows > 1 {
		f.rows = make(map[string]int, rows)
		for i, a := range s.Actions {
			f.rows[a] = i
		}
	}
	if !root.varies {
		return nil, wrong(1, "it names no outcome, so that nothing can be learned from it; name one of %s", s.names())
	}
	for row := range rows {
		lo, hi, err := root.span(row, s)
		if err != nil {
			return nil, err
		}
		f.lo, f.hi = min(f.lo, lo), max(f.hi, hi)
	}
	if width := f.hi - f.lo; !(width > 0 && width <= math.MaxFloat64) {
		return nil, wrong(1, "its values lie in [%v, %v]: it must be able to vary, within finite bounds", f.lo+
			0, f.hi+0)
	}
	f.linearize(rows, s)
	return f, nil
}

// linearize fills in the linear forms, if there are any.
func (f *Formula) linearize(rows int, s *Scope) {
	for row := range rows {
		v, ok := f.root.linear(row, s)
		if !ok {
			return
		}
		l := linear{c: (f.hi - v.c) / (f.hi - f.lo), w: make([]float64, len(v.w))}
		for k, w := range v.w {
			l.w[k] = -w / (f.hi - f.lo)
		}
		f.value, f.loss = append(f.value, v), append(f.loss, l)
	}
}

// Loss returns (hi − r)/(hi − lo) in [0,1] for the reward r of an action, where y are the values of all outcomes of
// the model on their own scales, in the order of their names, and [lo, hi] is the range of the formula.
func (f *Formula) Loss(action string, y []float64) float64 {
	return min(max((f.hi-f.Value(action, y))/(f.hi-f.lo), 0), 1)
}

// Value returns what the formula comes to, on its own scale. An action that the scope does not have counts as its
// first.
func (f *Formula) Value(action string, y []float64) float64 { return f.root.eval(f.rows[action], y) }

// Range returns the bounds that no value leaves, whatever the action.
func (f *Formula) Range() (lo, hi float64) { return f.lo, f.hi }

// Uses reports whether the formula needs the k-th outcome.
func (f *Formula) Uses(k int) bool { return f.uses[k] }

// Linear reports whether the formula is linear in outcomes; then Terms and LossTerms have it.
func (f *Formula) Linear() bool { return f.value != nil }

// Terms returns c and w for an action, where Value is c + Σ w[k]·ŷ[k], ŷ being the outcomes as parts in [0,1] of
// their ranges. The slice is not to be changed.
func (f *Formula) Terms(action string) (c float64, w []float64) {
	l := &f.value[f.rows[action]]
	return l.c, l.w
}

// LossTerms is Terms of the Loss before it is clipped.
func (f *Formula) LossTerms(action string) (c float64, w []float64) {
	l := &f.loss[f.rows[action]]
	return l.c, l.w
}

// apply is one operation, rounded: the conversion keeps the product from being fused with a sum.
func apply(op byte, a, b float64) float64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return float64(a * b)
	case '/':
		return a / b
	case least:
		return min(a, b)
	}
	return max(a, b)
}

func (t *term) eval(row int, y []float64) float64 {
	switch t.op {
	case literal:
		return t.at(row)
	case outcome:
		return y[t.k]
	case negated:
		return -t.args[0].eval(row, y)
	}
	return apply(t.op, t.args[0].eval(row, y), t.args[1].eval(row, y))
}

func (t *term) at(row int) float64 { return t.values[min(row, len(t.values)-1)] }

// mark notes which outcomes the tree has and returns the most numbers of a constant.
func (t *term) mark(uses []bool) int {
	n := len(t.values)
	if t.varies = t.op == outcome; t.varies {
		uses[t.k] = true
	}
	for _, a := range t.args {
		n = max(n, a.mark(uses))
		t.varies = t.varies || a.varies
	}
	return n
}

// span returns the range of the tree. Every operation is monotone in each argument, and so is rounding: its extremes
// are at the ends of the arguments' ranges, to the bit.
func (t *term) span(row int, s *Scope) (lo, hi float64, err error) {
	switch t.op {
	case literal:
		return t.at(row), t.at(row), nil
	case outcome:
		return s.Outcomes[t.k].Lo, s.Outcomes[t.k].Hi, nil
	}
	var at [2][2]float64
	for i, a := range t.args {
		if at[i][0], at[i][1], err = a.span(row, s); err != nil {
			return 0, 0, err
		}
	}
	if t.op == negated {
		return -at[0][1], -at[0][0], nil
	}
	if d := at[1]; t.op == '/' && d[0] <= 0 && d[1] >= 0 {
		return 0, 0, wrong(t.args[1].column, "it divides by what may be 0: that lies in [%v, %v]; keep it away from "+
			"0, for example: max(%s, 1)", d[0]+0, d[1]+0, t.args[1])
	}
	if low := t.args[0]; t.name == "clip" {
		if _, from, _ := low.args[1].span(row, s); from > at[1][0] {
			return 0, 0, wrong(t.column, "clip(x, from, to) has from = %v above to = %v; exchange them", from, at[1][0])
		}
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, a := range at[0] {
		for _, b := range at[1] {
			v := apply(t.op, a, b)
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return 0, 0, wrong(t.column, "its value may be larger than any number; use smaller factors, or "+
					"smaller ranges")
			}
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi, nil
}

// linear returns the tree as a sum of outcomes in [0,1] of their ranges; it is not ok if it is none.
func (t *term) linear(row int, s *Scope) (l linear, ok bool) {
	if !t.varies {
		return linear{c: t.eval(row, nil)}, true
	}
	l.w = make([]float64, len(s.Outcomes))
	if t.op == outcome {
		v := s.Outcomes[t.k]
		l.c, l.w[t.k] = v.Lo, v.Hi-v.Lo
		return l, true
	}
	a, ok := t.args[0].linear(row, s)
	b := linear{c: -1}
	op := byte('*')
	if ok && t.op != negated {
		op = t.op
		b, ok = t.args[1].linear(row, s)
	}
	if op == '*' && a.w == nil {
		a, b = b, a
	}
	sum := op == '+' || op == '-'
	if !ok || !sum && (b.w != nil || op != '*' && op != '/') {
		return linear{}, false
	}
	l.c = apply(op, a.c, b.c)
	for k := range l.w {
		x, y := 0.0, b.c
		if a.w != nil {
			x = a.w[k]
		}
		if sum {
			y = 0
			if b.w != nil {
				y = b.w[k]
			}
		}
		l.w[k] = apply(op, x, y)
	}
	return l, true
}

// String returns the formula in the one form that reads back as the same tree.
func (f *Formula) String() string { return f.root.String() }

func (t *term) String() string { return string(t.append(nil, 0)) }

// append writes a tree, in parentheses if it binds less than its place needs.
func (t *term) append(b []byte, needs int) []byte {
	binds := map[byte]int{'+': 1, '-': 1, '*': 2, '/': 2, negated: 3}[t.op]
	switch {
	case t.name == "clip":
		return call(b, "clip", t.args[0].args[0], t.args[0].args[1], t.args[1])
	case t.op == least:
		return call(b, "min", t.args...)
	case t.op == largest:
		return call(b, "max", t.args...)
	case t.name != "":
		return append(b, t.name...)
	case t.op == literal:
		return strconv.AppendFloat(b, t.values[0], 'g', -1, 64)
	case binds < needs:
		return append(t.append(append(b, '('), 0), ')')
	case t.op == negated:
		return t.args[0].append(append(b, '-'), binds)
	}
	b = t.args[0].append(b, binds)
	if binds == 1 {
		b = append(b, ' ', t.op, ' ')
	} else {
		b = append(b, t.op)
	}
	return t.args[1].append(b, binds+1)
}

func call(b []byte, name string, args ...*term) []byte {
	b = append(append(b, name...), '(')
	for i, a := range args {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = a.append(b, 0)
	}
	return append(b, ')')
}

// names lists what a formula may name.
func (s *Scope) names() string {
	var names []string
	for _, o := range s.Outcomes {
		names = append(names, o.Name)
	}
	for _, c := range s.Constants {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
