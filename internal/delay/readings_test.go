package delay

import "testing"

// TestReadingsOfThePaper fixes what is read where the paper's text allows several
// readings. Each case has raw delays d_t, τ(t) = the feedbacks learned before decision
// t, and by hand d_t, D and σ_max as released.
func TestReadingsOfThePaper(t *testing.T) {
	for _, c := range []struct {
		what          string
		raw, learned  []int64
		rawD, d, dMax int64
		sigmaMax      int64
	}{
		// The index. The algorithm's box feeds the oracle all s with s + d_s = t and then
		// decides t, so that d = 0 would be known to its own decision; the lower bound of
		// thm:lower-bound, which delay 1 makes linear, needs the round before to be known
		// without delay and unknown at delay 1. So d = 0 means "known to the next decision".
		{"no delay", []int64{0, 0, 0, 0}, []int64{0, 1, 2, 3}, 0, 0, 0, 0},
		// t = 2, 3, 4 do not know t−1: d = (1, 1, 1, 0), the last cut at the end.
		{"delay 1", []int64{1, 1, 1, 1}, []int64{0, 0, 1, 2}, 3, 3, 1, 1},
		// τ when nothing arrives. The box leaves τ^t undefined where no s + d_s = t; it is
		// the last round ever fed, and 0, the oracle that knows nothing, before the first:
		// only so is σ_t = t−1−τ(t) the number of rounds that a decision lacks.
		{"nothing comes for two rounds", []int64{0, 2, 1, 0}, []int64{0, 1, 1, 1}, 3, 3, 2, 2},
		{"nothing ever comes", []int64{Never, Never, Never, Never}, []int64{0, 0, 0, 0}, 6, 6, 3, 3},
		// D with missing feedback. The paper allows t + d_t > T and sums d_t all the same; a
		// round that never comes would make D infinite and every bound with it. It is charged
		// the T − t rounds that are decided without it, which keeps Σ d_t = Σ σ_t. In FIFO
		// order a missing round holds back those behind it: decision 4 lacks all three.
		{"one never comes, in FIFO order", []int64{Never, 0, 0, 0}, []int64{0, 0, 0, 0}, 3, 6, 3, 3},
	} {
		r, _ := Measure("", c.raw, c.learned)
		if r.Raw.D != c.rawD || r.Released.D != c.d || r.Released.DMax != c.dMax || r.Released.SigmaMax != c.sigmaMax {
			t.Errorf("%s: D as arrived %d, as released %d, d_max %d, σ_max %d; want %d, %d, %d, %d", c.what,
				r.Raw.D, r.Released.D, r.Released.DMax, r.Released.SigmaMax, c.rawD, c.d, c.dMax, c.sigmaMax)
		}
		sigma := int64(0)
		for i, tau := range c.learned {
			sigma += int64(i) - tau
		}
		if sigma != r.Released.D {
			t.Errorf("%s: Σ d = %d, Σ σ = %d", c.what, r.Released.D, sigma)
		}
	}
}
