package oracle

import (
	"errors"
	"fmt"
	"math"
)

// Constants of [Diagonal].
const (
	DiagonalLambda = 10      // λ where none is given: 1 is noisier
	MaxPlaces      = 1 << 20 // of terms
)

// DiagonalOptions are the parameters of [NewDiagonal].
type DiagonalOptions struct {
	Places      int     // of terms, those of actions included
	Beta        float64 // optimism in [0,1]
	Lambda      float64 // regularisation > 0; 0 means DiagonalLambda
	MaxFeatures int     // columns beside the constant; 0 means 256
	MaxActions  int     // actions learned; 0 means as many as fit in 1 GiB
	Schema      []FeatureSpec
	Version     int // of what is computed; 0 means 1; see Newest
}

// DiagonalBytes returns the memory of the weights of k actions with n columns and places.
func DiagonalBytes(k, n int) float64 { return float64(k) * 16 * float64(n) }

// Diagonal is a Kalman filter with a diagonal covariance, one regression an action, for examples that
// are long and mostly 0: with x the columns of [Linear], the terms of the context, and those of the
// action itself, whose weights all actions share,
//
//	u = Σ v_i·x_i²,  f̂ = clip(w·x / (1 + β·u), 0, 1)
//	learn: e = y − w·x;  w_i += v_i·x_i·e/(1+u),  v_i ← v_i/(1 + v_i·x_i²)
//
// from w = 0, v = 1/λ: the shape of AROW (Crammer, Kulesza and Dredze 2009). It does not see what two columns have in
// common, and needs more examples than [Linear] where columns are few. A round takes as many steps as x has elements;
// a matrix of 4,096 columns would take 8 million.
type Diagonal struct {
	fitted
	o     DiagonalOptions
	wide  diagonals
	known index // names of actions
	beginning
}

var _ Regressor = (*Diagonal)(nil)

// NewDiagonal returns an oracle that knows nothing.
func NewDiagonal(o DiagonalOptions) (*Diagonal, error) {
	if o.Lambda == 0 {
		o.Lambda = DiagonalLambda
	}
	if o.MaxActions == 0 {
		o.MaxActions = math.MaxInt32
	}
	f, err := newFitted(&o.MaxFeatures, o.Beta, o.Lambda, false, o.Schema, o.Version)
	switch {
	case err != nil:
		return nil, fmt.Errorf("diagonal: %w", err)
	case o.Places < 0 || o.Places > MaxPlaces:
		return nil, fmt.Errorf("diagonal: %d places: it must be in [0, %d]", o.Places, MaxPlaces)
	case o.MaxActions < 0:
		return nil, errors.New("diagonal: max actions is negative")
	}
	return &Diagonal{fitted: f, o: o, wide: diagonals{places: o.Places, lambda: o.Lambda}}, nil
}

// full reports whether no further action can be learned.
func (o *Diagonal) full() bool {
	k := len(o.known.names)
	return k == o.o.MaxActions || DiagonalBytes(k+1, o.dim()+o.o.Places) > maxLinearBytes
}

// Predict implements [Regressor]. An action that was never learned is predicted from its own terms; once
// there is no room for it, the mean loss.
func (o *Diagonal) Predict(dst []float64, x *Input) {
	o.fill(x)
	position := len(x.Features)
	for i := range dst[:len(x.Actions)] {
		a := &x.Actions[i]
		n := int32(o.known.at(i, a.Name))
		o.fillAction(position, a)
		m, u := o.wide.at(n, o.z, x.Terms, x.own(i))
		o.unfillAction()
		position += len(a.Features)
		switch {
		case n >= 0:
		case o.full():
			m, u = o.sumLoss/float64(o.fed), 0
		default:
			m += o.about[a.Name]
		}
		if o.sober {
			u = 0
		}
		dst[i] = clip01(m / (1 + float64(o.o.Beta*u)))
	}
}

