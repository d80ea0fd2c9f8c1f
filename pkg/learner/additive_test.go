package learner_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// potentials follows a run, with the weights that an oracle would have that knew all that was decided.
type potentials struct {
	t      *testing.T
	e      *delayed
	d      *learner.DAFA
	eta    func() float64
	rng    *rand.Rand
	seen   int64     // feedbacks in used
	used   []float64 // L of what the decision knew
	all    []float64 // L of all that was decided before it
	byN    map[int64]*round
	rounds []*round
	most   float64 // σ_max

	sum     float64    // Σ E_q e(f), q by all
	mine    float64    // Σ E_q e(f), q by what the decision knew
	played  float64    // Σ of f̂'s own square error
	behind  float64    // rounds decided with ησ > 1, left out of it
	dropped [3]float64 // the largest excess of Lemma 1 without each of its terms
}

func weights(losses []float64, eta float64) []float64 {
	q, sum, least := make([]float64, len(losses)), 0.0, math.Inf(1)
	for _, l := range losses {
		least = math.Min(least, l)
	}
	for i, l := range losses {
		q[i] = math.Exp(-eta * (l - least))
		sum += q[i]
	}
	for i := range q {
		q[i] /= sum
	}
	return q
}

// look takes the round that was decided last.
func (p *potentials) look(all, _ []*round) {
	size := p.e.class.Size()
	if p.byN == nil {
		p.byN, p.used, p.all = map[int64]*round{}, make([]float64, size), make([]float64, size)
	}
	r := all[len(all)-1]
	p.rounds = all
	f := make([][]float64, len(r.Propensities))
	for a := range f {
		f[a] = make([]float64, size)
		p.e.class.Eval(f[a], r.Input, a)
	}
	for ; p.seen < r.LearnedThrough; p.seen++ {
		p.add(p.used, p.byN[p.seen+1])
	}
	for _, x := range all {
		if x.N > p.seen {
			p.byN[x.N] = x
		}
	}
	eta := p.eta()
	qs, qt := weights(p.used, eta), weights(p.all, eta)
	sigma := float64(r.Decision - 1 - r.LearnedThrough)
	p.most = math.Max(p.most, sigma)
	lead, outside := 0.0, 0.0
	for i := range size {
		if qs[i] > qt[i]*math.Exp(eta*sigma)*(1+1e-9) {
			p.t.Fatalf("round %d: q_S(%d) = %v > e^{%v·%v}·%v", r.Decision, i, qs[i], eta, sigma, qt[i])
		}
		square := 0.0
		for a, prob := range r.Propensities {
			square += prob * (f[a][i] - f[a][0]) * (f[a][i] - f[a][0])
		}
		p.sum += qt[i] * square
		if eta*sigma <= 1 {
			p.mine += qs[i] * square
		}
		if p.rng.IntN(2) == 0 {
			lead += qs[i] * square
		} else {
			outside += 2 * qs[i]
		}
	}
	if eta*sigma > 1 {
		p.behind++
	}
	for a, prob := range r.Propensities {
		hat := 0.0
		for i, q := range qs {
			hat += q * f[a][i]
		}
		p.played += prob * (hat - f[a][0]) * (hat - f[a][0])
	}
	terms := [3]float64{float64(len(f)-1) / r.Gamma, r.Gamma / 4 * lead, outside}
	excess := r.regret - terms[0] - terms[1] - terms[2]
	if excess > 1e-12 {
		p.t.Fatalf("round %d: regret %v > %v + %v + %v", r.Decision, r.regret, terms[0], terms[1], terms[2])
	}
	for i, x := range terms {
		p.dropped[i] = math.Max(p.dropped[i], excess+x)
	}
	p.add(p.all, r)
}

func (p *potentials) add(losses []float64, r *round) {
	f := make([]float64, len(losses))
	p.e.class.Eval(f, r.Input, r.Action)
	for i, v := range f {
		losses[i] += (v - r.Loss) * (v - r.Loss)
	}
}

// blind are the adversaries that do not look at losses.
var blind = append(adversaries[2:len(adversaries):len(adversaries)], func(e *delayed) {
	e.wait = func(int, bool, float64) int { return 30 }
})

