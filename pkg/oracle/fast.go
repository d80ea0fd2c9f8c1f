package oracle

// Amender is a regressor that can learn that an example which it was fed had another loss.
type Amender interface {
	Regressor
	// Mark returns what [Amender.Amend] must know of the example that was fed last.
	Mark(x *Input, action int) Fed
	// Amend makes the loss of an example that was fed another one: to, where it was from. What it teaches of its input
	// stays as it is.
	Amend(x *Input, action int, was Fed, from, to float64)
	// Follow takes over from a regressor of the same parameters, which is fed final losses alone, what cannot be
	// amended.
	Follow(final Regressor)
}

// Fed says how an example was fed.
type Fed struct {
	At int64     // examples of its regression till then
	Z  []float64 // its columns, while statistics still move; nil: they are as they would be now
}

// settled is how many examples settle the statistics of columns, all but.
const settled = 4096

// mark is [Amender.Mark] for an example whose regression has been fed so many.
func (f *features) mark(at, fed int64) Fed {
	if fed > settled {
		return Fed{At: at}
	}
	return Fed{at, append([]float64(nil), f.z...)}
}

// refill sets z to an example as it was fed.
func (f *features) refill(x *Input, action int, was Fed) {
	if was.Z != nil {
		clear(f.z[copy(f.z, was.Z):])
		return
	}
	f.fill(x)
	f.fillAction(before(x, action), &x.Actions[action])
}

// before returns how many features stand before those of an action.
func before(x *Input, action int) int {
	n := len(x.Features)
	for i := range action {
		n += len(x.Actions[i].Features)
	}
	return n
}

// Mark implements [Amender].
func (o *Linear) Mark(x *Input, action int) Fed {
	n, ok := o.byAction[x.Actions[action].Name]
	if !ok {
		return Fed{}
	}
	return o.mark(o.actions[n].watch.n, o.fed)
}

// again sets z to an example that was fed and returns the index of its action; -1: it is not in the regression, which
// began anew since then.
func (o *Linear) again(x *Input, action int, was Fed) int32 {
	n, ok := o.byAction[x.Actions[action].Name]
	if !ok || o.actions[n].watch.n < was.At {
		return -1
	}
	o.refill(x, action, was)
	return n
}

// Amend implements [Amender]. With A = λI + Σ zzᵀ, P = A⁻¹ and w = P·Σ zy a change of y moves w by Pz·Δ, where P is
// that of all examples.
func (o *Linear) Amend(x *Input, action int, was Fed, from, to float64) {
	if n := o.again(x, action, was); n >= 0 {
		o.prepareOne()
		o.amend(n, faded(o.forget, o.actions[n].watch.n-was.At)*(to-from))
	}
}

func (o *Linear) amend(n int32, by float64) {
	r, z := &o.actions[n].ridge, o.point()
	r.grow(len(z), o.lambda)
	if len(o.k) < len(z) {
		o.k = make([]float64, len(z)+len(z)/2)
	}
	packedMul(o.k[:len(z)], r.p, z)
	axpy(r.w, by, o.k[:len(z)])
}

// faded returns ρ^age; 1 if ρ is 0, which is no forgetting.
func faded(rho float64, age int64) float64 {
	if rho == 0 {
		return 1
	}
	return Exp(float64(age) * Log(rho))
}

// Mark implements [Amender].
func (o *Aggregate) Mark(x *Input, action int) Fed { return o.lin.Mark(x, action) }

// Amend implements [Amender]: each core as [Linear.Amend], by as much as it still counts the example.
func (o *Aggregate) Amend(x *Input, action int, was Fed, from, to float64) {
	l := &o.lin
	n := l.again(x, action, was)
	if n < 0 || int(n) >= len(o.fadings) {
		return
	}
	age, by, f := l.actions[n].watch.n-was.At, to-from, &o.fadings[n]
	l.amend(n, by)
	f.plain.grow(len(l.z), o.lambda[1])
	f.plain.amend(l.z, faded(aggregateRho, age)*by, &o.scratch)
	if o.members == mostMembers && len(l.z) > 1 {
		o.project()
		f.random.grow(len(o.phi), o.lambda[2])
		f.random.amend(o.phi, faded(1-float64((1-aggregateRho)*(1-o.duel)), age)*by, &o.scratch)
	}
	o.wide.amend(n, l.z, x.Terms, x.own(action), by)
}

// Follow implements [Amender]: the shares of the members, and the duel, are those of final losses. A fixed share
// cannot be amended.
func (o *Aggregate) Follow(final Regressor) {
	if f, ok := final.(*Aggregate); ok && f.members == o.members {
		o.q, o.lost, o.lostMean, o.duel = f.q, f.lost, f.lostMean, f.duel
	}
}

// amend moves w by P·z·by.
func (f *fading) amend(z []float64, by float64, sc *fadingScratch) {
	n := len(z)
	if len(sc.v) < n {
		sc.v, sc.q = make([]float64, n+n/2), make([]float64, n+n/2)
	}
	v, q := sc.v[:n], sc.q[:n]
	for i, x := range z {
		v[i] = f.s[i] * x
	}
	packedStep(q, f.p, f.a, f.k, v)
	f.a = 0 // the last step is in p
	for i, x := range q {
		f.w[i] += float64(by * float64(f.s[i]*x))
	}
}

// amend moves the weights by a change of a loss as if it was the error of an example that was met again, but for the
// variances.
func (d *diagonals) amend(n int32, z []float64, terms, own []Term, by float64) {
	if int(n) >= len(d.actions) {
		return
	}
	_, u := d.at(n, z, terms, own)
	a := &d.actions[n]
	by /= 1 + u
	for i := range a.cols {
		a.cols[i].w += float64(float64(a.cols[i].v*z[i]) * by)
	}
	move(a.terms, terms, by)
	move(d.own, own, by)
}

func move(weights []weight, terms []Term, by float64) {
	if weights == nil {
		return
	}
	for i := range terms {
		c := &weights[terms[i].Place]
		c.w += float64(float64(c.v*terms[i].Value) * by)
	}
}

// Mark implements [Amender].
func (o *Diagonal) Mark(*Input, int) Fed { return o.mark(o.all.n, o.fed) }

// Amend implements [Amender], roughly: a weight forgets what others did when its example was fed.
func (o *Diagonal) Amend(x *Input, action int, was Fed, from, to float64) {
	n, ok := o.byAction[x.Actions[action].Name]
	if !ok || o.all.n < was.At {
		return
	}
	o.refill(x, action, was)
	o.wide.amend(n, o.z, x.Terms, x.own(action), to-from)
}

// Mark implements [Amender].
func (h *Hedge) Mark(*Input, int) Fed { return Fed{} }

// Amend implements [Amender]: a cumulative loss is a sum, and so is the logarithm of a weight.
func (h *Hedge) Amend(x *Input, action int, _ Fed, from, to float64) {
	h.class.Eval(h.f, x, action)
	for i, v := range h.f {
		a, b := v-from, v-to
		e := float64(b*b) - float64(a*a)
		h.loss[i] += e
		h.logWeight[i] -= float64(h.eta * e)
	}
	h.normalise()
}

// Follow implements [Amender]: η follows what is outstanding of final losses.
func (h *Hedge) Follow(final Regressor) {
	if f, ok := final.(*Hedge); ok {
		h.setEta(f.eta)
	}
}
