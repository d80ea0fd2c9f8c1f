package learner

import (
	"errors"
	"math"

	"hindsight/pkg/oracle"
)

// Eliminate makes a learner that watches models play only what one of those that survive thinks best: the barrier over
// {argmin_a f(x,·) : f ∈ C_t}. It explores far less, and gives up two things for it. All other actions have propensity
// 0: their losses can never be estimated from its log. And when the truth is not in C_t, which happens with probability
// up to α if the class contains it and always if not, its best action may never be played again: nothing is left that
// would find out, and no bound holds (docs/algorithms.md, 3.3).
func (d *DAFA) Eliminate() error {
	if d.models == nil {
		return errors.New("elimination needs the models of a class: watch them first")
	}
	d.eliminate = true
	return nil
}

// solveLeft sets p to the law over the actions that are best for a surviving function, 0
// elsewhere; over all if none survives.
func (d *DAFA) solveLeft(p, fhat []float64, x *oracle.Input, gamma float64) {
	d.best = d.models.appendBest(d.best[:0], x)
	if len(d.best) == 0 {
		Solve(p, fhat, gamma)
		return
	}
	n := len(d.best)
	d.few = resize(d.few, 2*n)
	few, law := d.few[:n], d.few[n:]
	for i, a := range d.best {
		few[i] = fhat[a]
	}
	Solve(law, few, gamma)
	clear(p)
	for i, a := range d.best {
		p[a] = law[i]
	}
}

// appendBest appends, ascending, the actions that are the first best one of a function that survives.
func (m *Models) appendBest(dst []int32, x *oracle.Input) []int32 {
	n, level := len(m.which), oracle.Log(1/m.alpha)
	low, at := m.low[:n], m.next[:n]
	for i := range low {
		low[i] = math.Inf(1)
	}
	for a := range x.Actions {
		for i, v := range m.values(x, a) {
			if v < low[i] {
				low[i], at[i] = v, float64(a)
			}
		}
	}
	for a := range x.Actions {
		for i, t := range m.top {
			if t < level && at[i] == float64(a) {
				dst = append(dst, int32(a))
				break
			}
		}
	}
	return dst
}
