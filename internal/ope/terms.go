package ope

import "math"

// terms are what the estimators sum over rows, a cache line a row, each times the rows that it counts for.
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
type lambdas struct {
	Clip, Switch, Shrink float64 // > 0; +Inf: none
}

// shrink returns DRos's weight λw/(w²+λ), which is w for λ = ∞.
func shrink(w, lambda float64) float64 {
	if math.IsInf(lambda, 1) {
		return w
	}
	return lambda * w / (float64(w*w) + lambda)
}

// clipped returns clipped IPS's weight.
func clipped(w, lambda float64) float64 { return min(w, lambda) }

// keep returns Switch's weight.
func keep(w, lambda float64) float64 {
	if w > lambda {
		return 0
	}
	return w
}

// terms returns what of row t estimators sum, for these λ.
func (l *look) terms(t int, lambda *lambdas) terms {
	return l.rowTerms(t, l.w(t), l.dm(t), lambda)
}

// logged returns what they would sum for the policy that made the log: weights are 1, and
// the model's value is q̂ of the action played.
func (l *look) logged(t int, lambda *lambdas) terms {
	return l.rowTerms(t, 1, l.s.Reward[t]-l.e(t), lambda)
}

func (l *look) rowTerms(t int, w, dm float64, lambda *lambdas) terms {
	c, r, e := l.c(t), l.s.Reward[t], l.e(t)
	return terms{c: c, dm: float64(c * dm), w: float64(c * w), wr: float64(c * w * r), we: float64(c * w * e),
		clipped: float64(c * clipped(w, lambda.Clip) * r), switched: float64(c * keep(w, lambda.Switch) * e),
		shrunk: float64(c * shrink(w, lambda.Shrink) * e)}
}

// estimator is one of them.
type estimator struct {
	name   string // in JSON; of those with λ the beginning
	lambda func(lambdas) float64
	// mean is what a row adds to a mean over events: the estimate is Σ mean / Σ c, plus the
	// ratio Σ over / Σ w if it has one; nil: none.
	mean, over func(row *terms) float64
	// kept is what is left of a weight, and whole what a row adds to the mean where nothing
	// is taken off: IPS or DR. Where something is, the estimate is biased; nil: nothing is.
	kept  func(w float64, l lambdas) float64
	whole func(row *terms) float64
	// span is the length of an interval that holds every term if rewards are in r, q̂ in q and
	// weights at most b; nil: terms that are not independent.
	span func(b float64, l lambdas, r, q Range) float64
}

// cuts reports whether a weight is not kept whole. A log has such weights if its largest is one.
func (m *estimator) cuts(w float64, l lambdas) bool { return m.kept != nil && m.kept(w, l) != w }

// less returns the difference from another mean over the same rows.
func (m *estimator) less(other func(row *terms) float64) estimator {
	return estimator{mean: func(row *terms) float64 { return m.mean(row) - other(row) }}
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
		x = float64((m.mean(row) - float64(row.c*(m.mean(sum)/sum.c))) * (n / sum.c))
	}
	if m.over != nil {
		x += float64((m.over(row) - float64(row.w*ratio(m.over(sum), sum.w))) * ratio(n, sum.w))
	}
	return x
}

// Range is that of rewards.
type Range struct{ Min, Max float64 }

// weighted is the span of w·r for w in [0, b].
func (r Range) weighted(b float64) float64 { return float64(b * (max(r.Max, 0) - min(r.Min, 0))) }

// corrected is the span of dm + w·e for w in [0, b], of a model that is in a range around r.
func (r Range) corrected(b float64, model Range) float64 {
	q := model.Max - model.Min
	return q + float64(b*(q+r.Max-r.Min))
}

// ratio returns x/y; NaN for y = 0.
func ratio(x, y float64) float64 {
	if y == 0 {
		return math.NaN()
	}
	return x / y
}

func estimators() []estimator {
	ips, we := func(r *terms) float64 { return r.wr }, func(r *terms) float64 { return r.we }
	dm, dr := func(r *terms) float64 { return r.dm }, func(r *terms) float64 { return r.dm + r.we }
	return []estimator{
		{name: "ips", mean: ips,
			span: func(b float64, _ lambdas, r, _ Range) float64 { return r.weighted(b) }},
		{name: "snips", over: ips},
		{name: "dm", mean: dm,
			kept: func(float64, lambdas) float64 { return 0 }, whole: dr},
		{name: "dr", mean: dr,
			span: func(b float64, _ lambdas, r, q Range) float64 { return r.corrected(b, q) }},
		{name: "sndr", mean: dm, over: we},
		{name: "cips", lambda: func(l lambdas) float64 { return l.Clip },
			mean: func(r *terms) float64 { return r.clipped },
			kept: func(w float64, l lambdas) float64 { return clipped(w, l.Clip) }, whole: ips,
			span: func(b float64, l lambdas, r, _ Range) float64 { return r.weighted(min(b, l.Clip)) }},
		{name: "switchdr", lambda: func(l lambdas) float64 { return l.Switch },
			mean: func(r *terms) float64 { return r.dm + r.switched },
			kept: func(w float64, l lambdas) float64 { return keep(w, l.Switch) }, whole: dr,
			span: func(b float64, l lambdas, r, q Range) float64 { return r.corrected(min(b, l.Switch), q) }},
		{name: "dros", lambda: func(l lambdas) float64 { return l.Shrink },
			mean: func(r *terms) float64 { return r.dm + r.shrunk },
			kept: func(w float64, l lambdas) float64 { return shrink(w, l.Shrink) }, whole: dr,
			span: func(b float64, _ lambdas, r, q Range) float64 { return r.corrected(b, q) }},
	}
}
