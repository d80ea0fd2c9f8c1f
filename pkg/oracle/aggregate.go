package oracle

import (
	"errors"
	"fmt"
)

// Constants of [Aggregate] (docs/algorithms.md, section 7).
const (
	DefaultFourier = 128   // random features
	aggregateRho   = 0.998 // what forgets, forgets half in 346 examples of its action
	aggregateShare = 0.001 // α of fixed share; the most that a steered one is
	stillShare     = 0.001 // the least that a steered one is, of that
	mostMembers    = 3     // cores over z and φ
	wideMember     = 3     // what comes behind them: the diagonal member, where there are terms

	optimismColumns = 16   // up to so many columns optimism is whole
	duelEta         = 2    // how fast the duel of cores 1 and 2 turns,
	duelShare       = 1e-6 // and how far it goes: seven of loss more turn it over from there
)

// AggregateOptions are the parameters of [NewAggregate].
type AggregateOptions struct {
	Columns     int     // d that is expected, the constant included; 0: not known
	Beta        float64 // optimism in [0,1], or ByWhatComes; see AutoBeta
	Fourier     int     // random Fourier features, or ByWhatComes; 0: none, two members; see AutoFourier
	Seed        uint64  // of the random features
	Steered     bool    // the duel steers the share, too
	MaxFeatures int     // columns beside the constant; 0 means 256
	MaxActions  int     // actions learned; 0 means as many as fit in 1 GiB, as in LinearOptions
	Schema      []FeatureSpec
	Version     int // of what is computed; 0 means 1; see Newest
	Places      int // of terms; with any there is one more member, a [Diagonal]
}

// AutoFourier returns the number of random features for k actions and d columns, the constant included: 128 where
// k·(d+128)² ≤ 1e6, so that an update costs little and the matrices of k actions fit a cache, else 0.
func AutoFourier(k, d int) int {
	n := float64(d + DefaultFourier)
	if float64(k)*n*n <= 1e6 {
		return DefaultFourier
	}
	return 0
}

// AggregateBytes returns the memory of the matrices of k actions with d columns, the constant included, m random
// features, and places of terms, when all of them are learned.
func AggregateBytes(k, d, m, places int) float64 {
	one := func(d int) float64 { return LinearBytes(1, d) + float64(16*float64(d)) }
	n := LinearBytes(1, d) + one(d)
	if m > 0 {
		n += one(d + m)
	}
	if places > 0 {
		n += DiagonalBytes(1, d+places)
	}
	return float64(k) * n
}

// Aggregate mixes three online ridge regressions an action by Hedge with fixed share
// (docs/algorithms.md, section 7), because none of them is best everywhere:
//
//	core 1: z, ρ = 1;   core 2: z, ρ = .998;   core 3: φ = (random Fourier features of z, z), ρ = 1 − .002·(1−r)
//	u(a) = zᵀP¹_a z,  f_i(a) = clip(w_{i,a}·φ_i / (1 + β_d·u(a)), 0, 1),  f̂ = Σ q_i f_i
//	learn: q_i ∝ q_i·exp(−½(f_i − y)²), q ← (1−α)q + α/N; then the cores of the action
//
// All members share the optimism of core 1 and one q serves all actions. Features, columns and actions are those of
// [Linear], which core 1 is. Each core has λ = max(1, D/20) with its own D, where the number of columns is known.
//
// β_d = β·min(1, 16/d): Σ_t u_t grows like d·log n, and with it what optimism costs
// until every action has been tried along every column; wide data cannot pay that.
//
// r is the weight of core 1 in a duel with core 2 under a Hedge of its own: two cores that differ in forgetting only
// tell for nothing whether the world stands still. If it does, r is near 1 and core 3 goes on improving; if not, core 3
// forgets as core 2 does. What is proved of q holds whatever the members do.
//
// A share of α keeps some weight on core 2 for ever, which goes on erring where the world stands still. Steered, the
// share is α_t = α·max(1 − r, 1/1000): it all but ends there, and is α again as soon as the world moves.
//
// While z is the constant alone, core 3 is a copy of core 1; without random features
// there are cores 1 and 2 only. Where there are terms one more member is [Diagonal] over z and
// them, which the others do not see; u is then that of this member.
type Aggregate struct {
	lin      Linear // core 1, with everything that the members share
	o        AggregateOptions
	lambda   [mostMembers]float64
	fourier  fourier
	members  int          // cores: 2 or 3
	fadings  []fadingPair // by action of lin
	wide     diagonals
	q        [wideMember + 1]float64
	lost     [wideMember + 1]float64 // Σ (f_i − y)²
	lostMean float64                 // Σ (f̂ − y)²
	duel     float64                 // r

	phi        []float64 // scratch: φ of z
	terms, own []Term    // scratch: of the context and of an action at hand
	doubt      float64   // scratch: u of the diagonal member
	scratch    fadingScratch
}

