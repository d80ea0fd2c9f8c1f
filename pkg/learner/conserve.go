package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

// Conservative is a learner that knows how much of its law may be played so that a round keeps most of the gain, 1 less
// the loss, that a baseline would have there.
type Conservative interface {
	// Conserve makes Share keep 1−lose of the baseline's gain at level delta; a lose of 0 ends that. It is no part of
	// the state.
	Conserve(lose, delta float64)
	// Share returns the largest ε in [0,1] such that the law base + ε·(law − base) keeps 1−lose of the gain of base
	// under all that what was learned leaves possible at level delta (package comment).
	Share(law, base []float64, x *oracle.Input) float64
}

// LeastShare is the smallest level of [DAFA.Conserve] with [Models], as a share of theirs: what falls at a smaller one
// is forgotten.
const LeastShare = memberShare

var _ Conservative = (*DAFA)(nil)

// Conserve implements [Conservative]. Rounds that are held back are no rounds of the learner's own; γ counts them all
// the same from here on, for their law explores, and a learner whose γ stood still would be held back for ever.
func (d *DAFA) Conserve(lose, delta float64) { d.lose, d.delta = lose, delta }

// Share implements [Conservative]. An oracle without a theorem has a share of 0.
func (d *DAFA) Share(law, base []float64, x *oracle.Input) float64 {
	if d.models != nil && d.ordered == nil {
		return d.models.share(law, base, x, d.lose, oracle.Log(1/d.delta))
	}
	if f, ok := d.reg.(*oracle.Frozen); ok {
		n := len(law)
		d.fhat, d.p = resize(d.fhat, n), resize(d.p, n)
		f.Interval(d.fhat, d.p, x, d.delta)
		return boxShare(law, base, d.fhat, d.p, d.lose)
	}
	return 0
}

// share returns the share for the functions with log M_f < level: for each the gain ε·(base−law)·(1−f) given up is at
// most lose·base·(1−f). Where no function is left nothing may be played.
func (m *Models) share(law, base []float64, x *oracle.Input, lose, level float64) float64 {
	n := len(m.which)
	keep, give := m.mean[:n], m.low[:n] // of the baseline, and what the law gains less
	clear(keep)
	clear(give)
	for a, b := range base {
		for i, f := range m.values(x, a) {
			keep[i] += float64(b * (1 - f))
			give[i] += float64((b - law[a]) * (1 - f))
		}
	}
	share, left := 1.0, false
	for i, t := range m.top {
		if t >= level {
			continue
		}
		left = true
		if spare := lose * keep[i]; give[i] > spare {
			share = math.Min(share, spare/give[i])
		}
	}
	if !left {
		return 0
	}
	return share
}

// boxShare returns the share where losses lie anywhere in [lo, hi]: the worst gain of base and law together is concave
// in ε and not negative at 0.
func boxShare(law, base, lo, hi []float64, lose float64) float64 {
	kept := func(share float64) bool {
		worst := 0.0
		for a, b := range base {
			c := float64(lose*b) + float64(share*(law[a]-b))
			worst += math.Min(float64(c*(1-lo[a])), float64(c*(1-hi[a])))
		}
		return worst >= 0
	}
	if kept(1) {
		return 1
	}
	share := 0.0
	for step := 0.5; step > 1e-6; step /= 2 {
		if kept(share + step) {
			share += step
		}
	}
	return share
}

// Blend appends the law base + share·(law − base), as it is drawn from.
func Blend(dst, law, base []float64, share float64) []float64 {
	n := len(dst)
	for a, b := range base {
		dst = append(dst, b+float64(share*(law[a]-b)))
	}
	Law(dst[n:], dst[n:])
	return dst
}
