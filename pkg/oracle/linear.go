package oracle

import (
	"errors"
	"fmt"
	"math"
)

// LinearOptions are the parameters of [NewLinear].
type LinearOptions struct {
	Beta   float64 // optimism in [0,1], or ByWhatComes; see AutoBeta
	Lambda float64 // regularisation > 0, or ByWhatComes; 0 means 1; see AutoLambda
	// ρ in [0.5,1): the past counts ρ times as much with every example of its action; 0: it does not fade
	Forget      float64
	MaxFeatures int // columns beside the constant; 0 means 256
	// actions learned; 0 means as many as fit in 1 GiB with MaxFeatures, since version 2 with the columns seen
	MaxActions int
	Schema     []FeatureSpec // numeric features of contexts that have bounds
	Fourier    int           // m: random Fourier features beside the columns; 0: none
	Columns    int           // with Fourier: d that is expected, the constant included; 0: not known
	Bandwidth  float64       // with Fourier: how far in z, in units of √d, losses are alike; 0 means 1
	Seed       uint64        // with Fourier: of the draw
	Version    int           // of what is computed; 0 means 1; see Newest
}

// Defaults and limits of [LinearOptions].
const (
	DefaultMaxFeatures = 256
	maxLinearBytes     = 1 << 30
)

// AutoBeta returns the β for k actions and d columns, the constant included: ½
// where k·d² ≤ 1e5, else 0, because its cost is k quadratic forms a decision.
func AutoBeta(k, d int) float64 {
	if float64(k)*float64(d)*float64(d) <= 1e5 {
		return 0.5
	}
	return 0
}

// AutoLambda returns λ = max(1, d/20) for d columns, the constant included; use d = 1 where d is not known.
func AutoLambda(d int) float64 { return math.Max(1, float64(d)/20) }

// LinearBytes returns the memory of the matrices of k actions with d columns, the
// constant included, when all of them are learned.
func LinearBytes(k, d int) float64 {
	return float64(k) * 8 * (float64(d)*float64(d+1)/2 + float64(d))
}

// Linear is an optimistic recursive least-squares oracle, one regression an
// action, over a growing dictionary of features (docs/algorithms.md, section 7):
//
//	û(a) = zᵀP_a z,  f̂(a) = clip(w_a·z / (1 + β·û(a)), 0, 1)
//	learn: k = P_a z, u = z·k, e = y − w_a·z;  w_a += k·e/(1+u),  P_a −= k·kᵀ/(1+u)
//
// from w_a = 0, P_a = I/λ. With forgetting P_a ← DP_aD first, as in [Aggregate]'s core 2; the package comment says what
// that does to guarantees. β = 0 is ridge regression, β = 1 is Vovk–Azoury–Warmuth; between, it is ridge plus one
// pseudo-example of loss 0 and weight β at the point asked about.
//
// # Random features
//
// With Fourier = m > 0 regressions take (1, √2·cos(w_j·z/(h√d) + b_j) for j = 1..m, z_1, …) in place of z, so that
// losses need not be linear in z: ridge with the linear kernel and the Gaussian one of bandwidth h√d (Rahimi and Recht
// 2007), d the columns of z, or Columns if that is more. While z is the constant alone there are none.
//
// # Columns
//
// A number is a column, standardised by running statistics and clipped to ±5 (or mapped by its bounds), since version 2
// with a second one that tells whether it is there; every category of a text is a 0/1 column; a bool is the category
// true or false, in version 1 a 0/1 column; column 0 is 1. A name or category gets the next column when it is first
// learned, in byte order of names within a round, the context's before those of the played action; elements of a vector
// are numbers named "0", "1", …. Features of actions have columns of their own, which all actions share, with a weight
// each per action. Features beyond the limit read 0, and so do absent ones.
//
// Actions are known by name, from the first time that they are learned. P_a has only the columns that were known when a
// was last learned: the rest of it is still I/λ.
type Linear struct {
	fitted
	o            LinearOptions
	beta, lambda float64 // in force
	aggregated   bool    // it is core 1 of an [Aggregate]: bytes counts all cores
	room         float64 // the most bytes, since version 2
	forget       float64 // ρ; 0: none
	fourier      fourier
	maxActions   int
	beginning
	known   index // names of actions
	actions []linearAction

	phi   []float64 // scratch: what regressions take, with random features
	outer []float64 // scratch: packed outer product of z
	k     []float64 // scratch
	s     []float64 // scratch
	four  four      // scratch

	places int // of terms, if aggregated
}

