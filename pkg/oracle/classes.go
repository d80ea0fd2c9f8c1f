package oracle

import (
	"errors"
	"fmt"
)

// unknownLoss is what every function of a class says of an action, or of a table key, that the class does not know.
const unknownLoss = 0.5

// LinearClass is a finite class of functions that are linear in named features: f_i(x, a) = clip(w_ia·x + b_ia, 0, 1).
//
// A feature of the class is read from the input's feature of that name: a number as it is, a bool as 0 or 1; a column
// named "country=DE" is 1 where the text feature country is DE. Absent, text under a plain name, and unknown read 0; an
// input given as a Vector is matched by position. Validate that rounds list [LinearClass.Actions] only: any other
// action is predicted 1/2. A class has scratch space and is not safe for concurrent use.
//
// A logistic class has the [Sigmoid] σ(w_ia·x + b_ia) in place of the clip.
type LinearClass struct {
	names
	logistic bool
	size     int
	w        []float64 // [action][function][feature…, intercept]
	z        []float64 // scratch: the input's columns
}

var (
	_ Class  = (*LinearClass)(nil)
	_ Mixer  = (*LinearClass)(nil)
	_ Picker = (*LinearClass)(nil)
)

// NewLinearClass returns a class of |F| = len(w) functions; w[i][a] holds the
// len(features) coefficients of function i for actions[a], then the intercept.
func NewLinearClass(features, actions []string, w [][][]float64) (*LinearClass, error) {
	return newLinearClass("linear class: %w", false, features, actions, w)
}

// NewLogisticClass returns a class of |F| = len(w) logistic functions; w is that of [NewLinearClass].
func NewLogisticClass(features, actions []string, w [][][]float64) (*LinearClass, error) {
	return newLinearClass("logistic class: %w", true, features, actions, w)
}

func newLinearClass(in string, logistic bool, features, actions []string, w [][][]float64) (*LinearClass, error) {
	n, err := newNames(features, actions)
	if err == nil && len(w) == 0 {
		err = errors.New("no functions")
	}
	if err != nil {
		return nil, fmt.Errorf(in, err)
	}
	d := len(features)
	p := &LinearClass{names: n, logistic: logistic, size: len(w), z: make([]float64, d),
		w: make([]float64, len(actions)*len(w)*(d+1))}
	for i, rows := range w {
		if err := checkRows(rows, len(actions), "for %d actions", d); err != nil {
			return nil, fmt.Errorf(in, fmt.Errorf("function %d: %w", i, err))
		}
		for a, row := range rows {
			copy(p.w[(a*p.size+i)*(d+1):], row)
		}
	}
	return p, nil
}

// checkRows reports what is wrong with the rows of a function, each of d numbers and an intercept.
func checkRows(rows [][]float64, n int, expected string, d int) error {
	if len(rows) != n {
		return fmt.Errorf("%d rows "+expected, len(rows), n)
	}
	for i, row := range rows {
		if err := finite(row, d+1); err != nil {
			return fmt.Errorf("row %d, of a number a feature and the intercept: %w", i, err)
		}
	}
	return nil
}

// Size implements [Class].
func (p *LinearClass) Size() int { return p.size }

// Eval implements [Class].
func (p *LinearClass) Eval(dst []float64, x *Input, action int) {
	switch known := p.affine(dst, x, action); {
	case !known:
	case p.logistic:
		for i, v := range dst {
			dst[i] = Sigmoid(v)
		}
	default:
		for i, v := range dst {
			dst[i] = clip01(v)
		}
	}
}

// link returns what is made of w·x + b.
func (p *LinearClass) link() func(float64) float64 {
	if p.logistic {
		return Sigmoid
	}
	return clip01
}

// affine sets dst[i] = w_ia·x + b_ia; false: the action is unknown, and dst holds the final values.
func (p *LinearClass) affine(dst []float64, x *Input, action int) bool {
	a := p.action(action, x.Actions[action].Name)
	dst = dst[:p.size]
	if a < 0 {
		for i := range dst {
			dst[i] = unknownLoss
		}
		return false
	}
	p.columns(p.z, x)
	d := len(p.z)
	w := p.w[a*p.size*(d+1) : (a+1)*p.size*(d+1)]
	for i := range dst {
		row := w[:d+1]
		w = w[d+1:]
		dst[i] = dot(p.z, row) + row[d]
	}
	return true
}