// TestAdditive holds the steps of theorem 3 for delays that are blind to missing losses, in both orders: Lemma 1 on
// every round, for any set of functions, and not without one of its terms; the ratio of weights on every path;
// in the mean, that Σ E_q(f−f⋆)² is at most R_η, and the regret at most the bound.
func TestAdditive(t *testing.T) {
	seeds, rounds := 100, 200
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, rounds = 1000, 400
	}
	var sums, slack, all []float64
	var dropped [3]float64
	for seed := range seeds {
		e := overSigmoids(uint64(seed))
		blind[seed%len(blind)](e)
		fifo := seed%2 == 0
		d := dafaOver(&world{class: e.class.(*oracle.LinearClass)}, oracle.HedgeOptions{},
			learner.Anytime{C: learner.Cautious})
		p := &potentials{t: t, e: e, d: d, rng: rand.New(rand.NewPCG(uint64(seed), 7)),
			eta: func() float64 { return .5 }}
		regret := 0.0
		e.play(d, rounds, fifo, p.look)
		for _, r := range p.byN {
			regret += r.regret
		}
		c := d.Certificate()
		bound, at := c.Additive()
		if free, _ := c.Potential.Additive(c.MaxSigma, func(lead float64) float64 {
			return c.Barrier + c.MaxGamma*lead/4
		}, func(w int64) float64 {
			if w < c.MaxSigma {
				return math.Inf(1)
			}
			return 0
		}); bound > free || at.Theta < .1 {
			t.Fatalf("%v at %+v, and %v without charging rounds", bound, at, free)
		}
		sums, slack = append(sums, p.sum), append(slack, bound-regret)
		all = append(all, p.played-2*(p.most+1)*math.Log(worldSize))
		for i, x := range p.dropped {
			dropped[i] = math.Max(dropped[i], x)
		}
	}
	mean := func(v []float64) (m float64) {
		for _, x := range v {
			m += x / float64(len(v))
		}
		return m
	}
	r := learner.Potential{Eta: .5, Scale: math.Log(worldSize)}.Sum()
	t.Logf("Σ E_q(f−f⋆)² %.2f of at most %.2f; bound − regret %.0f; Lemma 1 without a term is broken by %.2g",
		mean(sums), r, mean(slack), dropped)
	if math.Abs(r-3.1976*math.Log(worldSize)) > 1e-3 {
		t.Errorf("R_η is %v·log|F|", r/math.Log(worldSize))
	}
	if mean(sums) > r {
		t.Errorf("the mean of Σ E_q(f−f⋆)² is %v, over %v", mean(sums), r)
	}
	if mean(all) > 0 {
		t.Errorf("the mean of Σ(f̂−f⋆)² is over that of 2(σ+1)·log|F| by %v", mean(all))
	}
	if mean(slack) < 0 {
		t.Errorf("the mean regret is above the bound by %v", -mean(slack))
	}
	for i, x := range dropped {
		if x <= 1e-9 {
			t.Errorf("without term %d Lemma 1 is never broken: the test does not see it", i)
		}
	}
}

// TestAnyDelay holds theorem 1 for η that follows what is outstanding, in both orders, delays that look at losses
// included: ratios on every path, rounds decided before η had followed, and in the mean the sum and the regret.
func TestAnyDelay(t *testing.T) {
	seeds, rounds := 50, 200
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, rounds = 1000, 400
	}
	sum, most, slack := 0.0, 0.0, 0.0
	for seed := range seeds {
		e := overSigmoids(uint64(seed))
		adversaries[seed%len(adversaries)](e)
		fifo := seed%2 == 0
		d := kept(e.class, oracle.HedgeOptions{Outstanding: true}, !fifo)
		eta := []float64{.5} // at the decision that is next
		rate := func() float64 { v, _ := d.Oracle().(*oracle.Hedge).Rate(); return v }
		p := &potentials{t: t, e: e, d: d, rng: rand.New(rand.NewPCG(uint64(seed), 7)),
			eta: func() float64 { return eta[0] }}
		e.play(d, rounds, fifo, func(all, missing []*round) {
			p.look(all, missing)
			eta[0] = rate()
		})
		regret := 0.0
		for _, r := range p.byN {
			regret += r.regret
		}
		c, behind := d.Certificate(), 0.0
		for s := 4.0; s <= 1/rate(); s *= 2 {
			behind += s + 1
		}
		late := 0.0 // of those that were not learned η knows nothing
		for _, r := range p.rounds {
			if r.N == 0 {
				late++
			}
		}
		if p.behind > behind+late {
			t.Errorf("seed %d: %v rounds were decided with ησ > 1, at most %v + %v are charged", seed, p.behind,
				behind, late)
		}
		sum, most = sum+p.mine, most+1.6*math.E*math.Log(worldSize)/rate()
		slack += c.AnyDelay() - regret
	}
	t.Logf("Σ E_q(f−f⋆)² %.1f of at most %.0f; bound − regret %.0f", sum/float64(seeds), most/float64(seeds),
		slack/float64(seeds))
	if sum > most || slack < 0 {
		t.Errorf("sums %v of at most %v, bound − regret %v", sum, most, slack)
	}
}

