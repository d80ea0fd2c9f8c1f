package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

// ahead are sums over the rounds whose turn has not come, along the functions that are left.
type ahead struct {
	regret []float64 // under each function, of the rounds that were evaluated
	loss   []float64 // Σ(f−y)² of those whose loss is there
	most   []float64 // Σ of what missing losses can add to L_g − L_f at most
	valued int64     // of the rounds that wait, those that were evaluated
}

// Decided returns the certificate of the rounds so far and of given ones, which were decided and whose feedback is not
// learned, in the order of their decisions: they cost their regret under the functions that survive instead of 1 each,
// for what they were drawn from is known (package comment). In the order of arrival rounds that wait for their turn are
// evaluated, too, and their losses refute functions as far as the losses before them that are missing cannot save them.
func (d *DAFA) Decided(rounds func(yield func(*Round) bool)) Plausible {
	m := d.models
	if m == nil {
		return Plausible{}
	}
	n := len(m.which)
	a := ahead{make([]float64, n), make([]float64, n), make([]float64, n), 0}
	rival := -1
	var unknown, last int64
	if o := d.ordered; o != nil {
		a.wait(m, o)
		if last = o.observed(); last > 0 && n > 0 {
			before, _ := o.find(last)
			rival, unknown = a.rival(m), last-o.next-int64(before)
		}
	}
	p := m.Plausible()
	for r := range rounds {
		if o := d.ordered; o != nil {
			if _, waits := o.find(r.Decision); waits || r.Decision < o.next {
				continue
			}
		}
		p.Ahead++
		if !r.Borrowed {
			a.cost(m, r)
		}
		if rival >= 0 && r.Decision < last {
			unknown--
			a.save(m, r, rival)
		}
	}
	a.bound(m, &p, rival, float64(max(0, unknown)))
	return p
}

// Turn returns the decision from which on [DAFA.Decided] takes rounds where feedback is in the order of
// arrival; 0: it is not known, or feedback is in the order of decisions.
func (d *DAFA) Turn() int64 {
	if d.ordered == nil {
		return 0
	}
	return d.ordered.next
}

// wait adds the rounds that have their feedback and wait for their turn.
func (a *ahead) wait(m *Models, o *inOrder) {
	for i := range o.wait {
		if o.wait[i].round == nil {
			continue
		}
		r := o.held.of(&o.wait[i])
		if r.Fate != Observed {
			continue
		}
		for i, v := range m.values(r.Input, r.Action) {
			e := v - r.Loss
			a.loss[i] += float64(e * e)
		}
		if !r.Borrowed {
			a.cost(m, r)
			a.valued++
		}
	}
}

// cost adds the regret of a round under each function.
func (a *ahead) cost(m *Models, r *Round) {
	mean, low := m.terms(r)
	for i, v := range mean {
		a.regret[i] += v - low[i]
	}
}

// rival returns the function with the least loss, that of rounds that wait included.
func (a *ahead) rival(m *Models) (rival int) {
	for i, l := range m.loss {
		if l+a.loss[i] < m.loss[rival]+a.loss[rival] {
			rival = i
		}
	}
	return rival
}

// save adds what the missing loss y of a round can add to L_g − L_f for the rival g: the most of
// (g−y)² − (f−y)², which is at y = 0 or at y = 1, and not negative.
func (a *ahead) save(m *Models, r *Round, rival int) {
	v := m.values(r.Input, r.Action)
	g := v[rival]
	for i, f := range v {
		a.most[i] += math.Max(float64(g*g)-float64(f*f), float64((1-g)*(1-g))-float64((1-f)*(1-f)))
	}
}

// bound sets the set and the bounds of p, with the functions that the losses of rounds that wait do not
// refute; of unknown rounds before them nothing is known.
func (a *ahead) bound(m *Models, p *Plausible, rival int, unknown float64) {
	level := oracle.Log(1 / m.alpha)
	bound, random := math.Inf(-1), math.Inf(-1)
	p.Surviving = 0
	for i, t := range m.top {
		if rival >= 0 {
			lead := m.loss[i] + a.loss[i] - m.loss[rival] - a.loss[rival]
			t = math.Max(t, float64(2*(lead-a.most[i]-unknown))-m.log)
		}
		if t >= level {
			continue
		}
		p.Surviving++
		bound = math.Max(bound, m.regret[i]+a.regret[i])
		random = math.Max(random, m.regret[i]+a.regret[i]+m.silent[i])
	}
	p.Charged, p.Waiting = p.Charged-a.valued, p.Waiting-a.valued
	if p.Bound, p.Random = float64(p.Charged)+bound, float64(m.unknown+p.Waiting)+random; p.Surviving == 0 {
		p.Bound, p.Random = math.Inf(1), math.Inf(1)
	}
}
