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

// bootstrap draws samples of the units with replacement and returns the estimates on
// each: out[i][b] is that of estimator i on sample b. It reads the units once, in order.
func (l *look) bootstrap(u *units, all []estimator, o Options) [][]float64 {
	out := make([][]float64, len(all))
	for i := range out {
		out[i] = make([]float64, o.Bootstrap)
	}
	if o.Bootstrap == 0 {
		return out
	}
	n := u.n
	r := resampling{row: u.of, done: l.s.memory().Drop, rng: rand.NewPCG(o.Seed, streamBootstrap),
		sums: make([]terms, o.Bootstrap)}
	draws := make([]int, o.Bootstrap)
	for b := range draws {
		draws[b] = n
	}
	r.draw(0, n, draws)
	for b := range r.sums {
		for i := range all {
			out[i][b] = all[i].value(&r.sums[b])
		}
	}
	return out
}

// resampling are the sums of bootstrap samples. How many of a sample's draws fall on each half of the rows is binomial,
// and so on down to blocks, which are then drawn from: the samples' law is that of n independent draws, though one
// block of rows is at hand at a time.
type resampling struct {
	row  func(t int) terms
	done func() // is called when a block was read
	rng  *rand.PCG
	sums []terms // [samples]
	rows []terms // of a block
}

// blockRows is the most rows of a block. A log with fewer is one block, drawn from at once.
const blockRows = 1 << 16

// draw adds to sample b draws[b] of the rows [from, to).
func (r *resampling) draw(from, to int, draws []int) {
	if to-from > blockRows {
		mid := from + (to-from)/2
		p := float64(mid-from) / float64(to-from)
		left, right := make([]int, len(draws)), make([]int, len(draws))
		for b, n := range draws {
			left[b] = binomial(r.rng, n, p)
			right[b] = n - left[b]
		}
		r.draw(from, mid, left)
		r.draw(mid, to, right)
		return
	}
	r.rows = r.rows[:0]
	for t := from; t < to; t++ {
		r.rows = append(r.rows, r.row(t))
	}
	r.done()
	for b, n := range draws {
		sum := resample(r.rows, n, r.rng)
		r.sums[b].add(&sum)
	}
}

// binomial draws how many of n independent events of probability p in [0, 1) happen: those
// whose uniform number is below p, compared bit by bit from the first one on. At each bit
// of p half of those that are equal so far are decided, by the bits of random words.
func binomial(rng *rand.PCG, n int, p float64) int {
	below := 0
	for p > 0 && n > 0 {
		ones := 0
		for left := n; left > 0; left -= 64 {
			word := rng.Uint64()
			if left < 64 {
				word >>= 64 - left
			}
			ones += bits.OnesCount64(word)
		}
		if p *= 2; p >= 1 {
			below += n - ones // a 0 where p has a 1
			p--
			n = ones
		} else {
			n -= ones // a 1 where p has a 0 is above
		}
	}
	return below
}

// resample sums so many of at most 2³¹ rows, drawn with replacement. Two 32-bit halves of a
// random word draw one row each; the law is uniform up to n·2⁻³².
func resample(rows []terms, draws int, rng *rand.PCG) terms {
	var sum terms
	n := uint64(len(rows))
	for left := draws; left > 0; left -= 2 {
		word := rng.Uint64()
		sum.add(&rows[(word>>32)*n>>32])
		if left > 1 {
			sum.add(&rows[(word&math.MaxUint32)*n>>32])
		}
	}
	return sum
}

// percentiles returns the 2.5 % and 97.5 % quantiles, linear between order statistics, of the values that are defined;
// it sorts them. Not defined where there are none, or where more than a half is not defined.
func percentiles(values []float64) interval {
	defined := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(defined) == 0 || 2*len(defined) < len(values) {
		return interval{Figure(math.NaN()), Figure(math.NaN())}
	}
	slices.Sort(defined)
	return interval{Figure(quantile(defined, .025)), Figure(quantile(defined, .975))}
}

// quantile returns the p quantile of sorted values, of Hyndman and Fan's type 7.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + float64((at-float64(i))*(sorted[i+1]-sorted[i]))
}
