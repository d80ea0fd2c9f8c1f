package learner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hindsight/pkg/oracle"
)

// EXP4Options are the parameters of [NewEXP4].
type EXP4Options struct {
	Prior []float64 // w_1 up to a factor, one positive number a policy; nil: uniform
	Eta   float64   // fixed learning rate η > 0; 0: adaptive
	Plain bool      // plain importance weighting: the baseline, without the max
}

// EXP4Eta returns the paper's η = √(log N/(K·T + D)) for a known number of rounds T
// and sum of delays D (thm:-exp4-main); N ≥ 2, K·T + D > 0. The bound of the package
// comment is least at √(log N/(K·T/2 + D)): 2√((K·T/2 + D)·log N).
func EXP4Eta(policies, actions int, rounds, delays int64) float64 {
	n := float64(max(policies, 2))
	return math.Sqrt(oracle.Log(n) / (float64(float64(actions)*float64(rounds)) + float64(delays)))
}

// EXP4 is EXP4-DALE, EXP4 with delay-adapted loss estimators (paper, alg. delay-exp4), one feedback at a time. It plays
// the law Q that the policies' weights w give to the actions. When the loss L of a round s is learned, with Q_s as
// logged then and Q̃ the law of the weights of now for the context of s,
//
//	ĉ_i = L·1[π_i(x_s) = a_s] / (max(Q_s(a_s), Q̃(a_s)) + ε),   Ĉ_i += ĉ_i,   w_i ∝ w_1i·exp(−η·Ĉ_i).
//
// With a fixed η, ε = 0. Adaptive, η² = log(1/min w_1)/Σ(K_s + σ_s) over the rounds s learned, σ_s = N − 1 −
// LearnedThrough, and ε = η/2: without it a rare draw that is learned late throws the weights about (implicit
// exploration, Neu 2015; the rate is that of Zimmert & Seldin 2020, arXiv 1910.06054). Plain leaves Q̃ out of the max.
//
// It needs no FIFO order and no realizability. The package comment has what is proved of it.
type EXP4 struct {
	policies Policies
	eta      float64 // 0: adaptive
	plain    bool
	logPrior []float64 // maximum 0; nil: uniform
	breadth  float64   // log(1/min w_1), at least log 2

	learned int64
	spent   float64   // Σ K_s + σ_s over rounds learned
	losses  []float64 // Ĉ
	tally   policyTally

	w      []float64 // derived from losses and η
	advice []int32   // scratch, by policy
	lanes  []float64 // scratch: four sums an action
	q      []float64 // scratch, by action
}

var _ Learner = (*EXP4)(nil)

// NewEXP4 returns a learner over policies.
func NewEXP4(policies Policies, o EXP4Options) (*EXP4, error) {
	n := policies.Size()
	switch {
	case n < 1:
		return nil, errors.New("exp4: there are no policies")
	case o.Eta != 0 && !(o.Eta > 0 && o.Eta <= 1e6):
		return nil, fmt.Errorf("exp4: eta is %v: give a positive number, or 0 for the adaptive one", o.Eta)
	}
	e := &EXP4{policies: policies, eta: o.Eta, plain: o.Plain, losses: make([]float64, n), w: make([]float64, n),
		advice: make([]int32, n)}
	var err error
	if e.logPrior, e.breadth, err = oracle.LogPrior(n, o.Prior); err != nil {
		return nil, fmt.Errorf("exp4: %w", err)
	}
	if o.Prior == nil || slices.Min(o.Prior) == slices.Max(o.Prior) {
		e.logPrior, e.breadth = nil, oracle.Log(math.Max(float64(n), 2)) // uniform: without rounding
	}
	e.weigh()
	return e, nil
}

// Policies returns the policies.
func (e *EXP4) Policies() Policies { return e.policies }

// AppendWeights appends the N normalised weights.
func (e *EXP4) AppendWeights(dst []float64) []float64 { return append(dst, e.w...) }

// AppendLosses appends the N estimated losses Ĉ.
func (e *EXP4) AppendLosses(dst []float64) []float64 { return append(dst, e.losses...) }

// Eta returns the learning rate at work; of the adaptive form before it learned anything, +Inf.
func (e *EXP4) Eta() float64 {
	if e.eta > 0 {
		return e.eta
	}
	return math.Sqrt(e.breadth / e.spent)
}

// Propensities implements [Learner]; there is no γ.
func (e *EXP4) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	e.vote(x)
	return appendLaw(dst, e.q), 0
}

// vote sets advice to what the policies play in x, and q to the law of the weights of now. Four running sums an action,
// of every fourth policy each, do not wait for each other.
func (e *EXP4) vote(x *oracle.Input) {
	k := len(x.Actions)
	e.q, e.lanes = resize(e.q, k), resize(e.lanes, 4*k)
	e.policies.Advise(e.advice, x)
	clear(e.lanes)
	l0, l1, l2, l3 := e.lanes[:k], e.lanes[k:2*k], e.lanes[2*k:3*k], e.lanes[3*k:]
	w, advice := e.w, e.advice[:len(e.w)]
	for ; len(w) >= 4 && len(advice) >= 4; w, advice = w[4:], advice[4:] {
		l0[advice[0]] += w[0]
		l1[advice[1]] += w[1]
		l2[advice[2]] += w[2]
		l3[advice[3]] += w[3]
	}
	for i, a := range advice {
		l0[a] += w[i]
	}
	for a := range e.q {
		e.q[a] = (l0[a] + l1[a]) + (l2[a] + l3[a])
	}
}

