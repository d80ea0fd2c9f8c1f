package learner

import (
	"errors"
	"math"

	"hindsight/pkg/oracle"
)

// DAFA is the paper's DA-FA (alg. DAFA): it plays the law of [Solve] on the predictions of the newest oracle output,
// with γ from a [Schedule], and feeds the oracle in the order of the feedback log.
//
// γ counts rounds learned, never decisions: deciding changes nothing. It counts those that the learner's own law was
// drawn for ([Certificate.Learned]), not those that it learned of another's: they teach the oracle, but they are no
// step of the exploration that γ measures. With them counted a learner that has watched one action for long would
// explore the others as little as if it had tried them. The theorem holds for the own rounds: the oracle's regret over
// all rounds bounds Σ(f̂−f⋆)² over any part of them.
type DAFA struct {
	reg     oracle.Regressor
	s       Schedule
	learned int64         // with those of other laws, which cert has not
	cert    Certificate   // without Regret, Bounded, Beta and Plausible: those are kept elsewhere
	models  *Models       // nil: none are kept
	ordered *inOrder      // nil: the oracle learns in the order of decisions, and models with it
	hedge   *oracle.Hedge // reg, where it shares its evaluations with models
	heads   *oracle.Heads // reg, where outcomes have names
	budgets budgets
	fast    *fast // what decides, where provisional losses are learned; nil: what is above

	lose, delta float64 // of [DAFA.Conserve]; lose 0: nothing is conserved

	fhat []float64 // scratch
	p    []float64 // scratch

	eliminate bool
	best      []int32   // scratch: the actions left
	few       []float64 // scratch: their predictions and law
}

var _ Certified = (*DAFA)(nil)

// Proven is an [oracle.Regressor] that knows what is proved of it.
type Proven interface {
	// Proved reports whether Regret is a theorem's bound and Beta a stability constant.
	Proved() bool
	// Beta bounds Σ E‖f̂_t − f̂_{t+1}‖²_∞ (paper, assum:stability); 0: none is proved.
	Beta() float64
}

func isProved(reg oracle.Regressor) bool {
	p, ok := reg.(Proven)
	return ok && p.Proved()
}

// NewDAFA returns a learner that owns reg.
func NewDAFA(reg oracle.Regressor, s Schedule) *DAFA {
	d := &DAFA{reg: reg, s: s}
	if h, ok := reg.(*oracle.Heads); ok {
		d.heads, d.budgets.known = h, make([]Outcome, len(h.Heads()))
	}
	return d
}

// Watch makes a learner that has learned nothing keep the models of its oracle's class, which it then owns. The oracle
// must be a [oracle.Hedge] over the same class, fed in the order of decisions.
func (d *DAFA) Watch(m *Models) error {
	h, ok := d.reg.(*oracle.Hedge)
	if !ok || d.learned > 0 || h.Size() != m.size {
		return errors.New("models are kept for a hedge oracle over the same class, from its first round on")
	}
	d.hedge, d.models = h, m
	return nil
}

// WatchArrivals is Watch for an oracle that is fed in the order of arrival, in a system of one
// partition: rounds that come before their turn wait for it in the learner's state.
func (d *DAFA) WatchArrivals(m *Models) error {
	if err := d.Watch(m); err != nil {
		return err
	}
	d.hedge, d.ordered = nil, &inOrder{}
	return nil
}

// BeginAfter tells a learner that feedback up to number through was there before its epoch
// began. What it learns of that again, in the order of arrival, is charged 1 a round.
func (d *DAFA) BeginAfter(through int64) {
	if d.ordered != nil {
		d.ordered.through = through
	}
}

// Models returns the models that are kept, to look at; nil: none are.
func (d *DAFA) Models() *Models { return d.models }

// Oracle returns the oracle, to look at.
func (d *DAFA) Oracle() oracle.Regressor { return d.reg }

// Propensities implements [Learner]. With one action γ is that of K = 1 in the schedule, and means nothing.
func (d *DAFA) Propensities(dst []float64, x *oracle.Input) ([]float64, float64) {
	k := len(x.Actions)
	d.fhat, d.p = resize(d.fhat, k), resize(d.p, k)
	gamma := d.gamma(k)
	d.predict(d.fhat, x, gamma)
	if d.eliminate {
		d.solveLeft(d.p, d.fhat, x, gamma)
	} else {
		Solve(d.p, d.fhat, gamma)
	}
	return appendLaw(dst, d.p), gamma
}

