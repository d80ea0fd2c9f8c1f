package oracle

import "math"

// CosTurns returns cos(2πt), t in turns, within two units in the last place of 1:
// the whole turns are taken off without rounding, whatever t; NaN for what is not
// finite. It has no branch, so that many in a row overlap.
func CosTurns(t float64) float64 {
	t -= math.Floor(t + 0.5)            // exact; |t| ≤ ½
	return sinTurns(0.25 - math.Abs(t)) // exact where the cosine is small
}

// sinTurns returns sin(2πs) for |s| ≤ ¼ by its Taylor series: the first term that is
// left out is below 2e-18.
func sinTurns(s float64) float64 {
	x := float64(2 * math.Pi * s)
	z := float64(x * x)
	r := float64(z*(1.0/51090942171709440000)) - 1.0/121645100408832000
	r = float64(z*r) + 1.0/355687428096000
	r = float64(z*r) - 1.0/1307674368000
	r = float64(z*r) + 1.0/6227020800
	r = float64(z*r) - 1.0/39916800
	r = float64(z*r) + 1.0/362880
	r = float64(z*r) - 1.0/5040
	r = float64(z*r) + 1.0/120
	r = float64(z*r) - 1.0/6
	return x + float64(float64(x*z)*r)
}