// TestAdditiveByHand pins the bound where delays are constant: T = 20,000, K = 10, |F| = 100, d = 50, and γ the best
// fixed one for θ = 1 (theorem 3: 3,438 with the best θ).
func TestAdditiveByHand(t *testing.T) {
	p := learner.Potential{Eta: .5, Scale: math.Log(100)}
	if _, at := p.Additive(1, func(float64) float64 { return 0 }, func(w int64) float64 {
		return 100 * float64(1-w)
	}); at != (learner.Free{Theta: 6, Late: 1}) {
		t.Errorf("where nothing grows with θ the bound is the least at %+v", at)
	}
	prompt := learner.Certificate{Barrier: 10, MaxGamma: 400, Potential: p}
	late := prompt // three rounds by one each: less than it costs to have all wait for one
	late.MaxSigma, late.SumSigma, late.SumSqSig = 1, 3, 3
	want, _ := prompt.Additive()
	if got, at := late.Additive(); got != want+3 || at.Late != 0 {
		t.Errorf("three late rounds: %v at %+v, and %v without", got, at, want)
	}
	// The least over θ = .1, .2, …, 6 and W = 0, 1, 1, 2, 3, 5, 7, 10, …, computed apart.
	for _, x := range []struct {
		c     learner.Certificate
		bound float64
		at    learner.Free
	}{
		{learner.Certificate{MaxSigma: 1000, SumSigma: 900, SumSqSig: 9e5}, 182.28654142554026, learner.Free{2.8, 10}},
		{learner.Certificate{MaxSigma: 1000, SumSigma: 9e4, SumSqSig: 9e4}, 307.2636263657296, learner.Free{3.7, 30}},
		{learner.Certificate{}, 19.72360123958343, learner.Free{.1, 0}},
		{learner.Certificate{Linear: learner.Determinant{Lambda: .5, LogDet: 1e6}, Regret: 2, MaxSigma: 4}, 23,
			learner.Free{}},
	} {
		x.c.Barrier, x.c.MaxGamma, x.c.Skipped, x.c.Potential = 10, 4, 3, learner.Potential{Eta: .5, Scale: 2}
		if got, at := x.c.Additive(); math.Abs(got-x.bound) > 1e-9 || at != x.at {
			t.Errorf("%+v: %v at %+v, want %v at %+v", x.c, got, at, x.bound, x.at)
		}
	}
	if least, at := p.Additive(0, func(float64) float64 { return 5 }, func(int64) float64 { return 0 }); least != 5 ||
		at.Theta != .1 {
		t.Errorf("where θ is nothing it is %v, the bound %v", at.Theta, least)
	}
	c := learner.Certificate{Rounds: 20000, Learned: 20000, MaxSigma: 50, SumSigma: 50 * 20000, SumSqSig: 2500 * 20000,
		Potential: p}
	c.MaxGamma = 2 * math.Sqrt(9*20000/(math.Exp(.5)*p.Sum()))
	c.Barrier = 9 * 20000 / c.MaxGamma
	lead := c.MaxGamma / 4 * math.Exp(.5) * p.Sum()
	one := c.Barrier + lead + 2*50*math.Log(100)/(1-math.Exp(-.375))
	least := c.Barrier + .99*lead*math.Exp(-.5) + 2*50*math.Log(100) // no θ does with less
	if got, at := c.Additive(); got > one || got < .99*3438 || got < least || at.Late != 50 {
		t.Errorf("%v at %+v, at θ = 1 %v", got, at, one)
	}
	c.MaxSigma, c.SumSigma, c.SumSqSig, c.Skipped = 1000, 1000*20, 1000*1000*20, 7
	got, at := c.Additive() // of twenty rounds late by a thousand Σσ alone is known: 5.1·√(D·log|F|)
	if at.Late >= 1000 || got > c.Barrier+lead+7+5.1*math.Sqrt(c.SumSigma*p.Scale)+30 {
		t.Errorf("a few late ones: %v at %+v", got, at)
	}
	// Theorem 1 with the fixed η: e^{η·σ}·R_η; with one that has followed to 1/8: 1.6e·8·log|F|, and 5 + 9 rounds.
	c.MaxSigma = 3
	if got, want := c.AnyDelay(), c.Barrier+c.MaxGamma/4*math.Exp(1.5)*p.Sum()+7; math.Abs(got-want) > 1e-9 {
		t.Errorf("any delays: %v, want %v", got, want)
	}
	c.Slowed, c.Potential.Eta = true, .125
	if got, want := c.AnyDelay(), c.Barrier+c.MaxGamma/4*1.6*math.E*8*p.Scale+14+7; math.Abs(got-want) > 1e-9 {
		t.Errorf("η outstanding: %v, want %v", got, want)
	}
	if got, _ := c.Additive(); !math.IsInf(got, 1) {
		t.Errorf("η outstanding has the additive bound %v", got)
	}
	c.Potential, c.Slowed = learner.Potential{}, false
	if got, _ := c.Additive(); !math.IsInf(got, 1) || !math.IsInf(c.AnyDelay(), 1) {
		t.Errorf("an oracle without a potential has the bounds %v and %v", got, c.AnyDelay())
	}
}