// fadingPair are cores 2 and 3 of one action.
type fadingPair struct{ plain, random fading }

var _ Regressor = (*Aggregate)(nil)

// NewAggregate returns an oracle that knows nothing.
func NewAggregate(o AggregateOptions) (*Aggregate, error) {
	if o.MaxFeatures == 0 {
		o.MaxFeatures = DefaultMaxFeatures
	}
	switch {
	case o.Columns < 0 || o.Columns > 1<<16+1:
		return nil, fmt.Errorf("auto: columns is %d: it must be in [0, 65537]", o.Columns)
	case (o.Fourier < 0 || o.Fourier > MaxFourier) && (o.Fourier != ByWhatComes || o.Version < 2):
		return nil, fmt.Errorf("auto: fourier is %d: it must be in [0, 4096]", o.Fourier)
	case o.MaxActions < 0:
		return nil, errors.New("auto: max actions is negative")
	case o.Places < 0 || o.Places > MaxPlaces:
		return nil, fmt.Errorf("auto: %d places: it must be in [0, %d]", o.Places, MaxPlaces)
	}
	random := o.Fourier
	if random == ByWhatComes {
		random = DefaultFourier
	}
	d := max(o.Columns, 1)
	a := &Aggregate{o: o, fourier: newFourier(random, o.Seed), members: 2, duel: 0.5,
		wide: diagonals{places: o.Places, lambda: DiagonalLambda}}
	a.lambda = [...]float64{AutoLambda(d), AutoLambda(d), AutoLambda(d + random)}
	lo := LinearOptions{Beta: o.Beta, Lambda: a.lambda[0], MaxFeatures: o.MaxFeatures, MaxActions: o.MaxActions,
		Schema: o.Schema, Version: o.Version}
	if o.Version > 1 && o.Columns == 0 {
		lo.Lambda = ByWhatComes
	}
	var err error
	if lo.MaxActions, err = mostActions("auto", &lo, func(k int) float64 {
		return AggregateBytes(k, o.MaxFeatures+1, o.Fourier, o.Places)
	}); err != nil {
		return nil, err
	}
	lin, err := NewLinear(lo)
	if err != nil {
		return nil, err
	}
	a.lin = *lin
	a.lin.aggregated, a.lin.o.Fourier, a.lin.places = true, o.Fourier, o.Places // for its size alone
	if random > 0 {
		a.members = 3
	}
	for i := range a.q {
		if a.has(i) {
			a.q[i] = 1 / float64(a.count())
		}
	}
	return a, nil
}

// has reports whether there is a member.
func (o *Aggregate) has(member int) bool {
	return member < o.members || member == wideMember && o.wide.places > 0
}

// count returns the number of members.
func (o *Aggregate) count() int {
	if o.wide.places > 0 {
		return o.members + 1
	}
	return o.members
}

// Predict implements [Regressor]. Actions that were never learned are predicted as by [Linear.Predict].
func (o *Aggregate) Predict(dst []float64, x *Input) {
	l := &o.lin
	l.fill(x)
	o.terms = x.Terms
	by := l.prepare()
	o.project()
	if by == shared && o.wide.places == 0 && len(l.z) > 1 && l.predictTogether(dst, x.Actions, o) {
		return
	}
	moved := false // phi is not that of the context
	position := len(x.Features)
	for i := range dst[:len(x.Actions)] {
		a := &x.Actions[i]
		n := l.action(i, a.Name)
		o.own = x.own(i)
		switch {
		case n < 0:
			dst[i] = l.stranger(a.Name)
		case len(a.Features) == 0:
			if moved {
				o.project()
				moved = false
			}
			dst[i] = o.predict(n, by)
		default:
			l.fillAction(position, a)
			o.project()
			moved = true
			dst[i] = o.predict(n, l.prepareOne())
			l.unfillAction()
		}
		position += len(a.Features)
		if len(a.Features) > 0 && by == sparse {
			by = l.prepareOne() // the list of columns is the context's again
		}
	}
}

