package ope

import "math"

// terms are what the estimators sum over rows, a cache line a row, each times the rows
// that it counts for.
type terms struct {
	c, dm, w, wr, we float64
	clipped          float64 // min(w,λ)·r
	switched         float64 // 1[w ≤ λ]·w·e
	shrunk           float64 // λw/(w²+λ)·e
}

func (s *terms) add(t *terms) {
	s.c += t.c
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

// terms returns what of row t estimators sum, for these λ.
func (l *look) terms(t int, lambda *Lambdas) terms {
	c, w, r := l.c(t), l.w(t), l.s.Reward[t]
	e := r - l.q.of(t, int(l.s.Action[t]))
	return terms{c: c, dm: c * l.dm(t), w: c * w, wr: c * w * r, we: c * w * e,
		clipped: c * min(w, lambda.Clip) * r, switched: c * keep(w, lambda.Switch) * e, shrunk: c * shrink(w, lambda.Shrink) * e}
}

// estimator is one of them.
type estimator struct {
	name   string // in JSON; of those with λ the beginning
	lambda func(Lambdas) float64
	// mean is what a row adds to a mean over events: the estimate is Σ mean / Σ c, plus the
	// ratio Σ over / Σ w if it has one; nil: none.
	mean, over func(row *terms) float64
	// span is the length of an interval that holds every term if rewards are in r and
	// weights at most b; nil: terms that are not independent.
	span func(b float64, l Lambdas, r Range) float64
}

// value is the estimate by the sums over rows; NaN: not defined.
func (m *estimator) value(sum *terms) float64 {
	switch {
	case m.over == nil:
		return m.mean(sum) / sum.c
	case m.mean == nil:
		return ratio(m.over(sum), sum.w)
	}
	return m.mean(sum)/sum.c + ratio(m.over(sum), sum.w)
}

// term is that of one of n rows, such that the estimate varies like the mean of terms;
// sums are those of the log: ratios are linearised at them, so that the terms' mean is 0.
func (m *estimator) term(row, sum *terms, n float64) float64 {
	x := 0.0
	if m.mean != nil {
		x = (m.mean(row) - row.c*(m.mean(sum)/sum.c)) * (n / sum.c)
	}
	if m.over != nil {
		x += (m.over(row) - row.w*ratio(m.over(sum), sum.w)) * ratio(n, sum.w)
	}
	return x
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
	dm, wr, we := func(r *terms) float64 { return r.dm }, func(r *terms) float64 { return r.wr }, func(r *terms) float64 { return r.we }
	return []estimator{
		{"ips", nil, wr, nil,
			func(b float64, _ Lambdas, r Range) float64 { return r.weighted(b) }},
		{"snips", nil, nil, wr, nil},
		{"dm", nil, dm, nil,
			func(_ float64, _ Lambdas, r Range) float64 { return r.Max - r.Min }},
		{"dr", nil, func(r *terms) float64 { return r.dm + r.we }, nil,
			func(b float64, _ Lambdas, r Range) float64 { return r.corrected(b) }},
		{"sndr", nil, dm, we, nil},
		{"cips", func(l Lambdas) float64 { return l.Clip }, func(r *terms) float64 { return r.clipped }, nil,
			func(b float64, l Lambdas, r Range) float64 { return r.weighted(min(b, l.Clip)) }},
		{"switchdr", func(l Lambdas) float64 { return l.Switch }, func(r *terms) float64 { return r.dm + r.switched }, nil,
			func(b float64, l Lambdas, r Range) float64 { return r.corrected(min(b, l.Switch)) }},
		{"dros", func(l Lambdas) float64 { return l.Shrink }, func(r *terms) float64 { return r.dm + r.shrunk }, nil,
			func(b float64, l Lambdas, r Range) float64 { return r.corrected(min(b, math.Sqrt(l.Shrink)/2)) }},
	}
}