// linearAction is the regression of one action.
type linearAction struct {
	ridge
	watch watch
}

var _ Regressor = (*Linear)(nil)

// NewLinear returns an oracle that knows nothing.
func NewLinear(o LinearOptions) (*Linear, error) {
	if o.Lambda == 0 {
		o.Lambda = 1
	}
	f, err := newFitted(&o.MaxFeatures, o.Beta, o.Lambda, o.Version > 1, o.Schema, o.Version)
	switch {
	case err != nil:
		return nil, fmt.Errorf("linear: %w", err)
	case o.Forget != 0 && !(o.Forget >= 0.5 && o.Forget < 1):
		return nil, fmt.Errorf("linear: forget is %v: it must be in [0.5, 1), or 0 for none", o.Forget)
	case o.MaxActions < 0:
		return nil, errors.New("linear: max actions is negative")
	}
	random, err := o.random()
	if err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	if o.MaxActions, err = mostActions("linear", &o, func(k int) float64 {
		return LinearBytes(k, o.MaxFeatures+1+o.Fourier)
	}); err != nil {
		return nil, err
	}
	l := &Linear{
		fitted: f, o: o, room: maxLinearBytes, beta: o.Beta, lambda: o.Lambda, forget: o.Forget, fourier: random,
		maxActions: o.MaxActions,
	}
	l.size()
	return l, nil
}

// Predict implements [Regressor]. An action that was never learned has w = 0 and is predicted 0; once MaxActions are
// known, a stranger, which can never be learned, is predicted the mean loss.
func (o *Linear) Predict(dst []float64, x *Input) {
	o.fill(x)
	by := o.prepare()
	if by == shared && o.predictTogether(dst, x.Actions, o) {
		return
	}
	moved := false // what the kernels take is not the context's
	position := len(x.Features)
	for i := range dst[:len(x.Actions)] {
		a := &x.Actions[i]
		n := o.action(i, a.Name)
		switch {
		case n < 0:
			dst[i] = o.stranger(a.Name)
		case len(a.Features) == 0:
			if moved {
				o.prepareAgain(by)
				moved = false
			}
			dst[i] = o.predict(n, by)
		default:
			o.fillAction(position, a)
			dst[i] = o.predict(n, o.prepareOne())
			o.unfillAction()
			moved = true
		}
		position += len(a.Features)
	}
}

// predict returns f̂ of an action at z.
func (o *Linear) predict(n int32, by kernel) float64 {
	a := &o.actions[n]
	m := o.mean(a.w, by)
	if o.beta == 0 || !(m > 0) {
		return clip01(m)
	}
	return o.shrunk(m, o.form(&a.ridge, by))
}

// stranger is the prediction of an action that has no regression.
func (o *Linear) stranger(name string) float64 {
	if !o.full() {
		return o.about[name]
	}
	return o.sumLoss / float64(o.fed)
}

// action returns the index of the action name that stands at a position, or -1.
func (o *Linear) action(position int, name string) int32 { return int32(o.known.at(position, name)) }

// Update implements [Regressor].
func (o *Linear) Update(x *Input, action int, loss float64) {
	n := o.enter(x, action, loss)
	if n < 0 {
		return
	}
	if o.version > 1 {
		for from, to := o.changed(n, clip01(o.mean(o.actions[n].w, o.prepareOne())), loss); from < to; from++ {
			o.actions[from].reset(o.lambda)
		}
	}
	o.regress(&o.actions[n], loss)
}

// enter counts an example, fills z with it, and returns the index of its action with
// all columns; -1 if the action is not to be learned.
func (o *Linear) enter(x *Input, action int, loss float64) int32 {
	o.fed++
	o.sumLoss += loss
	o.learn(x, action)
	if o.randomised() {
		o.fourier.grow(&o.features)
		o.project()
	}
	n := o.action(action, x.Actions[action].Name)
	if n < 0 {
		if o.full() {
			o.size()
			o.strange++
			return -1
		}
		n = o.addAction(x.Actions[action].Name)
	}
	o.size()
	o.actions[n].grow(len(o.point()), o.lambda)
	return n
}