// Mix implements [Mixer].
func (p *LinearClass) Mix(dst, q []float64, x *Input) {
	link := p.link()
	p.columns(p.z, x)
	d := len(p.z)
	q = q[:p.size]
	for k := range x.Actions {
		a := p.action(k, x.Actions[k].Name)
		s := 0.0
		if a < 0 {
			for _, v := range q {
				s += float64(v * unknownLoss)
			}
			dst[k] = s
			continue
		}
		w := p.w[a*p.size*(d+1) : (a+1)*p.size*(d+1)]
		for i, v := range q {
			if v == 0 {
				continue
			}
			row := w[i*(d+1) : (i+1)*(d+1)]
			s += float64(v * link(dot(p.z, row)+row[d]))
		}
		dst[k] = s
	}
}

// EvalSome implements [Picker].
func (p *LinearClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	link := p.link()
	dst = dst[:len(which)]
	a := p.action(action, x.Actions[action].Name)
	if a < 0 {
		for j := range dst {
			dst[j] = unknownLoss
		}
		return
	}
	p.columns(p.z, x)
	d := len(p.z)
	w := p.w[a*p.size*(d+1) : (a+1)*p.size*(d+1)]
	for j, i := range which {
		row := w[int(i)*(d+1) : (int(i)+1)*(d+1)]
		dst[j] = link(dot(p.z, row) + row[d])
	}
}

// MixedFunction is one function of a [MixedClass] or a [SharedClass]: exactly one of its fields is given.
type MixedFunction struct {
	Linear   [][]float64 // [K][d+1]: a row an action: of numbers a column, then the intercept; clipped to [0,1]
	Logistic [][]float64 // [K][d+1]: the same under σ
	Trees    []Tree      // their mean, clipped to [0,1]
}

// Tree is a decision tree over the columns of a class: from split 0 on, or where there is
// no split from leaf 0 on, a column of at most At goes to Low, any other to High.
type Tree struct {
	Splits []Split
	Leaves [][]float64 // [][K]: a loss an action
}

// Split is an inner node of a [Tree]. Low and High are later splits, or leaves: leaf i is −1−i.
type Split struct {
	Column    int
	At        float64
	Low, High int
}

// MixedClass is a finite class of linear, logistic and tree functions. Columns, unknown
// actions and scratch space are those of a [LinearClass].
type MixedClass struct {
	names
	functions []mixedFunction
	z         []float64 // scratch: the input's columns
	leaves    [][]float64
}

// mixedFunction is a function as it is evaluated.
type mixedFunction struct {
	rows  [][]float64 // of linear and logistic; nil: trees
	link  func(float64) float64
	trees []Tree
}

var (
	_ Class = (*MixedClass)(nil)
	_ Mixer = (*MixedClass)(nil)

	_ Picker = (*MixedClass)(nil)
)

// NewMixedClass returns a class of |F| = len(functions) functions, which it retains.
func NewMixedClass(features, actions []string, functions []MixedFunction) (*MixedClass, error) {
	n, err := newNames(features, actions)
	if err != nil {
		return nil, fmt.Errorf("mixed class: %w", err)
	}
	if len(functions) == 0 {
		return nil, errors.New("mixed class: no functions")
	}
	c := &MixedClass{names: n, z: make([]float64, len(features))}
	for i := range functions {
		if err := c.add(&functions[i]); err != nil {
			return nil, fmt.Errorf("mixed class: function %d: %w", i, err)
		}
	}
	return c, nil
}

func (c *MixedClass) add(f *MixedFunction) error {
	k, d := len(c.Actions()), len(c.Features())
	m, err := f.read(k, "for %d actions", d, d, k)
	if err != nil {
		return err
	}
	c.leaves = append(c.leaves, make([][]float64, max(0, len(m.trees)-len(c.leaves)))...)
	c.functions = append(c.functions, m)
	return nil
}

