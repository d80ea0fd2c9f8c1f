package oracle

import (
	"errors"
	"fmt"
	"slices"
)

// SharedClass is a finite class of functions of a context and of the features of one action:
// it says something of actions that it never saw, as [Shared] does among the regressions.
//
// Over the d columns x of the context and the e columns b of an action, with x̃ = (x, 1) and b̃ = (b, 1), a linear
// or logistic [MixedFunction] is W of [e+1][d+1]: b̃ᵀ·W·x̃, a row a column of the action, then that of the 1. Trees are
// over x, then b, with one loss a leaf.
//
// Columns are read as those of a [MixedClass]: of the context from the input's features, or from its Vector by
// position, of the action from the action's own. The column "=NAME" of an action is 1 for the action of that name: no
// feature has an empty name. A class has scratch space and is not safe for concurrent use.
type SharedClass struct {
	context, action featureNames
	functions       []sharedFunction
	z               []float64 // scratch: the columns of the context, then those of the action
}

// sharedFunction is a function as it is evaluated.
type sharedFunction struct {
	mixedFunction
	used []int32 // of the action's columns those whose row is not 0
}

var (
	_ Class  = (*SharedClass)(nil)
	_ Mixer  = (*SharedClass)(nil)
	_ Picker = (*SharedClass)(nil)
)

// NewSharedClass returns a class of |F| = len(functions) functions, which it retains.
func NewSharedClass(features, actionFeatures []string, functions []MixedFunction) (*SharedClass, error) {
	c := &SharedClass{z: make([]float64, len(features)+len(actionFeatures))}
	var err error
	if c.context, err = newFeatureNames(features); err != nil {
		return nil, fmt.Errorf("shared class: %w", err)
	}
	if c.action, err = newFeatureNames(actionFeatures); err != nil {
		return nil, fmt.Errorf("shared class: action %w", err)
	}
	if len(functions) == 0 {
		return nil, errors.New("shared class: no functions")
	}
	for i := range functions {
		if err := c.add(&functions[i]); err != nil {
			return nil, fmt.Errorf("shared class: function %d: %w", i, err)
		}
	}
	return c, nil
}

func (c *SharedClass) add(f *MixedFunction) error {
	d, e := len(c.context.Features()), len(c.action.Features())
	read, err := f.read(e+1, "where %d are expected: one a column of the action, and one more", d, d+e, 1)
	if err != nil {
		return err
	}
	m := sharedFunction{mixedFunction: read}
	for j, row := range m.rows[:max(0, len(m.rows)-1)] {
		if slices.ContainsFunc(row, func(v float64) bool { return v != 0 }) {
			m.used = append(m.used, int32(j))
		}
	}
	c.functions = append(c.functions, m)
	return nil
}

// Features returns the columns of the context; the caller must not change them.
func (c *SharedClass) Features() []string { return c.context.Features() }

// Size implements [Class].
func (c *SharedClass) Size() int { return len(c.functions) }

// Eval implements [Class].
func (c *SharedClass) Eval(dst []float64, x *Input, action int) {
	c.readContext(x)
	c.readAction(&x.Actions[action])
	for i := range dst[:len(c.functions)] {
		dst[i] = c.functions[i].at(c.z, len(c.context.Features()))
	}
}

// EvalSome implements [Picker].
func (c *SharedClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	c.readContext(x)
	c.readAction(&x.Actions[action])
	for j, i := range which {
		dst[j] = c.functions[i].at(c.z, len(c.context.Features()))
	}
}

// Mix implements [Mixer].
func (c *SharedClass) Mix(dst, q []float64, x *Input) {
	c.readContext(x)
	for a := range x.Actions {
		c.readAction(&x.Actions[a])
		s := 0.0
		for i, weight := range q[:len(c.functions)] {
			if weight != 0 {
				s += float64(weight * c.functions[i].at(c.z, len(c.context.Features())))
			}
		}
		dst[a] = s
	}
}

func (c *SharedClass) readContext(x *Input) {
	z := c.z[:len(c.context.Features())]
	c.context.read(z, x.Features)
	copy(z, x.Vector)
}

func (c *SharedClass) readAction(a *Action) {
	z := c.z[len(c.context.Features()):]
	c.action.read(z, a.Features)
	if i, ok := c.action.category[[2]string{"", a.Name}]; ok {
		z[i] = 1
	}
}

// at returns the function's loss; z holds d columns of the context, then those of the action.
func (f *sharedFunction) at(z []float64, d int) float64 {
	if f.rows == nil {
		s := 0.0
		for i := range f.trees {
			s += f.trees[i].leaf(z)[0]
		}
		return clip01(s / float64(len(f.trees)))
	}
	x, b := z[:d], z[d:]
	row := f.rows[len(b)]
	s := dot(x, row) + row[d]
	for _, j := range f.used {
		if v := b[j]; v != 0 {
			row := f.rows[j]
			s += float64(v * (dot(x, row) + row[d]))
		}
	}
	return f.link(s)
}
