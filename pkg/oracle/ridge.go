package oracle

import "math"

// ridge is one recursive least-squares regression of growing dimension: weights w, and P = (λI + Σ zzᵀ)⁻¹ packed. It
// has only the columns that were known when it was last learned: the rest of w is 0 and the rest of P is I/λ.
type ridge struct {
	w []float64
	p []float64 // packed, len(w) rows

	begin    float64 // w of the constant before anything is learned
	constant int     // its column
}

// grow gives r columns up to d.
func (r *ridge) grow(d int, lambda float64) {
	for i := len(r.w); i < d; i++ {
		w := 0.0
		if i == r.constant {
			w = r.begin
		}
		r.w = append(r.w, w)
		for range i {
			r.p = append(r.p, 0)
		}
		r.p = append(r.p, 1/lambda)
	}
}

// reset sets w = 0, P = I/λ.
func (r *ridge) reset(lambda float64) {
	clear(r.w)
	clear(r.p)
	if r.constant < len(r.w) {
		r.w[r.constant] = r.begin
	}
	for i := range r.w {
		r.p[packedLen(i)+i] = 1 / lambda
	}
}

// fading is a ridge whose past counts ρ ≤ 1 times as much with every example:
//
//	P ← DPD, D_i = min(ρ^-½, (λP_ii)^-½);  k = Pz, u = z·k, e = y − w·z;
//	w += k·e/(1+u), P −= k·kᵀ/(1+u)
//
// D_i = ρ^-½ is forgetting; the other keeps P_ii from growing beyond 1/λ, where it
// began, in directions that nothing comes in from any more ("wind-up").
//
// P is held as S(p − a·kkᵀ)S with a diagonal S: forgetting multiplies S only, and the last rank-one step is taken in
// the pass in which the next example multiplies P. So an update passes over p once. The prediction needs w alone.
type fading struct {
	ridge           // p: see above
	s     []float64 // the diagonal of S
	a     float64
	k     []float64
	high  float64 // scratch: no P_ii is above; 0: not known
}

// fadingScratch is the working space of fading regressions.
type fadingScratch struct{ v, q []float64 }

func (f *fading) grow(d int, lambda float64) {
	f.ridge.grow(d, lambda)
	for i := len(f.s); i < d; i++ {
		f.s = append(f.s, 1)
		f.k = append(f.k, 0)
		f.high = 0
	}
}

func (f *fading) reset(lambda float64) {
	f.ridge.reset(lambda)
	for i := range f.s {
		f.s[i] = 1
	}
	f.a, f.high = 0, 0
	clear(f.k)
}

// at returns element (i, j) of p − a·kkᵀ, j ≤ i, to the bits that packedStep makes.
func (f *fading) at(i, j int) float64 {
	return f.p[packedLen(i)+j] - float64(float64(f.a*f.k[i])*f.k[j])
}

// maxScale is what an element of S may reach.
const maxScale = 0x1p16

// learn feeds (z, y); len(z) = len(f.w). It reports false if u < 0 or something is not
// finite: f is then broken and must be reset.
func (f *fading) learn(z []float64, y, rho, lambda float64, sc *fadingScratch) bool {
	f.forget(rho, lambda)
	v, q := f.scale(z, sc)
	packedStep(q, f.p, f.a, f.k, v)
	u, e := dot(q, v), y-dot(f.w, z)
	if !(u >= 0) || u-u != 0 || e-e != 0 {
		return false
	}
	f.a = 1 / (1 + u)
	copy(f.k, q)
	e = float64(e * f.a)
	w, s := f.w[:len(q)], f.s[:len(q)]
	for i, x := range q {
		w[i] += float64(e * float64(s[i]*x))
	}
	return true
}

// scale returns Sz, and as much room.
func (f *fading) scale(z []float64, sc *fadingScratch) (v, q []float64) {
	sc.v, sc.q = resize(sc.v, len(z)), resize(sc.q, len(z))
	v, s := sc.v[:len(z)], f.s[:len(z)]
	for i, x := range z {
		v[i] = s[i] * x
	}
	return v, sc.q
}

// forget multiplies S by D.
func (f *fading) forget(rho, lambda float64) {
	if rho == 1 {
		return
	}
	const slack = 1 + 1e-9 // more than rounding adds
	most, top := 1/math.Sqrt(rho), 0.0
	if f.high > 0 && float64(lambda*f.high)*slack < rho {
		for i, s := range f.s {
			s *= most
			f.s[i] = s
			if s > top {
				top = s
			}
		}
	} else {
		top = f.walk(most, rho, lambda)
	}
	f.high *= slack / rho
	if top > maxScale {
		f.rescale()
	}
}

// walk multiplies S by D, and returns its largest element. It passes down the diagonal of P,
// a line of memory an element, which need not be done again until high says so: in between
// P_ii grows by forgetting alone, for a rank-one step takes from it.
func (f *fading) walk(most, rho, lambda float64) (top float64) {
	f.high = 0
	for i, s := range f.s {
		p := float64(float64(s*s) * f.at(i, i))
		if v := float64(lambda * p); v > rho { // else (λP_ii)^-½ ≥ ρ^-½; NaN is met later
			s /= math.Sqrt(v)
		} else {
			s *= most
		}
		f.s[i] = s
		top, f.high = max(top, s), max(f.high, p)
	}
	return top
}

// rescale moves powers of two from S into p and k: nothing is rounded.
func (f *fading) rescale() {
	p := f.p
	for i := range f.s {
		row := p[:i+1]
		p = p[i+1:]
		if f.s[i] <= 1 {
			continue
		}
		for j := range row {
			row[j] *= maxScale
		}
		for j := i; j < len(f.s); j++ { // column i; the diagonal a second time
			f.p[packedLen(j)+i] *= maxScale
		}
		f.k[i] *= maxScale
		f.s[i] /= maxScale
	}
}