// read returns a function as it is evaluated, with rows of d columns and an intercept each, or trees over a number
// of columns with a number of outputs. It reports what is wrong.
func (f *MixedFunction) read(rows int, expected string, d, columns, outputs int) (m mixedFunction, err error) {
	switch linear, logistic := f.Linear != nil, f.Logistic != nil; {
	case linear && !logistic && f.Trees == nil:
		m.rows, m.link = f.Linear, clip01
	case logistic && !linear && f.Trees == nil:
		m.rows, m.link = f.Logistic, Sigmoid
	case len(f.Trees) > 0 && !linear && !logistic:
		m.trees = f.Trees
		for i := range m.trees {
			if err := m.trees[i].check(columns, outputs); err != nil {
				return m, fmt.Errorf("tree %d: %w", i, err)
			}
		}
		return m, nil
	default:
		return m, errors.New("expected exactly one of linear, logistic and trees")
	}
	return m, checkRows(m.rows, rows, expected, d)
}

func finite(row []float64, n int) error {
	if len(row) != n {
		return fmt.Errorf("%d numbers where %d are expected", len(row), n)
	}
	for _, v := range row {
		if v-v != 0 {
			return fmt.Errorf("%v is not finite", v)
		}
	}
	return nil
}

// check reports what is wrong with a tree over d columns for k actions. Children come
// after their parents, so that a walk ends.
func (t *Tree) check(d, k int) error {
	if len(t.Leaves) == 0 {
		return errors.New("no leaves")
	}
	for i := range t.Splits {
		s := &t.Splits[i]
		if s.Column < 0 || s.Column >= d || s.At-s.At != 0 {
			return fmt.Errorf("split %d: column %d at %v: there are %d columns", i, s.Column, s.At, d)
		}
		for _, to := range [2]int{s.Low, s.High} {
			if to >= 0 && (to <= i || to >= len(t.Splits)) || to < 0 && -1-to >= len(t.Leaves) {
				return fmt.Errorf("split %d goes to %d, which is no later split and no leaf", i, to)
			}
		}
	}
	for i, leaf := range t.Leaves {
		if err := finite(leaf, k); err != nil {
			return fmt.Errorf("leaf %d: %w", i, err)
		}
	}
	return nil
}

// leaf returns the losses where z ends.
func (t *Tree) leaf(z []float64) []float64 {
	at := -1
	if len(t.Splits) > 0 {
		at = 0
	}
	for at >= 0 {
		s := &t.Splits[at]
		if at = s.High; z[s.Column] <= s.At {
			at = s.Low
		}
	}
	return t.Leaves[-1-at]
}

// Size implements [Class].
func (c *MixedClass) Size() int { return len(c.functions) }

// Eval implements [Class].
func (c *MixedClass) Eval(dst []float64, x *Input, action int) {
	c.eval(dst[:len(c.functions)], x, action, func(j int) int { return j })
}

// EvalSome implements [Picker].
func (c *MixedClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	c.eval(dst[:len(which)], x, action, func(j int) int { return int(which[j]) })
}

// eval sets dst[j] to the value of function which(j).
func (c *MixedClass) eval(dst []float64, x *Input, action int, which func(j int) int) {
	a := c.action(action, x.Actions[action].Name)
	if a < 0 {
		for j := range dst {
			dst[j] = unknownLoss
		}
		return
	}
	c.columns(c.z, x)
	for j := range dst {
		f := &c.functions[which(j)]
		dst[j] = f.at(c.z, a, f.walk(c.leaves, c.z))
	}
}

// walk returns the leaf of each tree, in scratch.
func (f *mixedFunction) walk(scratch [][]float64, z []float64) [][]float64 {
	for i := range f.trees {
		scratch[i] = f.trees[i].leaf(z)
	}
	return scratch[:len(f.trees)]
}

// at returns the function's loss of an action that the class knows.
func (f *mixedFunction) at(z []float64, a int, leaves [][]float64) float64 {
	if f.rows != nil {
		row := f.rows[a]
		return f.link(dot(z, row) + row[len(z)])
	}
	s := 0.0
	for _, leaf := range leaves {
		s += leaf[a]
	}
	return clip01(s / float64(len(leaves)))
}

// Mix implements [Mixer].
func (c *MixedClass) Mix(dst, q []float64, x *Input) {
	c.columns(c.z, x)
	clear(dst[:len(x.Actions)])
	for i := range c.functions {
		if q[i] == 0 {
			continue
		}
		f := &c.functions[i]
		leaves := f.walk(c.leaves, c.z)
		for k := range x.Actions {
			v := unknownLoss
			if a := c.action(k, x.Actions[k].Name); a >= 0 {
				v = f.at(c.z, a, leaves)
			}
			dst[k] += float64(q[i] * v)
		}
	}
}
