package watch

import "math"

// seriesBuckets is the most buckets that a series has.
const seriesBuckets = 96

// lossBucket sums up the rounds with a loss that were decided in one stretch of log time.
type lossBucket struct {
	Rounds   int64
	Loss     float64 // Σ loss
	Weight   float64 // Σ w, the weights of uniform play
	Weighted float64 // Σ w·loss
}

// series is loss over log time since the first round that was seen, in at most
// seriesBuckets buckets of equal width: when it is full neighbours merge.
type series struct {
	start, width int64 // ns; width 0: nothing was added
	buckets      [seriesBuckets]lossBucket
	used         int
}

// add takes a round decided at a log time. One from before the first counts with the first.
func (s *series) add(time int64, loss, weight float64) {
	if s.width == 0 {
		s.start, s.width = time, 1e9
	}
	i := max(0, (time-s.start)/s.width)
	for i >= seriesBuckets {
		s.halve()
		i /= 2
	}
	b := &s.buckets[i]
	b.Rounds++
	b.Loss += loss
	b.Weight += weight
	b.Weighted += weight * loss
	s.used = max(s.used, int(i)+1)
}

// halve merges neighbours.
func (s *series) halve() {
	for i := range seriesBuckets / 2 {
		a, b := s.buckets[2*i], s.buckets[2*i+1]
		s.buckets[i] = lossBucket{a.Rounds + b.Rounds, a.Loss + b.Loss, a.Weight + b.Weight, a.Weighted + b.Weighted}
	}
	clear(s.buckets[seriesBuckets/2:])
	s.width *= 2
	s.used = (s.used + 1) / 2
}

// Histogram counts numbers by powers of two: Counts[0] are those below Unit, Counts[i] those
// in [Unit·2^(i−1), Unit·2^i).
type Histogram struct {
	Unit   float64
	Counts [44]int64
	N      int64
	Most   float64
}

func (h *Histogram) add(x float64) {
	i := 0
	if x >= h.Unit {
		i = min(int(math.Log2(x/h.Unit))+1, len(h.Counts)-1)
	}
	h.Counts[i]++
	h.N++
	h.Most = max(h.Most, x)
}

// Quantile returns about which number a share q of them does not pass: the upper end of its
// bucket, and no more than the largest. NaN of none.
func (h *Histogram) Quantile(q float64) float64 {
	if h.N == 0 {
		return math.NaN()
	}
	rank, sum := int64(math.Ceil(q*float64(h.N))), int64(0)
	for i, n := range h.Counts {
		if sum += n; sum >= max(rank, 1) {
			return min(h.Unit*math.Exp2(float64(i)), h.Most)
		}
	}
	return h.Most
}
