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

// NewLogisticClass returns a class of |F| = len(w) logistic functions; w is that of
// [NewLinearClass].
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
			return fmt.Errorf("row %d: %w", i, err)
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

// affine sets dst[i] = w_ia·x + b_ia; false: the action is unknown, and dst holds
// the final values.
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