// Update implements [Regressor].
func (o *Diagonal) Update(x *Input, action int, loss float64) {
	o.fed++
	o.sumLoss += loss
	o.learn(x, action)
	n := int32(o.known.at(action, x.Actions[action].Name))
	if n < 0 {
		if o.full() {
			o.strange++
			return
		}
		n = o.known.add(x.Actions[action].Name)
		o.wide.begin(n, o.about[o.known.names[n]])
	}
	own := x.own(action)
	m, u := o.wide.at(n, o.z, x.Terms, own)
	if o.version > 1 && o.all.add(o.watched(clip01(m)), o.watched(loss), changeFrom, 1/changeAlpha) {
		o.wide.resetAll()
		o.all = watch{}
		o.changes.add(Change{Example: o.fed})
		m, u = o.wide.at(n, o.z, x.Terms, own)
	}
	if !o.wide.learn(n, o.z, x.Terms, own, loss-m, u) {
		o.resets++
		return
	}
	e := loss - m
	o.regret += float64(float64(e*e)*u) / (1 + u)
}

// Counts returns the current counts; places of terms are no columns.
func (o *Diagonal) Counts() LinearCounts { return o.counts(len(o.known.names)) }

// weight is one coefficient: its mean and its variance.
type weight struct{ w, v float64 }

// diagonals are the regressions of [Diagonal], which are a member of [Aggregate] too.
type diagonals struct {
	places  int
	lambda  float64
	actions []diagonal
	own     []weight // of the terms of actions themselves; nil: none was learned
}

// diagonal is the regression of one action. Columns that are not there yet have w = 0 and v = 1/λ; so have
// the places while none was learned.
type diagonal struct {
	cols, terms []weight
	begin       float64 // w of the constant before anything is learned
}

// begin sets where the regression of an action begins.
func (d *diagonals) begin(n int32, v float64) {
	for int(n) >= len(d.actions) {
		d.actions = append(d.actions, diagonal{})
	}
	d.actions[n].begin = v
}

// at returns w·x and u for an action, which may be -1: one that was never learned.
func (d *diagonals) at(n int32, z []float64, terms, own []Term) (m, u float64) {
	var a diagonal
	if n >= 0 && int(n) < len(d.actions) {
		a = d.actions[n]
	}
	fresh := 1 / d.lambda
	if len(a.cols) == 0 {
		m = a.begin
	}
	for i, x := range z[:len(a.cols)] {
		if x != 0 {
			c := &a.cols[i]
			m += float64(c.w * x)
			u += float64(c.v * float64(x*x))
		}
	}
	for _, x := range z[len(a.cols):] {
		u += float64(fresh * float64(x*x))
	}
	m, u = add(m, u, a.terms, terms, fresh)
	return add(m, u, d.own, own, fresh)
}

// add adds the terms to w·x and u.
func add(m, u float64, weights []weight, terms []Term, fresh float64) (float64, float64) {
	if weights == nil {
		for i := range terms {
			u += float64(fresh * float64(terms[i].Value*terms[i].Value))
		}
		return m, u
	}
	for i := range terms {
		c, x := &weights[terms[i].Place], terms[i].Value
		m += float64(c.w * x)
		u += float64(c.v * float64(x*x))
	}
	return m, u
}

// learn moves the weights by an error e = y − w·x, where u is what at says. It reports false if rounding
// has broken the regression, which then starts anew.
func (d *diagonals) learn(n int32, z []float64, terms, own []Term, e, u float64) bool {
	for int(n) >= len(d.actions) {
		d.actions = append(d.actions, diagonal{})
	}
	a := &d.actions[n]
	if len(a.cols) == 0 {
		a.cols = append(a.cols, weight{a.begin, 1 / d.lambda})
	}
	for len(a.cols) < len(z) {
		a.cols = append(a.cols, weight{v: 1 / d.lambda})
	}
	if a.terms == nil && len(terms) > 0 {
		a.terms = d.fresh()
	}
	if d.own == nil && len(own) > 0 {
		d.own = d.fresh()
	}
	if e-e != 0 || u-u != 0 {
		d.reset(n)
		return false
	}
	e /= 1 + u
	for i, x := range z {
		if x != 0 {
			a.cols[i].step(x, e)
		}
	}
	for i := range terms {
		a.terms[terms[i].Place].step(terms[i].Value, e)
	}
	for i := range own {
		d.own[own[i].Place].step(own[i].Value, e)
	}
	return true
}