// gamma returns γ of a round with k actions that is decided now.
func (d *DAFA) gamma(k int) float64 {
	learned, reg := d.cert.Learned, d.reg
	if d.lose > 0 {
		learned = d.learned
	}
	if d.fast != nil {
		learned, reg = learned+d.fast.live, d.fast.reg
	}
	return clipGamma(d.s.Gamma(k, learned, reg.Regret()))
}

// predict sets dst to f̂, and what costs are charged beside it.
func (d *DAFA) predict(dst []float64, x *oracle.Input, gamma float64) {
	switch {
	case d.fast != nil:
		d.fast.reg.Predict(dst, x)
		return
	case len(d.budgets.of) == 0:
		d.reg.Predict(dst, x)
		return
	}
	d.heads.Begin(x)
	d.budgets.charge(dst, d.foresee(len(dst)), gamma)
}

// appendLaw appends Law(p) to dst.
func appendLaw(dst, p []float64) []float64 {
	n := len(dst)
	dst = append(dst, p...)
	Law(dst[n:], p)
	return dst
}

// resize returns a slice of length n that has s's memory if it is large enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}

// Learn implements [Learner].
func (d *DAFA) Learn(r *Round) {
	if d.fast != nil {
		d.fast.learn(d, r)
		return
	}
	d.learnFinal(r)
}

// learnFinal learns a feedback.
func (d *DAFA) learnFinal(r *Round) {
	if d.heads != nil {
		d.learnOutcomes(r)
		return
	}
	if r.Borrowed {
		d.borrow(r)
		return
	}
	switch reg := d.reg.(type) {
	case *oracle.Hedge:
		reg.Slow(d.outstanding(r))
	case *oracle.Frozen:
		reg.Met(r.N, r.LearnedThrough, r.Fate == Observed || r.Fate == Imputed)
	}
	learned := d.cert.count(r)
	together := d.hedge != nil && r.Fate == Observed // see observe
	switch {
	case d.models == nil, together:
	case d.ordered != nil:
		d.ordered.take(d.models, r)
	default:
		d.models.Add(r)
	}
	if !learned {
		return
	}
	d.cert.addLaw(r)
	d.learned++
	var fhat []float64
	// A round that was decided by the state of now has no drift, exactly.
	if r.LearnedThrough != r.N-1 || d.fast != nil {
		d.fhat = resize(d.fhat, len(r.Propensities))
		fhat = d.fhat
	}
	if together {
		d.observe(r, fhat)
		return
	}
	if fhat != nil {
		d.reg.Predict(fhat, r.Input)
		d.cert.Drift += drift(fhat, r.Propensities, r.Gamma)
	}
	d.reg.Update(r.Input, r.Action, r.Loss)
}

// outstanding returns how many rounds before r were outstanding when it was decided: in the order of
// arrival as decisions were made.
func (d *DAFA) outstanding(r *Round) int64 {
	if d.ordered != nil {
		return r.Decision - 1 - r.LearnedThrough
	}
	return r.N - 1 - r.LearnedThrough
}

// borrow learns what a round says that another law played: nothing of it is charged or counted as regret.
func (d *DAFA) borrow(r *Round) {
	switch {
	case d.models == nil:
	case d.ordered != nil:
		d.ordered.take(d.models, r)
	default:
		d.models.give(r)
	}
	if r.Fate != Observed && r.Fate != Imputed {
		return
	}
	if f, ok := d.reg.(*oracle.Frozen); ok {
		f.Met(r.N, r.LearnedThrough, false)
	}
	d.learned++
	d.reg.Update(r.Input, r.Action, r.Loss)
}

// observe learns a round together with the models; fhat is nil if it has no drift.
// What models evaluate anyhow the oracle need not evaluate again.
func (d *DAFA) observe(r *Round, fhat []float64) {
	shared := fhat
	if fhat != nil && !d.models.wide() {
		d.reg.Predict(fhat, r.Input)
		shared = nil
	}
	played := d.models.observe(r, d.hedge, shared)
	if fhat != nil {
		d.cert.Drift += drift(fhat, r.Propensities, r.Gamma)
	}
	d.hedge.UpdateValues(played, r.Loss)
}

