package oracle

// Picker is a [Class] that evaluates some of its functions without the others: what
// the data have refuted need not be paid for.
type Picker interface {
	// EvalSome sets dst[j] = f_i(x, x.Actions[action]) for i = which[j], to the same
	// bits as Eval. which ascends; len(dst) = len(which).
	EvalSome(dst []float64, which []int32, x *Input, action int)
}

var (
	_ Picker = (*LinearClass)(nil)
	_ Picker = (*LogisticClass)(nil)
	_ Picker = (*TabularClass)(nil)
)

// EvalSome implements [Picker].
func (c *LinearClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	c.some(dst, which, x, action, clip01)
}

// EvalSome implements [Picker].
func (c *LogisticClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	c.some(dst, which, x, action, Sigmoid)
}

func (p *parametric) some(dst []float64, which []int32, x *Input, action int, link func(float64) float64) {
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

// EvalSome implements [Picker].
func (c *TabularClass) EvalSome(dst []float64, which []int32, x *Input, action int) {
	dst = dst[:len(which)]
	losses := c.losses(c.find(x), action, x.Actions[action].Name)
	for j, i := range which {
		if losses == nil {
			dst[j] = unknownLoss
		} else {
			dst[j] = losses[i]
		}
	}
}

// Values returns the |F| values f_i(x, x.Actions[action]), to read, until the next
// call of h.
func (h *Hedge) Values(x *Input, action int) []float64 {
	h.class.Eval(h.f, x, action)
	return h.f
}

// Mean returns the prediction Σ q_i f_i of the values of all functions, to the same
// bits as Predict.
func (h *Hedge) Mean(f []float64) float64 {
	s := 0.0
	f = f[:len(h.q)]
	for i, w := range h.q {
		if w != 0 {
			s += float64(w * f[i])
		}
	}
	return clip01(s)
}

// UpdateValues is Update with the values of all functions at the example, which
// another use of them has computed.
func (h *Hedge) UpdateValues(f []float64, loss float64) {
	hedgeStep(h.logWeight, h.loss, f[:len(h.logWeight)], h.eta, loss)
	h.fed++
	h.normalise()
}
