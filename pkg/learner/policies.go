package learner

import "hindsight/pkg/oracle"

// Policies is a finite class Π of policies π: context → action.
type Policies interface {
	// Size returns N = |Π| ≥ 1.
	Size() int
	// Advise sets dst[i] to the index in x.Actions of the action that π_i plays;
	// len(dst) = Size(). It is a function of x alone; it may use scratch space.
	Advise(dst []int32, x *oracle.Input)
}

// Argmin is the class of the policies that play the best action by each function of
// a class: π_i(x) = argmin_a f_i(x, a), the first of equal ones.
type Argmin struct {
	class   oracle.Class
	f, best []float64 // scratch: one value a function
}

// NewArgmin returns the class of policies that go by the functions of class, in their order.
func NewArgmin(class oracle.Class) *Argmin {
	n := class.Size()
	return &Argmin{class: class, f: make([]float64, n), best: make([]float64, n)}
}

// Size implements [Policies].
func (m *Argmin) Size() int { return len(m.f) }

// Actions returns the names of the only actions that a round may list, nil if the class takes any.
func (m *Argmin) Actions() []string {
	if c, ok := m.class.(interface{ Actions() []string }); ok {
		return c.Actions()
	}
	return nil
}

// Advise implements [Policies].
func (m *Argmin) Advise(dst []int32, x *oracle.Input) {
	dst = dst[:len(m.best)]
	clear(dst)
	m.class.Eval(m.best, x, 0)
	for a := 1; a < len(x.Actions); a++ {
		m.class.Eval(m.f, x, a)
		for i, v := range m.f {
			if v < m.best[i] {
				m.best[i], dst[i] = v, int32(a)
			}
		}
	}
}
