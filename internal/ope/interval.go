package ope

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// normal95 is the 97.5 % quantile of the normal law.
const normal95 = 1.959963984540054

// bernstein returns half the length of the two-sided 95 % interval around the mean of n
// independent terms with that sample variance in an interval of length span: Maurer and
// Pontil (2009), theorem 4, at δ = 2.5 % a side. NaN for n < 2.
func bernstein(variance, n, span float64) float64 {
	if n < 2 {
		return math.NaN()
	}
	log := math.Log(2 / .025)
	return math.Sqrt(2*variance*log/n) + 7*span*log/(3*(n-1))
}

// bootstrap draws samples of the rows with replacement and returns the estimates on
// each: out[i][b] is that of estimator i on sample b.
func bootstrap(rows []terms, all []estimator, o Options) [][]float64 {
	out := make([][]float64, len(all))
	for i := range out {
		out[i] = make([]float64, o.Bootstrap)
	}
	rng := rand.NewPCG(o.Seed, streamBootstrap)
	for b := range o.Bootstrap {
		sum := resample(rows, rng)
		for i := range all {
			out[i][b] = all[i].value(&sum)
		}
	}
	return out
}

// resample sums as many rows as there are, drawn with replacement. Two 32-bit halves of
// a random word draw one row each; the law is uniform up to n·2⁻³².
func resample(rows []terms, rng *rand.PCG) terms {
	var sum terms
	n := uint64(len(rows))
	if n > 1<<31 { // halves would be too coarse
		for range rows {
			t, _ := bits.Mul64(rng.Uint64(), n)
			sum.add(&rows[t])
		}
		return sum
	}
	for left := len(rows); left > 0; left -= 2 {
		word := rng.Uint64()
		sum.add(&rows[(word>>32)*n>>32])
		if left > 1 {
			sum.add(&rows[(word&math.MaxUint32)*n>>32])
		}
	}
	return sum
}

// percentiles returns the 2.5 % and 97.5 % quantiles, linear between order statistics,
// of the values that are defined; it sorts them. Not defined where there are none, or
// where more than a half is not defined.
func percentiles(values []float64) Interval {
	defined := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(defined) == 0 || 2*len(defined) < len(values) {
		return Interval{Figure(math.NaN()), Figure(math.NaN())}
	}
	slices.Sort(defined)
	return Interval{Figure(quantile(defined, .025)), Figure(quantile(defined, .975))}
}

// quantile returns the p quantile of sorted values, of Hyndman and Fan's type 7.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