// project sets phi from z.
func (o *Aggregate) project() {
	z, m := o.lin.z, len(o.fourier.phase)
	if m == 0 || len(z) == 1 {
		return
	}
	o.phi = resize(o.phi, m+len(z))
	o.fourier.fill(o.phi[:m], z, max(len(z), o.o.Columns))
	copy(o.phi[m:], z)
}

// predict returns f̂ of an action at z.
func (o *Aggregate) predict(n int32, by kernel) float64 {
	m := o.means(n, by)
	u := 0.0
	if o.lin.beta > 0 && max(m[0], m[1], m[2], m[3]) > 0 {
		u = o.uncertainty(n, by)
	}
	return o.mixed(m[:], 1+float64(o.optimism()*u))
}

// mixed returns f̂ for the w·φ of the members, each divided by c; q is 0 of one that is not there.
func (o *Aggregate) mixed(m []float64, c float64) float64 {
	s := 0.0
	for i, v := range m {
		s += float64(o.q[i] * clip01(v/c))
	}
	return clip01(s)
}

// whole reports whether all cores of an action have all columns.
func (o *Aggregate) whole(n int32) bool {
	f := &o.fadings[n]
	return o.lin.whole(n) && len(f.plain.w) == len(o.lin.z) &&
		(o.members < mostMembers || len(f.random.w) == len(o.phi))
}

// predictFour sets dst at the places of four actions.
func (o *Aggregate) predictFour(dst []float64, f *four) {
	var m [mostMembers][4]float64
	var u [4]float64
	var plain, random [4][]float64
	for i, n := range f.of {
		plain[i], random[i] = o.fadings[n].plain.w, o.fadings[n].random.w
	}
	o.lin.meansAndForms(&m[0], &u, f)
	dot4(&m[1], &plain, o.lin.z)
	if o.members == mostMembers {
		dot4(&m[2], &random, o.phi)
	}
	optimism := o.optimism()
	for i, at := range f.at[:f.n] {
		of := [mostMembers]float64{m[0][i], m[1][i], m[2][i]}
		if !(max(of[0], of[1], of[2]) > 0 && u[i] > 0) {
			u[i] = 0
		}
		dst[at] = o.mixed(of[:], 1+float64(optimism*u[i]))
	}
}

// uncertainty returns u of an action at z: where there are terms that of the diagonal member.
func (o *Aggregate) uncertainty(n int32, by kernel) float64 {
	if o.wide.places == 0 {
		return o.lin.form(&o.lin.actions[n].ridge, by)
	}
	return o.doubt
}

// optimism returns β_d.
func (o *Aggregate) optimism() float64 {
	return o.lin.beta * min(1, optimismColumns/float64(max(len(o.lin.z), o.o.Columns)))
}

// means returns w·φ of the members of an action.
func (o *Aggregate) means(n int32, by kernel) (m [wideMember + 1]float64) {
	m[0] = o.lin.mean(o.lin.actions[n].w, by)
	f := &o.fadings[n]
	m[1] = o.lin.mean(f.plain.w, by)
	switch {
	case o.members < 3:
	case len(o.lin.z) == 1:
		m[2] = m[0]
	default:
		m[2] = dot(f.random.w, o.phi)
	}
	if o.wide.places > 0 {
		m[wideMember], o.doubt = o.wide.at(n, o.lin.z, o.terms, o.own)
	}
	return m
}

// Update implements [Regressor].
func (o *Aggregate) Update(x *Input, action int, loss float64) {
	l := &o.lin
	n := l.enter(x, action, loss)
	o.size()
	o.fourier.grow(&l.features)
	if n < 0 {
		return
	}
	o.project()
	o.terms, o.own = x.Terms, x.own(action)
	if int(n) == len(o.fadings) {
		o.fadings = append(o.fadings, fadingPair{})
		o.begin(n)
	}
	m := o.means(n, l.prepareOne())
	if l.version > 1 {
		for from, to := l.changed(n, o.mix(m), loss); from < to; from++ {
			o.renew(from)
		}
	}
	_, u, ok := l.regress(&l.actions[n], loss)
	if !ok {
		u = 0
	}
	if o.wide.places > 0 {
		u = o.doubt
	}
	o.share(m, u, loss)
	whole := o.learnTerms(n, loss)
	if (!o.fade(n, loss) || !whole) && ok {
		l.resets++
		ok = false
	}
	if !ok {
		o.reset(n)
	}
}