// drift returns p·g − min g for g = f̂_t − f̂_{τ(t)+1}: the newer predictions are fhat, the older are recovered, up to
// a constant that cancels, from the logged law: 1/(γ·p(a)). At most 1 is charged, since a round's regret is at most 1.
func drift(fhat, law []float64, gamma float64) float64 {
	if !(gamma > 0) {
		return 0 // the round's barrier term is 1 already
	}
	mean, low := 0.0, math.Inf(1)
	for a, p := range law {
		if p == 0 {
			continue // eliminated
		}
		g := fhat[a] - 1/float64(gamma*math.Max(p, 0x1p-54))
		mean += float64(p * g)
		low = math.Min(low, g)
	}
	return math.Max(0, math.Min(mean-low, 1))
}

// Learned implements [Learner].
func (d *DAFA) Learned() int64 { return d.learned }

// NeedsFIFO implements [Learner]: with an order-free oracle the same guarantee
// holds for feedback in the order of arrival.
func (d *DAFA) NeedsFIFO() bool { return !d.reg.OrderFree() }

// Certificate implements [Certified].
func (d *DAFA) Certificate() Certificate {
	c := d.cert
	c.Regret = d.reg.Regret()
	if p, ok := d.reg.(Proven); ok && p.Proved() {
		c.Bounded, c.Beta = true, p.Beta()
	}
	switch reg := d.reg.(type) {
	case *oracle.Hedge:
		if !reg.Proved() {
			break
		}
		c.Potential.Eta, c.Potential.Scale = reg.Rate()
		if c.Slowed = reg.Slows(); c.Slowed {
			c.Regret = 1.6 * c.Potential.Scale / c.Potential.Eta
		}
	case *oracle.Frozen:
		c.Linear.Lambda, c.Linear.Square, c.Linear.LogDet, c.Linear.Bad = reg.Determinant()
	}
	if o, ok := d.reg.(interface{ Lost() float64 }); ok {
		c.Lost, c.Counted = o.Lost(), true
	}
	if d.models != nil {
		c.Plausible = d.models.Plausible()
	}
	c.Eliminates, c.Priced = d.eliminate, len(d.budgets.of) > 0
	return c
}

// AppendBinary implements [Learner].
func (d *DAFA) AppendBinary(b []byte) ([]byte, error) {
	if d.fast != nil {
		return d.appendEarly(b)
	}
	return d.appendFinal(b)
}

// appendFinal appends the state that learns feedback.
func (d *DAFA) appendFinal(b []byte) ([]byte, error) {
	c := oracle.NewWriter(b)
	if d.code(&c, d.kind()); !c.Must(true, "") {
		return nil, c.Err()
	}
	return d.reg.AppendBinary(c.Bytes())
}

// code is the state of a kind but for the oracle's, which ends it.
func (d *DAFA) code(c *oracle.Coder, kind byte) (unpriced bool) {
	codeHeader(c, kind, &d.learned)
	d.cert.code(c)
	if kind == kindNamed {
		unpriced = d.budgets.code(c)
	}
	if kind == kindOrdered {
		d.ordered.code(c)
	}
	if kind == kindOrdered || kind == kindWatched {
		d.models.code(c)
	}
	return unpriced
}

// kind returns the kind of its snapshots.
func (d *DAFA) kind() byte {
	switch {
	case d.heads != nil:
		return kindNamed
	case d.ordered != nil:
		return kindOrdered
	case d.models != nil:
		return kindWatched
	}
	return kindDAFA
}

// UnmarshalBinary implements [Learner]. A learner with models takes a snapshot without them, which an older program or
// model wrote: the rounds before it are charged 1 each, and the evidence begins behind it.
func (d *DAFA) UnmarshalBinary(b []byte) error {
	if d.fast != nil {
		return d.readEarly(b)
	}
	return d.readFinal(b)
}

func (d *DAFA) readFinal(b []byte) error {
	kind := kindDAFA
	if d.heads != nil || len(b) > 1 && b[1] != kindDAFA {
		kind = d.kind()
	}
	c, n := newReader(b), *d
	n.cert, n.budgets, n.ordered = Certificate{}, d.budgets.fresh(), d.ordered.fresh()
	if d.models != nil {
		var err error
		if n.models, err = d.models.fresh(); err != nil {
			return err
		}
	}
	unpriced := n.code(&c, kind)
	if !c.Must(true, "it is cut short") {
		return c.Err()
	}
	switch {
	case n.models == nil:
	case kind == kindDAFA:
		n.models.unknown, n.models.charged = n.cert.Rounds, n.cert.Rounds
	case n.ordered != nil:
		n.models.waiting = n.ordered.rounds()
	}
	if err := d.reg.UnmarshalBinary(c.Bytes()); err != nil {
		return err
	}
	if *d = n; unpriced {
		d.firstPrices()
	}
	return nil
}
