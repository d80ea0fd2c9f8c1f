package oracle

import "math"

// The functions of this file are FreeBSD's (msun: e_exp.c, e_log.c) with every product written float64(a*b), so that no
// compiler may fuse it into an FMA: package math picks its code by CPU at run time and gives other bits elsewhere. Both
// are within one unit in the last place, which a test checks against math/big.

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	log2e = 1.44269504088896338700e+00

	expOverflow  = 7.09782712893383973096e+02
	expUnderflow = -7.45133219101941108420e+02
)

// Exp returns e**x within one unit in the last place: +Inf on overflow, 0 on
// underflow, subnormals rounded twice, NaN for NaN.
func Exp(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > expOverflow:
		return math.Inf(1)
	case x < expUnderflow:
		return 0
	case -0x1p-28 < x && x < 0x1p-28:
		return 1 + x
	}
	half := 0.5
	if x < 0 {
		half = -0.5
	}
	k := int(float64(log2e*x) + half)
	hi := x - float64(float64(k)*ln2Hi)
	lo := float64(float64(k) * ln2Lo)
	return scale2(expReduced(hi, lo), k)
}

// expReduced returns e**(hi-lo) for |hi-lo| ≤ log(2)/2.
func expReduced(hi, lo float64) float64 {
	const (
		p1 = 1.66666666666666657415e-01
		p2 = -2.77777777770155933842e-03
		p3 = 6.61375632143793436117e-05
		p4 = -1.65339022054652515390e-06
		p5 = 4.13813679705723846039e-08
	)
	r := hi - lo
	t := float64(r * r)
	c := p4 + float64(t*p5)
	c = p3 + float64(t*c)
	c = p2 + float64(t*c)
	c = p1 + float64(t*c)
	c = r - float64(t*c)
	return 1 - ((lo - float64(r*c)/(2-c)) - hi)
}

// scale2 returns y·2**k for y in [0.5, 2] and k in [-1080, 1024].
func scale2(y float64, k int) float64 {
	switch {
	case k > 1023:
		return y * 0x1p1023 * 2
	case k < -1021:
		return y * math.Float64frombits(uint64(k+64+1023)<<52) * 0x1p-64
	}
	return y * math.Float64frombits(uint64(k+1023)<<52)
}

// Log returns the natural logarithm of x within one unit in the last place: -Inf for 0, NaN for x < 0 and NaN.
func Log(x float64) float64 {
	switch {
	case x != x || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	const (
		l1 = 6.666666666666735130e-01
		l2 = 3.999999999940941908e-01
		l3 = 2.857142874366239149e-01
		l4 = 2.222219843214978396e-01
		l5 = 1.818357216161805012e-01
		l6 = 1.531383769920937332e-01
		l7 = 1.479819860511658591e-01
	)
	f1, ki := frexp(x)
	if f1 < math.Sqrt2/2 {
		f1 *= 2
		ki--
	}
	f := f1 - 1
	k := float64(ki)

	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	a := l5 + float64(s4*l7)
	a = l3 + float64(s4*a)
	a = l1 + float64(s4*a)
	b := l4 + float64(s4*l6)
	b = l2 + float64(s4*b)
	r := float64(s2*a) + float64(s4*b)
	hfsq := float64(float64(0.5*f) * f)
	return float64(k*ln2Hi) - ((hfsq - (float64(s*(hfsq+r)) + float64(k*ln2Lo))) - f)
}

// frexp splits a positive finite x into f·2**k with f in [0.5, 1).
func frexp(x float64) (f float64, k int) {
	if x < 0x1p-1022 {
		x *= 0x1p64
		k = -64
	}
	b := math.Float64bits(x)
	k += int(b>>52) - 1022
	return math.Float64frombits(b&^(0x7ff<<52) | 1022<<52), k
}

// Sigmoid returns 1/(1+e**-x), without overflow and symmetric: Sigmoid(-x) = 1 - Sigmoid(x) up to rounding.
func Sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + Exp(-x))
	}
	e := Exp(x)
	return e / (1 + e)
}

// clip01 clips v to [0,1]; NaN becomes 0.
func clip01(v float64) float64 {
	if v != v {
		return 0
	}
	// No branch on what is not foreseen; numbers that are not negative are in the order of their bits.
	b := math.Float64bits(v)
	return math.Float64frombits(min(b&^uint64(int64(b)>>63), math.Float64bits(1)))
}

// CosTurns returns cos(2πt), t in turns, within two units in the last place of 1: the whole turns are taken off without
// rounding, whatever t; NaN for what is not finite. It has no branch, so that many in a row overlap.
func CosTurns(t float64) float64 {
	t -= math.Floor(t + 0.5)            // exact; |t| ≤ ½
	return sinTurns(0.25 - math.Abs(t)) // exact where the cosine is small
}

// sinTurns returns sin(2πs) for |s| ≤ ¼ by its Taylor series: the first term that is left out is below 2e-18.
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
