package learner

import "hindsight/pkg/oracle"

// InverseGap is SquareCB with inverse-gap weighting (Foster & Rakhlin 2020), for
// comparison with [DAFA]: p(a) = 1/(K + γ·(f̂(a) − min f̂)), the remainder on the
// best action.
type InverseGap struct {
	counter
	reg     oracle.Regressor
	s       Schedule
	fhat, p []float64
}

// NewInverseGap returns a learner that owns reg.
func NewInverseGap(reg oracle.Regressor, s Schedule) *InverseGap {
	return &InverseGap{reg: reg, s: s}
}

// Propensities implements [Learner].
func (g *InverseGap) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	k := len(x.Actions)
	g.fhat, g.p = resize(g.fhat, k), resize(g.p, k)
	gamma := clipGamma(g.s.Gamma(k, g.learned, g.reg.Regret()))
	g.reg.Predict(g.fhat, x)
	best, rest := argmin(g.fhat), 1.0
	for a, v := range g.fhat {
		if a != best {
			g.p[a] = 1 / (float64(k) + float64(gamma*(v-g.fhat[best])))
			rest -= g.p[a]
		}
	}
	g.p[best] = rest
	return appendLaw(dst, g.p), gamma
}

// Learn implements [Learner].
func (g *InverseGap) Learn(r *Round) {
	if g.takes(r) {
		g.reg.Update(r.Input, r.Action, r.Loss)
	}
}

// AppendBinary implements [Learner].
func (g *InverseGap) AppendBinary(b []byte) ([]byte, error) {
	return g.reg.AppendBinary(appendHeader(b, kindInverseGap, g.learned))
}

// UnmarshalBinary implements [Learner].
func (g *InverseGap) UnmarshalBinary(b []byte) error {
	return g.readWith(b, kindInverseGap, g.reg)
}
