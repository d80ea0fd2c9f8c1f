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
	o.outer = resize(o.outer, packedLen(len(z)))
	packedOuter(o.outer, z)
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

// four are actions whose predictions are computed together: their regressions have all columns of z.
type four struct {
	n  int      // of them; the others are the first once more
	at [4]int   // their positions
	of [4]int32 // their indices
}

// together is what predicts an action by itself, and four at once.
type together interface {
	whole(n int32) bool // the regressions of the action have all columns
	predict(n int32, by kernel) float64
	predictFour(dst []float64, f *four)
}

// predictTogether predicts all actions from the shared outer product, four at a time, and
// reports false if some have features of their own, and then has done nothing.
func (o *Linear) predictTogether(dst []float64, actions []Action, by together) bool {
	for i := range actions {
		if len(actions[i].Features) > 0 {
			return false
		}
	}
	f := &o.four
	f.n = 0
	for i := range actions {
		n := o.action(i, actions[i].Name)
		if n < 0 {
			dst[i] = o.stranger(actions[i].Name)
			continue
		}
		if !by.whole(n) {
			dst[i] = by.predict(n, shared)
			continue
		}
		f.at[f.n], f.of[f.n] = i, n
		if f.n++; f.n == len(f.at) {
			by.predictFour(dst, f)
			f.n = 0
		}
	}
	if f.n > 0 {
		for i := f.n; i < len(f.at); i++ {
			f.of[i] = f.of[0]
		}
		by.predictFour(dst, f)
	}
	return true
}

func (o *Linear) whole(n int32) bool { return len(o.actions[n].w) == len(o.point()) }

// meansAndForms sets w·z and zᵀPz of four actions.
func (o *Linear) meansAndForms(m, u *[4]float64, f *four) {
	var w, p [4][]float64
	for i, n := range f.of {
		a := &o.actions[n]
		w[i], p[i] = a.w, a.p
	}
	z := o.point()
	dot4(m, &w, z)
	dot4(u, &p, o.outer[:packedLen(len(z))])
}

// predictFour sets dst at the places of four actions.
func (o *Linear) predictFour(dst []float64, f *four) {
	var m, u [4]float64
	o.meansAndForms(&m, &u, f)
	for i, at := range f.at[:f.n] {
		if m[i] > 0 {
			dst[at] = o.shrunk(m[i], u[i])
		} else {
			dst[at] = clip01(m[i])
		}
	}
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
