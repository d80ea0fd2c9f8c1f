package oracle

// Vovk's substitution (Vovk 2001, Competitive On-line Statistics, section 2.4; for
// outcomes anywhere in [0,1] Haussler, Kivinen and Warmuth 1998): the square loss is
// η-mixable for η ≤ 2, that is, for every q there is a prediction p with
//
//	(p − y)² ≤ g(y) = −(1/η)·log Σ_f q(f)·exp(−η(f − y)²)   for all y in [0,1],
//
// and p = ½ + (g(0) − g(1))/2 is one. The right sides telescope as they do for the mean,
// so R_T ≤ log(1/min q_1)/η: ½ log|F| at η = 2, where the mean has 2 log|F|. How far
// predictions move from round to round, on which the price of delay depends, is not
// proved: a certificate must measure the drift.

// VovkEta is the largest step size for which the substitution exists.
const VovkEta = 2

// substitute sets dst[a] to the substitution's prediction of each action.
func (h *Hedge) substitute(dst []float64, x *Input) {
	for a := range dst {
		h.class.Eval(h.f, x, a)
		low, high := 0.0, 0.0 // Σ q·exp(−η(f−y)²) for y = 0 and y = 1
		for i, w := range h.q {
			if w == 0 {
				continue
			}
			f := h.f[i]
			low += float64(w * Exp(-h.eta*float64(f*f)))
			high += float64(w * Exp(-h.eta*float64((1-f)*(1-f))))
		}
		dst[a] = clip01(0.5 - (Log(low)-Log(high))/(2*h.eta))
	}
}
