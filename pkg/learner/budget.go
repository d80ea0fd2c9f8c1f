package learner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hindsight/pkg/oracle"
)

// Budget bounds the mean of a cost over rounds.
type Budget struct {
	Name    string
	Of      oracle.Weights     // the cost by the heads of the learner's oracle, on the cost's own scale
	Mean    float64            // B > 0: the mean is to be at most B,
	AtLeast bool               // or at least: what is bounded is a good
	About   map[string]float64 // roughly the cost of actions, known beforehand; of others 0
	PayBack int64              // H, rounds in which a debt is paid back; 0: the program's choice; Never
	// Worth is the value in [0,1] of a head that is of no outcome but of several, known once they are: what Of gives
	// weight to where it is not linear in outcomes, whose head is Head. nil: it is linear.
	Worth func(action string, y []Outcome) Outcome
	Head  int
}

// Never is a PayBack: the price is what the newest predictions ask for, whatever was spent before.
const Never = -1

// Constants of prices.
const (
	farOff        = 100 // from what a cost is about: perhaps it is in another unit
	priceWindow   = 150 // W: rounds that a price is solved on
	priceEvery    = 5   // costs learned from one price to the next
	priceHalvings = 18
	priceSweeps   = 3       // over several budgets
	maxRoot       = 6       // of λ = r⁴, which is halved: λ ≤ 1296
	leastPayBack  = 1000    // H
	leastCost     = 0x1p-12 // of what is predicted of a cost, in budgets: never nothing, and never less
	largeCost     = 8       // in budgets: a change is looked for among smaller ones
)

// Priced is a learner that charges for costs.
type Priced interface {
	Learner
	// Prices appends the price of each budget, in the order of their names: that of laws until the next feedback.
	Prices(dst []float64) []float64
}

// budgets hold the prices λ of costs at what the budgets allow:
//
//	p = sampler(f̂ + Σ λ_i·ĉ_i/B_i, γ)
//	λ = min{λ ≥ 0: (1/W) Σ_j Σ_a p(a; f̂_j + λ·ĉ_j/B, γ)·ĉ_j(a) ≤ B′},  B′ = B·clip(1 − I/H, ½, 3/2)
//
// over the last W rounds whose costs were learned, with f̂_j and ĉ_j as they were predicted then, and
// I = Σ (c/B − 1) over the costs learned. The first sum feeds forward: it has no loop through the delay of costs, in
// which the price of a gradient method swings between "only the cheapest" and "everything". I is the slow loop that
// takes up what predictions get wrong; its time H is longer than the delay. A good is a cost of the other sign.
//
// λ is a function of the feedback learned alone, as γ is.
type budgets struct {
	of    []Budget
	price []float64 // λ
	debt  []float64 // I, positive if too much was spent, or too little of a good
	told  []int64   // costs in it
	costs int64     // records that told costs, those of other laws included
	ring  []forecast
	next  int // the oldest of a full ring

	v, charged, p, gammas []float64 // scratch
	known                 []Outcome // scratch, by head
	strange               []int64   // costs far from what they are about, for people; no part of the state
}

// forecast is what was predicted of a round: f̂ of its actions, then for each budget their ±ĉ/B.
type forecast []float64

// Spend makes a learner that has learned nothing, whose oracle is [oracle.Heads], keep budgets, given in the order of
// their names.
func (d *DAFA) Spend(of []Budget) error {
	if d.heads == nil || d.learned > 0 {
		return errors.New("budgets are kept for an oracle of named outcomes, from its first round on")
	}
	b := budgets{of: of, price: make([]float64, len(of)), debt: make([]float64, len(of)), told: make([]int64, len(of)),
		known: make([]Outcome, len(d.heads.Heads())), strange: make([]int64, len(of))}
	for i := range of {
		if !(of[i].Mean > 0) || math.IsInf(of[i].Mean, 0) {
			return fmt.Errorf("budget %s: the mean is %v: it must be positive", of[i].Name, of[i].Mean)
		}
		if err := d.expect(&of[i]); err != nil {
			return fmt.Errorf("budget %s: %w", of[i].Name, err)
		}
	}
	d.budgets = b
	d.firstPrices()
	return nil
}

// expect tells the heads of a budget what costs are about.
func (d *DAFA) expect(b *Budget) error {
	for k := range d.heads.Heads() {
		if about, large := b.atHead(k); about != nil {
			if err := d.heads.Expect(k, b.AtLeast, about, large); err != nil {
				return err
			}
		}
	}
	return nil
}

// atHead is what costs are about at a head, each term of a sum its equal share, and what is large there; 0: nothing is.
func (b *Budget) atHead(k int) (about map[string]float64, large float64) {
	about, most := map[string]float64{}, 0.0
	if _, w := b.Of(""); k < len(w) {
		most = math.Abs(w[k])
	}
	for name, v := range b.About {
		c, w := b.Of(name)
		if k >= len(w) || w[k] == 0 {
			continue
		}
		terms := 0
		for _, w := range w {
			if w != 0 {
				terms++
			}
		}
		about[name], most = (v-c)/float64(w[k]*float64(terms)), max(most, math.Abs(w[k]))
	}
	switch {
	case most == 0:
		return nil, 0
	case b.AtLeast:
		return about, 0
	}
	return about, largeCost * b.Mean / most
}

