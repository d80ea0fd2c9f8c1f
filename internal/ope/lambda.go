package ope

import "math"

// lambdaGrid is where λ is looked for.
var lambdaGrid = [...]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, math.Inf(1)}

// choose returns, for each estimator with a λ, the λ of a grid whose estimated mean square error var/n + bias² is
// least, the smallest if there are several. The bias is that against IPS or DR on the same rows, mean (w − w_λ)·e, with
// e = r for clipped IPS: the rule of Su et al. (2020), section 5, without its bound for large weights, which would
// favour smaller ones. It looks at the rewards that are then averaged, so that the intervals are somewhat too short.
func (l *look) choose() lambdas {
	none := func(int) float64 { return 0 }
	reward := func(t int) float64 { return l.s.Reward[t] }
	return lambdas{
		Clip:   l.best(none, reward, clipped),
		Switch: l.best(l.dm, l.e, keep),
		Shrink: l.best(l.dm, l.e, shrink),
	}
}

// best returns the λ with the least estimated error of mean base + weight(w,λ)·e.
func (l *look) best(base, e func(t int) float64, weight func(w, lambda float64) float64) float64 {
	least, chosen := math.Inf(1), 0.0
	n := float64(l.s.Len())
	for _, lambda := range lambdaGrid {
		sum, square, bias := 0.0, 0.0, 0.0
		for t := range l.s.all() {
			w, c := l.w(t), l.c(t)
			u := weight(w, lambda)
			x := float64(c * (base(t) + float64(u*e(t))))
			sum += x
			square += float64(x * x)
			bias += float64(c * (w - u) * e(t))
		}
		variance := max(0, square-sum*sum/n) / max(n-1, 1)
		if mse := variance/n + float64(bias/n*(bias/n)); mse < least {
			least, chosen = mse, lambda
		}
	}
	return chosen
}