// Learn implements [Learner].
func (e *EXP4) Learn(r *Round) {
	if r.Borrowed {
		e.borrow(r)
		return
	}
	if !e.tally.counts.count(r) {
		return
	}
	k := len(r.Propensities)
	eta := e.rate(k)
	e.vote(r.Input)
	e.tally.add(e, r, eta)
	e.take(r, e.denominator(r.Propensities[r.Action], e.q[r.Action], eta), float64(k))
}

// rate returns η; in the first round, where nothing depends on it but ε, that of k actions.
func (e *EXP4) rate(k int) float64 {
	if eta := e.Eta(); !math.IsInf(eta, 1) {
		return eta
	}
	return math.Sqrt(e.breadth / float64(k))
}

// take charges the policies that play as r did with its loss over a divisor.
func (e *EXP4) take(r *Round, divisor, spent float64) {
	estimate, played := r.Loss/divisor, int32(r.Action)
	losses := e.losses[:len(e.advice)]
	for i, a := range e.advice {
		if a == played {
			losses[i] += estimate
		}
	}
	e.learned++
	e.spent += spent + float64(max(0, r.N-1-r.LearnedThrough))
	e.weigh()
}

// borrow learns of a round that another law Q played, with plain importance weights:
//
//	ĉ_i = L·1[π_i(x) = a] / (Q(a) + ε),  and Σ_a Q̃(a)/Q(a) stands for K in Σ(K_s + σ_s),
//
// which bounds the second moment Σ w_i·E ĉ_i² as K does where Q is its own. The max with Q̃ would favour what it plays
// already, for Q is not near Q̃ here. Where Q never plays some action that is eligible nothing can be learned: policies
// that play it would look as if they lost nothing.
func (e *EXP4) borrow(r *Round) {
	if r.Fate != Observed && r.Fate != Imputed || slices.Contains(r.Propensities, 0) {
		return
	}
	eta := e.rate(len(r.Propensities))
	e.vote(r.Input)
	q := r.Propensities[r.Action]
	if e.eta == 0 {
		q += eta / 2
	}
	for a, p := range r.Propensities {
		e.spent += e.q[a] / p
	}
	e.take(r, q, 0)
}

// denominator returns what the loss of an action is divided by that was played with
// probability then and would be with probability now.
func (e *EXP4) denominator(then, now, eta float64) float64 {
	d := then
	if !e.plain {
		d = math.Max(then, now)
	}
	if e.eta == 0 {
		d += eta / 2
	}
	return math.Max(d, 0x1p-53) // no less is ever drawn
}

// weigh derives the weights.
func (e *EXP4) weigh() {
	eta := 0.0 // before anything is learned only the prior counts
	if e.learned > 0 {
		eta = e.Eta()
	}
	for i, c := range e.losses {
		e.w[i] = -float64(eta * c)
		if e.logPrior != nil {
			e.w[i] += e.logPrior[i]
		}
	}
	oracle.Shares(e.w, e.w)
}

// Learned implements [Learner].
func (e *EXP4) Learned() int64 { return e.learned }

// NeedsFIFO implements [Learner]. In FIFO order the guarantee holds for delays that
// look at the losses, in the order of arrival for those that do not.
func (e *EXP4) NeedsFIFO() bool { return false }

// AppendBinary implements [Learner].
func (e *EXP4) AppendBinary(b []byte) ([]byte, error) {
	c := oracle.NewWriter(b)
	e.code(&c)
	return c.Bytes(), nil
}

// UnmarshalBinary implements [Learner].
func (e *EXP4) UnmarshalBinary(b []byte) error {
	c, n := newReader(b), *e
	n.losses, n.w = make([]float64, len(e.losses)), make([]float64, len(e.w))
	n.code(&c)
	if err := c.Err(); err != nil {
		return err
	}
	n.weigh()
	*e = n
	return nil
}

func (e *EXP4) code(c *oracle.Coder) {
	t := &e.tally
	codeHeader(c, kindEXP4, &e.learned)
	t.counts.code(c)
	c.Float(0, &t.loss, &t.measured, &t.apriori, &t.actions)
	c.Same("exp4: other parameters", e.eta, e.breadth, e.plain)
	c.Float(0, &e.spent)
	if !c.Same("exp4: another number of policies", oracle.Word(len(e.losses))) {
		return
	}
	c.FloatsFrom(0, e.losses)
	for _, v := range e.logPrior {
		c.Same("exp4: other prior", v)
	}
	c.Must((e.spent > 0) == (e.learned > 0), "exp4: sums that no run leaves")
}
