package oracle

// maxOuter is the number of columns up to which the outer product of z is made
// once a round and shared by all actions; its 2080 numbers stay in the L1 cache.
const maxOuter = 64

// kernel is how predictions of one z are computed.
type kernel uint8

const (
	rowwise kernel = iota // row by row
	shared                // from the shared outer product
	sparse                // from the list of columns
)

// prepare derives from z what the actions of a round share.
func (o *Linear) prepare() kernel {
	by := o.prepareOne()
	z := o.point()
	if by == sparse || o.beta == 0 || len(z) > maxOuter {
		return by
	}
	n := packedLen(len(z))
	if len(o.outer) < n {
		o.outer = make([]float64, n+n/2)
	}
	packedOuter(o.outer[:n], z)
	return shared
}

// prepareOne is prepare for a z of one action only.
func (o *Linear) prepareOne() kernel {
	if o.randomised() {
		o.project()
		return rowwise
	}
	if o.sparse() {
		return sparse
	}
	return rowwise
}

// prepareAgain undoes prepareOne: z is the context's again.
func (o *Linear) prepareAgain(by kernel) {
	switch {
	case o.randomised():
		o.project()
	case by == sparse:
		o.sparse()
	}
}

// mean returns w·z.
func (o *Linear) mean(w []float64, by kernel) float64 {
	z := o.point()
	if by == sparse {
		return dotAt(w, z, o.listed(len(w)))
	}
	return dot(w, z)
}

// form returns u = zᵀPz ≥ 0.
func (o *Linear) form(r *ridge, by kernel) float64 {
	d, z := len(r.w), o.point()
	var u float64
	switch by {
	case sparse:
		u = packedFormAt(r.p, z, o.listed(d))
	case shared:
		u = dot(r.p, o.outer)
	default:
		u = packedForm(r.p, z[:d])
	}
	if d < len(z) {
		u += dot(z[d:], z[d:]) / o.lambda
	}
	if !(u > 0) {
		u = 0
	}
	return u
}

// predictTogether predicts all actions from the shared outer product, two at a time, and
// reports false if some have features of their own, and then has done nothing.
func (o *Linear) predictTogether(dst []float64, actions []Action) bool {
	for i := range actions {
		if len(actions[i].Features) > 0 {
			return false
		}
	}
	z, d := o.point(), packedLen(len(o.point()))
	var first *linearAction // its form is not computed yet
	at := 0
	for i := range actions {
		n := o.action(i, actions[i].Name)
		if n < 0 {
			dst[i] = o.stranger()
			continue
		}
		a := &o.actions[n]
		if len(a.w) < len(z) {
			dst[i] = o.predict(a, shared)
			continue
		}
		m := dot(a.w, z)
		dst[i] = m
		switch {
		case !(m > 0):
			dst[i] = clip01(m)
		case first == nil:
			first, at = a, i
		default:
			u, v := dot2(first.p, a.p, o.outer[:d])
			dst[at], dst[i] = o.shrunk(dst[at], u), o.shrunk(m, v)
			first = nil
		}
	}
	if first != nil {
		dst[at] = o.shrunk(dst[at], o.form(&first.ridge, shared))
	}
	return true
}

// shrunk returns f̂ for w·z = m > 0 and zᵀPz = u, which rounding may have made negative.
func (o *Linear) shrunk(m, u float64) float64 {
	if !(u > 0) {
		u = 0
	}
	return clip01(m / (1 + float64(o.beta*u)))
}

// listed returns those of the listed columns of z that are below d.
func (o *Linear) listed(d int) []int32 {
	at := o.at
	for len(at) > 0 && int(at[len(at)-1]) >= d {
		at = at[:len(at)-1]
	}
	return at
}
