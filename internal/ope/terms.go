package ope

import "math"

// terms are what the estimators sum over rows, a cache line a row.
type terms struct {
	dm, w, wr, we float64
	clipped       float64 // min(w,λ)·r
	switched      float64 // 1[w ≤ λ]·w·e
	shrunk        float64 // λw/(w²+λ)·e
	_             float64 // a power of two
}

func (s *terms) add(t *terms) {
	s.dm += t.dm
	s.w += t.w
	s.wr += t.wr
	s.we += t.we
	s.clipped += t.clipped
	s.switched += t.switched
	s.shrunk += t.shrunk
}

// Lambdas are the hyper-parameters of the estimators that have one.
type Lambdas struct {
	Clip, Switch, Shrink float64 // > 0; +Inf: none
}

// shrink returns DRos's weight λw/(w²+λ), which is w for λ = ∞.
func shrink(w, lambda float64) float64 {
	if math.IsInf(lambda, 1) {
		return w
	}
	return lambda * w / (w*w + lambda)
}

// keep returns Switch's weight.
func keep(w, lambda float64) float64 {
	if w > lambda {
		return 0
	}
	return w
}

// rows returns the terms of every row.
func (l *look) rows(s *Sample, q *fitted, lambda Lambdas) []terms {
	rows := make([]terms, s.Len())
	for t := range rows {
		w, r := l.w[t], s.Reward[t]
		e := r - q.of(t, int(s.Action[t]))
		rows[t] = terms{dm: l.dm[t], w: w, wr: w * r, we: w * e,
			clipped: min(w, lambda.Clip) * r, switched: keep(w, lambda.Switch) * e, shrunk: shrink(w, lambda.Shrink) * e}
	}
	return rows
}

// estimator is one of them.
type estimator struct {
	name   string // in JSON; of those with λ the beginning
	lambda func(Lambdas) float64
	// value is the estimate by the sums over n rows; NaN: not defined.
	value func(sum *terms, n float64) float64
	// term is that of one row, such that the estimate varies like the mean of terms;
	// sums are those of the log: a ratio is linearised at them.
	term func(row, sum *terms, n float64) float64
	// span is the length of an interval that holds every term if rewards are in r and
	// weights at most b; nil: a ratio, whose terms are not independent.
	span func(b float64, l Lambdas, r Range) float64
}

// Range is that of rewards.
type Range struct{ Min, Max float64 }

// weighted is the span of w·r for w in [0, b].
func (r Range) weighted(b float64) float64 { return b * (max(r.Max, 0) - min(r.Min, 0)) }

// corrected is the span of dm + w·e for w in [0, b]: dm and q̂ are in r, and e within
// ±(Max−Min).
func (r Range) corrected(b float64) float64 { return (1 + 2*b) * (r.Max - r.Min) }

// ratio returns x/y; NaN for y = 0.
func ratio(x, y float64) float64 {
	if y == 0 {
		return math.NaN()
	}
	return x / y
}

func estimators() []estimator {
	return []estimator{
		{"ips", nil,
			func(s *terms, n float64) float64 { return s.wr / n },
			func(r, _ *terms, _ float64) float64 { return r.wr },
			func(b float64, _ Lambdas, r Range) float64 { return r.weighted(b) }},
		{"snips", nil,
			func(s *terms, _ float64) float64 { return ratio(s.wr, s.w) },
			func(r, s *terms, n float64) float64 { return (r.wr - r.w*ratio(s.wr, s.w)) * ratio(n, s.w) },
			nil},
		{"dm", nil,
			func(s *terms, n float64) float64 { return s.dm / n },
			func(r, _ *terms, _ float64) float64 { return r.dm },
			func(_ float64, _ Lambdas, r Range) float64 { return r.Max - r.Min }},
		{"dr", nil,
			func(s *terms, n float64) float64 { return (s.dm + s.we) / n },
			func(r, _ *terms, _ float64) float64 { return r.dm + r.we },
			func(b float64, _ Lambdas, r Range) float64 { return r.corrected(b) }},
		{"sndr", nil,
			func(s *terms, n float64) float64 { return s.dm/n + ratio(s.we, s.w) },
			func(r, s *terms, n float64) float64 {
				return r.dm - s.dm/n + (r.we-r.w*ratio(s.we, s.w))*ratio(n, s.w)
			},
			nil},
		{"cips", func(l Lambdas) float64 { return l.Clip },
			func(s *terms, n float64) float64 { return s.clipped / n },
			func(r, _ *terms, _ float64) float64 { return r.clipped },
			func(b float64, l Lambdas, r Range) float64 { return r.weighted(min(b, l.Clip)) }},
		{"switchdr", func(l Lambdas) float64 { return l.Switch },
			func(s *terms, n float64) float64 { return (s.dm + s.switched) / n },
			func(r, _ *terms, _ float64) float64 { return r.dm + r.switched },
			func(b float64, l Lambdas, r Range) float64 { return r.corrected(min(b, l.Switch)) }},
		{"dros", func(l Lambdas) float64 { return l.Shrink },
			func(s *terms, n float64) float64 { return (s.dm + s.shrunk) / n },
			func(r, _ *terms, _ float64) float64 { return r.dm + r.shrunk },
			func(b float64, l Lambdas, r Range) float64 { return r.corrected(min(b, math.Sqrt(l.Shrink)/2)) }},
	}
}