// share moves q by what the members said: m without optimism, u of core 1.
func (o *Aggregate) share(m [wideMember + 1]float64, u, y float64) {
	c := 1 + float64(o.optimism()*u)
	var f [wideMember + 1]float64
	mean, sum := 0.0, 0.0
	for i := range o.q {
		if !o.has(i) {
			continue
		}
		f[i] = clip01(m[i] / c)
		mean += float64(o.q[i] * f[i])
		e := f[i] - y
		e = float64(e * e)
		o.lost[i] += e
		o.q[i] = float64(o.q[i] * Exp(-0.5*e))
		sum += o.q[i]
	}
	e := clip01(mean) - y
	o.lostMean += float64(e * e)
	o.turn(f[0], f[1], y)
	alpha := aggregateShare
	if o.o.Steered {
		alpha = float64(aggregateShare * max(1-o.duel, stillShare))
	}
	part := alpha / float64(o.count())
	for i := range o.q {
		if !o.has(i) {
			continue
		}
		o.q[i] = float64((1-alpha)*(o.q[i]/sum)) + part
	}
}

// turn moves the duel.
func (o *Aggregate) turn(stays, forgets, y float64) {
	a, b := stays-y, forgets-y
	p := float64(o.duel * Exp(-duelEta*float64(a*a)))
	q := float64((1 - o.duel) * Exp(-duelEta*float64(b*b)))
	o.duel = float64((1-duelShare)*(p/(p+q))) + duelShare/2
}

// fade feeds (z, y) to cores 2 and 3 of an action; it reports false if one broke.
func (o *Aggregate) fade(n int32, y float64) bool {
	f, z := &o.fadings[n], o.lin.z
	f.plain.grow(len(z), o.lambda[1])
	ok := f.plain.learn(z, y, aggregateRho, o.lambda[1], &o.scratch)
	if o.members < 3 || len(z) == 1 {
		return ok
	}
	f.random.grow(len(o.phi), o.lambda[2])
	rho := 1 - float64((1-aggregateRho)*(1-o.duel))
	return f.random.learn(o.phi, y, rho, o.lambda[2], &o.scratch) && ok
}

// learnTerms feeds (z, terms, y) to the diagonal member of an action; it reports false if that broke.
func (o *Aggregate) learnTerms(n int32, y float64) bool {
	if o.wide.places == 0 {
		return true
	}
	m, u := o.wide.at(n, o.lin.z, o.terms, o.own)
	return o.wide.learn(n, o.lin.z, o.terms, o.own, y-m, u)
}

// reset starts all cores of an action anew.
func (o *Aggregate) reset(n int32) {
	o.lin.actions[n].reset(o.lambda[0])
	o.fadings[n].plain.reset(o.lambda[1])
	o.fadings[n].random.reset(o.lambda[2])
	o.wide.reset(n)
}

// Regret returns R_n of core 1, as [Linear.Regret], and what mixing adds to it at
// most, [Aggregate.Overhead]: a measured figure and not a bound.
func (o *Aggregate) Regret() float64 { return o.lin.regret + o.Overhead() }

// Overhead bounds Σ(f̂−y)² − min_i Σ(f_i−y)² over the examples fed, whatever they
// are: 2 log N + 2n·log(1/(1−α+α/N)) for the N members at the start, and those i that are
// still there: when one goes its weight raises the others'. A steered share is at most α.
func (o *Aggregate) Overhead() float64 {
	n := float64(mostMembers)
	if o.o.Fourier == 0 {
		n--
	}
	if o.wide.places > 0 {
		n++
	}
	stay := 1 - aggregateShare + aggregateShare/n
	return float64(2*Log(n)) - float64(2*float64(o.lin.fed)*Log(stay))
}

// OrderFree implements [Regressor]: statistics, forgetting and shares depend on it.
func (o *Aggregate) OrderFree() bool { return false }

// Counts returns the current counts; a reset is one of all cores of an action.
func (o *Aggregate) Counts() LinearCounts { return o.lin.Counts() }

// AppendWeights appends the weights q of the members.
func (o *Aggregate) AppendWeights(dst []float64) []float64 { return o.each(dst, &o.q) }

// AppendLosses appends the square losses Σ(f_i−y)² of the members, and that of f̂.
func (o *Aggregate) AppendLosses(dst []float64) []float64 {
	return append(o.each(dst, &o.lost), o.lostMean)
}

// each appends what belongs to the members that there are.
func (o *Aggregate) each(dst []float64, of *[wideMember + 1]float64) []float64 {
	if dst = append(dst, of[:o.members]...); o.wide.places > 0 {
		dst = append(dst, of[wideMember])
	}
	return dst
}