// step moves one weight by the scaled error e.
func (c *weight) step(x, e float64) {
	k := float64(c.v * x)
	c.w += float64(k * e)
	c.v /= 1 + float64(k*x)
}

// fresh returns the weights of all places before anything is learned.
func (d *diagonals) fresh() []weight {
	w := make([]weight, d.places)
	clearWeights(w, d.lambda)
	return w
}

func clearWeights(w []weight, lambda float64) {
	for i := range w {
		w[i] = weight{v: 1 / lambda}
	}
}

// reset starts the regression of an action anew, and with it what actions say of themselves.
func (d *diagonals) reset(n int32) {
	if int(n) >= len(d.actions) {
		return
	}
	if c := d.actions[n].cols; len(c) > 0 {
		clearWeights(c, d.lambda)
		c[0].w = d.actions[n].begin
	}
	clearWeights(d.actions[n].terms, d.lambda)
	clearWeights(d.own, d.lambda)
}

func (d *diagonals) resetAll() {
	for n := range d.actions {
		d.reset(int32(n))
	}
}

// AppendBinary implements [Regressor].
func (o *Diagonal) AppendBinary(b []byte) ([]byte, error) { return appendState(b, o) }

// UnmarshalBinary implements [Regressor].
func (o *Diagonal) UnmarshalBinary(b []byte) error {
	n := &Diagonal{fitted: fitted{features: o.features.fresh()}, o: o.o, beginning: o.beginning,
		wide: diagonals{places: o.wide.places, lambda: o.wide.lambda}}
	return readState(b, "diagonal", o, n)
}

// code begins with the version of what is computed.
func (o *Diagonal) code(c *Coder) {
	c.Version(byte(o.version), Newest, "another version of what is computed")
	c.Same("other parameters", o.o.Beta, o.o.Lambda, o.o.Places, o.most)
	c.Ints(&o.fed, &o.resets, &o.strange, &o.dropped)
	columns, actions := c.Count(len(o.cols)-1, 4), c.Count(len(o.known.names), 1)
	if !c.Must(actions <= o.o.MaxActions && (o.fed > 0 || actions == 0), "damaged header") ||
		!o.fitted.code(c, columns) || !c.Must(o.regret >= 0, "damaged header") {
		return
	}
	for i := range actions {
		name := ""
		if !c.Reading() {
			name = o.known.names[i]
		}
		if c.Text(&name); c.Reading() {
			o.known.add(name)
		}
	}
	c.Must(len(o.known.of) == actions, "damaged action")
	o.wide.code(c, columns+1)
	if c.Must(len(o.wide.actions) == actions, "damaged regression") && c.Reading() {
		for i, name := range o.known.names {
			o.wide.begin(int32(i), o.about[name])
		}
	}
}

// code is the weights of all regressions, of at most so many columns.
func (d *diagonals) code(c *Coder, columns int) {
	n := c.Count(len(d.actions), 2)
	if c.Reading() {
		d.actions = make([]diagonal, n)
	}
	for i := range d.actions {
		a := &d.actions[i]
		d.codeWeights(c, &a.cols)
		d.codePlaces(c, &a.terms)
		c.Must(len(a.cols) <= columns, "damaged diagonal regression")
	}
	d.codePlaces(c, &d.own)
}

func (d *diagonals) codePlaces(c *Coder, w *[]weight) {
	d.codeWeights(c, w)
	c.Must(*w == nil || len(*w) == d.places, "damaged diagonal regression")
}

func (d *diagonals) codeWeights(c *Coder, w *[]weight) {
	n := c.Count(len(*w), 16)
	if c.Reading() {
		if *w = nil; n > 0 {
			*w = make([]weight, n)
		}
	}
	for i := range *w {
		x := &(*w)[i]
		c.Float(math.Inf(-1), &x.w, &x.v)
		if c.Reading() && !c.Must(x.v > 0 && x.v <= 1/d.lambda, "damaged diagonal regression") {
			return
		}
	}
}
