package oracle

import (
	"errors"
	"fmt"
)

// unknownLoss is what every function of a class says of an action, or of a table
// key, that the class does not know.
const unknownLoss = 0.5

// LinearClass is a finite class of functions that are linear in named features:
// f_i(x, a) = clip(w_ia·x + b_ia, 0, 1).
//
// A feature of the class is read from the input's feature of that name: a number
// as it is, a bool as 0 or 1; a column named "country=DE" is 1 where the text
// feature country is DE. Absent, text under a plain name, and unknown read 0; an
// input given as a Vector is matched by position. Validate that rounds list
// [LinearClass.Actions] only: any other action is predicted 1/2. A class has
// scratch space and is not safe for concurrent use.
type LinearClass struct{ parametric }

// LogisticClass is a finite class of functions σ(w_ia·x + b_ia), σ the
// [Sigmoid]; in all else it is a [LinearClass].
type LogisticClass struct{ parametric }

var (
	_ Class = (*LinearClass)(nil)
	_ Mixer = (*LinearClass)(nil)
	_ Class = (*LogisticClass)(nil)
	_ Mixer = (*LogisticClass)(nil)
)

// NewLinearClass returns a class of |F| = len(w) functions; w[i][a] holds the
// len(features) coefficients of function i for actions[a], then the intercept.
func NewLinearClass(features, actions []string, w [][][]float64) (*LinearClass, error) {
	p, err := newParametric(features, actions, w)
	if err != nil {
		return nil, fmt.Errorf("linear class: %w", err)
	}
	return &LinearClass{p}, nil
}

// NewLogisticClass returns a class of |F| = len(w) functions; w is that of
// [NewLinearClass].
func NewLogisticClass(features, actions []string, w [][][]float64) (*LogisticClass, error) {
	p, err := newParametric(features, actions, w)
	if err != nil {
		return nil, fmt.Errorf("logistic class: %w", err)
	}
	return &LogisticClass{p}, nil
}

// Eval implements [Class].
func (c *LinearClass) Eval(dst []float64, x *Input, action int) {
	if c.affine(dst, x, action) {
		for i, v := range dst {
			dst[i] = clip01(v)
		}
	}
}

// Eval implements [Class].
func (c *LogisticClass) Eval(dst []float64, x *Input, action int) {
	if c.affine(dst, x, action) {
		for i, v := range dst {
			dst[i] = Sigmoid(v)
		}
	}
}

// Mix implements [Mixer].
func (c *LinearClass) Mix(dst, q []float64, x *Input) { c.mix(dst, q, x, clip01) }

// Mix implements [Mixer].
func (c *LogisticClass) Mix(dst, q []float64, x *Input) { c.mix(dst, q, x, Sigmoid) }

// parametric is what linear and logistic classes share.
type parametric struct {
	names
	size int
	w    []float64 // [action][function][feature…, intercept]
	z    []float64 // scratch: the input's columns
}

func newParametric(features, actions []string, w [][][]float64) (parametric, error) {
	n, err := newNames(features, actions)
	if err != nil {
		return parametric{}, err
	}
	if len(w) == 0 {
		return parametric{}, errors.New("no functions")
	}
	d := len(features)
	p := parametric{
		names: n, size: len(w), z: make([]float64, d),
		w: make([]float64, len(actions)*len(w)*(d+1)),
	}
	for i, rows := range w {
		if len(rows) != len(actions) {
			return parametric{}, fmt.Errorf("function %d has %d rows for %d actions", i, len(rows), len(actions))
		}
		for a, row := range rows {
			if len(row) != d+1 {
				return parametric{}, fmt.Errorf("function %d, action %q: %d numbers for %d features and an "+
					"intercept", i, actions[a], len(row), d)
			}
			for _, v := range row {
				if v-v != 0 {
					return parametric{}, fmt.Errorf("function %d, action %q: coefficient %v is not finite", i,
						actions[a], v)
				}
			}
			copy(p.w[(a*p.size+i)*(d+1):], row)
		}
	}
	return p, nil
}

// Size implements [Class].
func (p *parametric) Size() int { return p.size }

// affine sets dst[i] = w_ia·x + b_ia; false: the action is unknown, and dst holds
// the final values.
func (p *parametric) affine(dst []float64, x *Input, action int) bool {
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

func (p *parametric) mix(dst, q []float64, x *Input, link func(float64) float64) {
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