// regress feeds (z, y) to one regression. It returns what w·z and zᵀPz were before;
// if rounding has broken them it starts the regression anew and reports false.
func (o *Linear) regress(a *linearAction, y float64) (m, u float64, ok bool) {
	z := o.point()
	o.k = resize(o.k, len(z))
	k := o.k
	if o.forget > 0 {
		o.fade(&a.ridge)
	}
	if !o.randomised() && o.sparse() {
		packedMulAt(k, a.p, z, o.at)
		u, m = dotAt(k, z, o.at), dotAt(a.w, z, o.at)
	} else {
		packedMul(k, a.p, z)
		u, m = dot(k, z), dot(a.w, z)
	}
	e := y - m
	if !(u >= 0) || u-u != 0 || e-e != 0 {
		o.resets++
		a.reset(o.lambda)
		return m, u, false
	}
	c := 1 / (1 + u)
	o.regret += float64(float64(float64(e*e)*u) * c)
	axpy(a.w, float64(e*c), k)
	packedRankOne(a.p, c, k)
	return m, u, true
}

// fade is P ← DPD of one regression.
func (o *Linear) fade(r *ridge) {
	o.s = resize(o.s, len(r.w))
	most, p := 1/math.Sqrt(o.forget), r.p
	for i := range r.w {
		row := p[:i+1]
		p = p[i+1:]
		o.s[i] = most
		if v := float64(o.lambda * row[i]); v > o.forget {
			o.s[i] = 1 / math.Sqrt(v)
		}
		for j, s := range o.s[:i+1] {
			row[j] *= float64(o.s[i] * s)
		}
	}
}

func (o *Linear) addAction(name string) int32 {
	o.actions = append(o.actions, linearAction{ridge: ridge{begin: o.about[name]}})
	return o.known.add(name)
}

// fitted is what all regressions over features have.
type fitted struct {
	features
	watches
	fed     int64
	sumLoss float64
	regret  float64 // Σ e²u/(1+u)
	resets  int64
	strange int64 // examples of actions for which there was no room
}

// newFitted checks the options that they share, and sets the default of the most columns. follows says that
// [ByWhatComes] may stand for numbers.
func newFitted(most *int, beta, lambda float64, follows bool, specs []FeatureSpec, version int) (fitted, error) {
	if *most == 0 {
		*most = DefaultMaxFeatures
	}
	switch {
	case !(beta >= 0 && beta <= 1) && !(follows && beta == ByWhatComes):
		return fitted{}, fmt.Errorf("beta is %v: it must be in [0,1]", beta)
	case !(lambda >= 1e-9 && lambda <= 1e9) && !(follows && lambda == ByWhatComes):
		return fitted{}, fmt.Errorf("lambda is %v: it must be in [1e-9, 1e9]", lambda)
	case *most < 0 || *most > 1<<16:
		return fitted{}, fmt.Errorf("max features is %d: it must be in [1, 65536]", *most)
	}
	f, err := newFeatures(*most, specs, version)
	return fitted{features: f}, err
}

// Regret returns R_n = Σ e²u/(1+u), which for β = 0, frozen statistics and one regression an action is the
// regret against the λ-regularised comparator; otherwise a measured figure and not a bound.
func (o *fitted) Regret() float64 { return o.regret }

// OrderFree implements [Regressor]: the running statistics depend on the order.
func (o *fitted) OrderFree() bool { return false }

func (o *fitted) counts(actions int) LinearCounts {
	return LinearCounts{o.fed, o.dim(), actions, o.dropped, o.strange, o.resets}
}

// Follow implements [Amender].
func (o *fitted) Follow(Regressor) {}

// LinearCounts are the sizes of a [Linear] and what it could not do.
type LinearCounts struct {
	Fed             int64 // examples
	Columns         int   // the constant included
	Actions         int
	FeaturesDropped int64 // feature values learned as 0 because MaxFeatures was reached
	ActionsDropped  int64 // examples not learned because MaxActions was reached
	Resets          int64 // regressions started anew because rounding broke them
}

// Counts returns the current counts.
func (o *Linear) Counts() LinearCounts { return o.counts(len(o.actions)) }