// sign is 1 of a cost and −1 of a good.
func (b *Budget) sign() float64 {
	if b.AtLeast {
		return -1
	}
	return 1
}

// inBudgets returns ±c/B.
func (b *Budget) inBudgets(c float64) float64 {
	c /= b.Mean
	if b.AtLeast {
		return -c
	}
	return max(c, leastCost)
}

// firstPrices solves for the prices before anything is predicted: with f̂ = 0 and the costs that are known beforehand.
func (d *DAFA) firstPrices() {
	b := &d.budgets
	var names []string
	for i := range b.of {
		for name := range b.of[i].About {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	names = slices.Compact(names)
	f := make(forecast, len(names))
	for i := range b.of {
		for _, name := range names {
			f = append(f, b.of[i].inBudgets(b.of[i].About[name]))
		}
	}
	b.ring = []forecast{f}
	d.setPrices(leastPayBack)
	b.ring = nil
}

// Prices implements [Priced].
func (d *DAFA) Prices(dst []float64) []float64 { return append(dst, d.budgets.price...) }

// Spending is how a budget is kept.
type Spending struct {
	Budget *Budget // not to be changed
	Price  float64 // λ, in units of loss for a cost of the budget's mean
	Costs  int64   // learned, of rounds that the learner's own law decided
	Mean   float64 // of them; NaN if there are none
	// Expected is the mean cost of a round at this price, by what was predicted of the last rounds; NaN before any.
	Expected float64
	// Strange counts costs learned here that were over 100 times what their action's are about, or below a hundredth.
	Strange int64
}

// Spending appends how each budget is kept.
func (d *DAFA) Spending(dst []Spending) []Spending {
	b := &d.budgets
	d.makeRoom()
	for i := range b.of {
		o := &b.of[i]
		overspent := float64(o.sign()*b.debt[i]) / float64(b.told[i])
		dst = append(dst, Spending{o, b.price[i], b.told[i], float64(o.Mean * (1 + overspent)),
			float64(o.Mean * o.sign() * b.spend(i)), b.strange[i]})
	}
	return dst
}

// foresee returns the forecast of the input that the heads have begun, which has k actions. It is scratch.
func (d *DAFA) foresee(k int) forecast {
	b := &d.budgets
	b.v = resize(b.v, k*(1+len(b.of)))
	d.heads.PredictLoss(b.v)
	for i := range b.of {
		costs := b.v[k*(1+i) : k*(2+i)]
		d.heads.Sum(costs, b.of[i].Of)
		for a := range costs {
			costs[a] = b.of[i].inBudgets(costs[a])
		}
	}
	return b.v
}

// cost returns ±ĉ/B of the i-th budget, by action.
func (f forecast) cost(i, budgets int) []float64 {
	k := len(f) / (1 + budgets)
	return f[k*(1+i) : k*(2+i)]
}

// charge sets dst to f̂ + Σ λ·ĉ/B. It is not more than the sampler tells apart at γ.
func (b *budgets) charge(dst []float64, f forecast, gamma float64) {
	copy(dst, f[:len(dst)])
	if len(b.of) == 0 {
		return
	}
	for i, price := range b.price {
		for a, c := range f.cost(i, len(b.of)) {
			dst[a] += float64(price * c)
		}
	}
	most := slices.Min(dst) + maxGamma/max(gamma, 1)
	for a := range dst {
		dst[a] = min(dst[a], most)
	}
}

// remember puts a forecast into the ring.
func (b *budgets) remember(f forecast) {
	if len(b.ring) < priceWindow {
		b.ring = append(b.ring, slices.Clone(f))
		return
	}
	b.ring[b.next] = append(b.ring[b.next][:0], f...)
	b.next = (b.next + 1) % priceWindow
}

// setPrices solves for all prices. Debts are paid back in as many rounds at least.
func (d *DAFA) setPrices(payBack int64) {
	b := &d.budgets
	d.makeRoom()
	sweeps := priceSweeps
	if len(b.of) == 1 {
		sweeps = 1
	}
	for range sweeps {
		for i := range b.of {
			b.halve(i, b.target(i, payBack))
		}
	}
}

// makeRoom makes scratch for the rounds of the ring, and sets gammas to their γ of now.
func (d *DAFA) makeRoom() {
	b := &d.budgets
	b.gammas = resize(b.gammas, len(b.ring))
	most := 0
	for j, f := range b.ring {
		k := len(f) / (1 + len(b.of))
		b.gammas[j] = d.gamma(k)
		most = max(most, k)
	}
	b.charged, b.p = resize(b.charged, most), resize(b.p, most)
}

// target is ±B′/B.
func (b *budgets) target(i int, payBack int64) float64 {
	o := &b.of[i]
	switch {
	case o.PayBack > 0:
		payBack = o.PayBack
	case o.PayBack == Never:
		return o.sign()
	}
	return o.sign() * max(.5, min(1-float64(o.sign()*b.debt[i])/float64(payBack), 1.5))
}

// halve sets the i-th price to the least that meets a target, the others being what they are.
func (b *budgets) halve(i int, target float64) {
	b.price[i] = 0
	if b.spend(i) <= target {
		return
	}
	low, high := 0.0, float64(maxRoot)
	for range priceHalvings {
		r := (low + high) / 2
		if b.price[i] = fourth(r); b.spend(i) <= target {
			high = r
		} else {
			low = r
		}
	}
	b.price[i] = fourth(high)
}

// fourth returns r⁴: halving r finds prices of all sizes equally well.
func fourth(r float64) float64 {
	r *= r
	return r * r
}

// spend returns the mean of ±ĉ/B of the i-th budget over the ring, from its oldest round on, at the prices of now. In
// the beginning it takes the newer half of all rounds alone: what was predicted of the first ones was less than is
// known by now, and cost the budget 1 to 2 % more in 1,800 rounds.
func (b *budgets) spend(i int) float64 {
	sum := 0.0
	old := max(0, len(b.ring)-int(b.costs)/2-1)
	for j := old; j < len(b.ring); j++ {
		at := (b.next + j) % len(b.ring)
		f, gamma := b.ring[at], b.gammas[at]
		costs := f.cost(i, len(b.of))
		v, p := b.charged[:len(costs)], b.p[:len(costs)]
		b.charge(v, f, gamma)
		Solve(p, v, gamma)
		for a, p := range p {
			sum += float64(p * costs[a])
		}
	}
	return sum / float64(len(b.ring)-old)
}

// know sets known to what a record tells of each head.
func (b *budgets) know(r *Round) {
	clear(b.known)
	copy(b.known, r.Outcomes)
	for i := range b.of {
		if o := &b.of[i]; o.Worth != nil {
			b.known[o.Head] = o.Worth(r.Input.Actions[r.Action].Name, r.Outcomes)
		}
	}
}

// tell adds what a record says of costs to the debts, unless another law than the learner's spent them; it reports
// whether it says anything. The first outcome of a cost stands for it: with it come the constant and the budget.
func (b *budgets) tell(r *Round) (told bool) {
	for i := range b.of {
		o := &b.of[i]
		sum, w := o.Of(r.Input.Actions[r.Action].Name)
		first := slices.IndexFunc(w, func(w float64) bool { return w != 0 })
		counts := first < 0 && !r.Partial && r.Fate != Withdrawn || first >= 0 && b.known[first].Known
		if sum -= o.Mean; !counts {
			sum = 0
		}
		whole := counts
		for k, w := range w {
			if w != 0 && b.known[k].Known {
				sum += float64(w * b.known[k].Value)
			} else if w != 0 {
				whole = false
			}
		}
		told = told || counts
		about := o.About[r.Input.Actions[r.Action].Name]
		if c := sum + o.Mean; whole && about > 0 && (c > farOff*about || farOff*c < about) {
			b.strange[i]++
		}
		if r.Borrowed {
			continue
		}
		b.debt[i] += float64(o.sign()*sum) / o.Mean
		if counts {
			b.told[i]++
		}
	}
	return told
}

// learnOutcomes is Learn over an oracle of named outcomes.
func (d *DAFA) learnOutcomes(r *Round) {
	b := &d.budgets
	own := !r.Partial && !r.Borrowed
	done := !r.Partial && (r.Fate == Observed || r.Fate == Imputed)
	if own && d.cert.count(r) {
		d.cert.addLaw(r)
	}
	b.know(r)
	told := b.tell(r)
	drifts := own && done && r.LearnedThrough != r.N-1
	if told || drifts {
		d.heads.Begin(r.Input)
		f := d.foresee(len(r.Input.Actions))
		if drifts {
			d.fhat = resize(d.fhat, len(r.Propensities))
			b.charge(d.fhat, f, r.Gamma)
			d.cert.Drift += drift(d.fhat, r.Propensities, r.Gamma)
		}
		if told {
			b.remember(f)
		}
	}
	for k, y := range b.known {
		if y.Known {
			d.heads.HeadUpdate(k, r.Input, r.Action, y.Value)
		}
	}
	if done {
		d.learned++
		d.heads.Update(r.Input, r.Action, r.Loss)
	}
	if told {
		// With many actions prices are solved for less often: that takes 2,700 laws.
		if b.costs++; b.costs%max(priceEvery, int64(len(r.Input.Actions)/4)) == 0 {
			d.setPrices(max(leastPayBack, 2*(r.N-1-r.LearnedThrough)))
		}
	}
}
