package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

// DAFA is the paper's DA-FA (alg. DAFA): it plays the law of [Solve] on the
// predictions of the newest oracle output, with γ from a [Schedule], and feeds
// the oracle in the order of the feedback log.
//
// γ counts rounds learned, never decisions: deciding changes nothing.
type DAFA struct {
	reg     oracle.Regressor
	s       Schedule
	learned int64
	cert    Certificate // without Regret, Bounded, Beta: those are the oracle's

	fhat []float64 // scratch
	p    []float64 // scratch
}

var _ Certified = (*DAFA)(nil)

// Proven is an [oracle.Regressor] that knows what is proved of it.
type Proven interface {
	// Proved reports whether Regret is a theorem's bound and Beta a stability
	// constant.
	Proved() bool
	// Beta bounds Σ E‖f̂_t − f̂_{t+1}‖²_∞ (paper, assum:stability); 0: none is proved.
	Beta() float64
}

func isProved(reg oracle.Regressor) bool {
	p, ok := reg.(Proven)
	return ok && p.Proved()
}

// NewDAFA returns a learner that owns reg.
func NewDAFA(reg oracle.Regressor, s Schedule) *DAFA { return &DAFA{reg: reg, s: s} }

// Oracle returns the oracle, to look at.
func (d *DAFA) Oracle() oracle.Regressor { return d.reg }

// Propensities implements [Learner]. With one action γ is that of K = 1 in the
// schedule, and means nothing.
func (d *DAFA) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	k := len(x.Actions)
	d.fhat, d.p = resize(d.fhat, k), resize(d.p, k)
	gamma := clipGamma(d.s.Gamma(k, d.learned, d.reg.Regret()))
	d.reg.Predict(d.fhat, x)
	Solve(d.p, d.fhat, gamma)
	return appendLaw(dst, d.p), gamma
}

// appendLaw appends Law(p) to dst.
func appendLaw(dst, p []float64) []float64 {
	n := len(dst)
	dst = append(dst, p...)
	Law(dst[n:], p)
	return dst
}

// resize returns a slice of length n that has s's memory if it is large enough.
func resize(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n, n+n/2)
	}
	return s[:n]
}

// Learn implements [Learner].
func (d *DAFA) Learn(r *Round) {
	if !d.cert.count(r) {
		return
	}
	d.cert.addLaw(r)
	// A round that was decided by the state of now has no drift, exactly.
	if r.LearnedThrough != r.N-1 && len(r.Propensities) > 1 {
		d.fhat = resize(d.fhat, len(r.Propensities))
		d.reg.Predict(d.fhat, r.Input)
		d.cert.Drift += drift(d.fhat, r.Propensities, r.Gamma)
	}
	d.reg.Update(r.Input, r.Action, r.Loss)
	d.learned++
}

// drift returns p·g − min g for g = f̂_t − f̂_{τ(t)+1}: the newer predictions are
// fhat, the older are recovered, up to a constant that cancels, from the logged
// law: 1/(γ·p(a)). At most 1 is charged, since a round's regret is at most 1.
func drift(fhat, law []float64, gamma float64) float64 {
	if !(gamma > 0) {
		return 0 // the round's barrier term is 1 already
	}
	mean, low := 0.0, math.Inf(1)
	for a, p := range law {
		g := fhat[a] - 1/float64(gamma*math.Max(p, 0x1p-54))
		mean += float64(p * g)
		low = math.Min(low, g)
	}
	return math.Max(0, math.Min(mean-low, 1))
}

// Learned implements [Learner].
func (d *DAFA) Learned() int64 { return d.learned }

// NeedsFIFO implements [Learner]: with an order-free oracle the same guarantee
// holds for feedback in the order of arrival.
func (d *DAFA) NeedsFIFO() bool { return !d.reg.OrderFree() }

// Certificate implements [Certified].
func (d *DAFA) Certificate() Certificate {
	c := d.cert
	c.Regret = d.reg.Regret()
	if p, ok := d.reg.(Proven); ok && p.Proved() {
		c.Bounded, c.Beta = true, p.Beta()
	}
	return c
}

// AppendBinary implements [Learner].
func (d *DAFA) AppendBinary(b []byte) ([]byte, error) {
	b = appendHeader(b, kindDAFA, d.learned)
	b = d.cert.appendBinary(b)
	return d.reg.AppendBinary(b)
}

// UnmarshalBinary implements [Learner].
func (d *DAFA) UnmarshalBinary(b []byte) error {
	learned, b, err := readHeader(b, kindDAFA)
	if err != nil {
		return err
	}
	var c Certificate
	b, err = c.readBinary(b)
	if err != nil {
		return err
	}
	if err := d.reg.UnmarshalBinary(b); err != nil {
		return err
	}
	d.learned, d.cert = learned, c
	return nil
}
