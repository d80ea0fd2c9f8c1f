package oracle

import (
	"errors"
	"fmt"
	"math"
)

// FrozenOptions are the parameters of [NewFrozen].
type FrozenOptions struct {
	Features []FeatureSpec // numbers with their bounds; of a bool 0 and 1
	Actions  []string      // all that will be there
	Lambda   float64       // at least Z² = 1 + len(Features); 0 means that
}

// Frozen is ridge regression with a theorem (docs/algorithms.md, 3.5), one regression an action over columns that are
// fixed beforehand:
//
//	z = (1, clip((x_j − mid_j)/half_j, ±1), …), 0 where x_j is absent;  f̂(a) = clip(½ + w_a·z, 0, 1)
//	learn: k = P_a z, u = z·k, e = y − ½ − w_a·z;  w_a += k·e/(1+u),  P_a −= k·kᵀ/(1+u)
//
// from w_a = 0, P_a = I/λ: no running statistics, optimism, forgetting or fresh starts. If f⋆ is linear in z
// with values in [0,1] on all of the box, its weights less ½ have a sum of squares of at most b² = K/4, and
//
//	R = 1.5·Λ + 3λb²,  Λ = Σ_a log det(λP_a)⁻¹ = Σ log(1+u)
//
// bounds Σ E(f̂−f⋆)² of the oracle fed in order.
type Frozen struct {
	lambda float64
	specs  []FeatureSpec
	column map[string]int // of z, from 1
	action map[string]int
	models []ridge

	fed     int64
	sumLoss float64
	logDet  float64 // Λ
	bad     int64
	n       int64     // the feedback that comes next, by Met
	marks   []logMark // Λ over the feedback log, about as far back as it was half the determinant

	z, k []float64 // scratch
}

// logMark says that Λ was so much after feedback n.
type logMark struct {
	n      int64
	logDet float64
}

// markEvery is how far apart marks are in Λ.
const markEvery = math.Ln2 / 8

var _ Regressor = (*Frozen)(nil)

// NewFrozen returns an oracle that knows nothing.
func NewFrozen(o FrozenOptions) (*Frozen, error) {
	d := len(o.Features) + 1
	if o.Lambda == 0 {
		o.Lambda = float64(d)
	}
	if !(o.Lambda >= float64(d) && o.Lambda <= 1e9) {
		return nil, fmt.Errorf("ridge: lambda is %v: its theorem needs at least 1 + %d features", o.Lambda, d-1)
	}
	if len(o.Actions) == 0 {
		return nil, errors.New("ridge: it needs the names of all actions")
	}
	f := &Frozen{lambda: o.Lambda, specs: o.Features, column: map[string]int{}, action: map[string]int{},
		models: make([]ridge, len(o.Actions)), marks: make([]logMark, 1), z: make([]float64, d), k: make([]float64, d)}
	for i, s := range o.Features {
		if !(s.Lo < s.Hi) || s.Hi-s.Lo > maxNumber {
			return nil, fmt.Errorf("ridge: feature %q has bounds [%v, %v]: give finite ones, the lower first",
				s.Name, s.Lo, s.Hi)
		}
		f.column[s.Name] = i + 1
	}
	for i, name := range o.Actions {
		f.action[name] = i
		f.models[i].grow(d, o.Lambda)
	}
	if len(f.column) != len(o.Features) || len(f.action) != len(o.Actions) {
		return nil, errors.New("ridge: a feature or action is there twice")
	}
	return f, nil
}

// fill sets z to the columns of a context.
func (o *Frozen) fill(x *Input) {
	clear(o.z)
	o.z[0] = 1
	for i := range x.Features {
		f := &x.Features[i]
		if c, ok := o.column[f.Name]; ok && (f.Kind == Number || f.Kind == Bool) {
			s := &o.specs[c-1]
			half := (s.Hi - s.Lo) / 2
			o.z[c] = math.Max(-1, math.Min(1, (f.Value-s.Lo-half)/half))
		}
	}
}

// Predict implements [Regressor]. An action that is not listed is predicted ½.
func (o *Frozen) Predict(dst []float64, x *Input) {
	o.fill(x)
	for i := range x.Actions {
		dst[i] = 0.5
		if a, ok := o.action[x.Actions[i].Name]; ok {
			dst[i] = clip01(0.5 + dot(o.models[a].w, o.z))
		}
	}
}

// Interval sets lo and hi to bounds of f⋆ for the actions of x: if f⋆ is linear in z with values in [0,1] on all of the
// box, and examples are fed in the order of decisions, all hold at all times at once with probability at least 1−delta.
// Of an action, with S = Σ z(y − f⋆) and the noise y − f⋆ of range 1, Sᵀ P_a S ≤ (log det(λP_a)⁻¹ + 2·log(K/delta))/4
// (Abbasi-Yadkori, Pál and Szepesvári 2011, theorem 1), and its w⋆ less ½ has a norm of at most ½, so that
// |½ + w_a·z − f⋆| ≤ ½(√(log det(λP_a)⁻¹ + 2·log(K/delta)) + √λ)·√(zᵀP_a z). The determinant is at most Λ, and after n
// examples with zᵀz ≤ d ≤ λ at most d·log(1 + n/λ).
func (o *Frozen) Interval(lo, hi []float64, x *Input, delta float64) {
	o.fill(x)
	det := min(o.logDet, float64(float64(len(o.z))*Log(1+float64(o.fed)/o.lambda)))
	radius := (math.Sqrt(det+float64(2*Log(float64(len(o.models))/delta))) + math.Sqrt(o.lambda)) / 2
	for i := range x.Actions {
		lo[i], hi[i] = 0, 1
		if a, ok := o.action[x.Actions[i].Name]; ok {
			packedMul(o.k, o.models[a].p, o.z)
			mean, half := 0.5+dot(o.models[a].w, o.z), float64(radius*math.Sqrt(max(0, dot(o.k, o.z))))
			lo[i], hi[i] = clip01(mean-half), clip01(mean+half)
		}
	}
}

// Update implements [Regressor].
func (o *Frozen) Update(x *Input, action int, loss float64) {
	o.fed++
	o.sumLoss += loss
	a, ok := o.action[x.Actions[action].Name]
	if !ok {
		return
	}
	o.fill(x)
	m := &o.models[a]
	packedMul(o.k, m.p, o.z)
	u := dot(o.k, o.z)
	c := 1 / (1 + u)
	axpy(m.w, float64((loss-0.5-dot(m.w, o.z))*c), o.k)
	packedRankOne(m.p, c, o.k)
	if o.logDet += Log(1 + u); o.logDet >= o.marks[len(o.marks)-1].logDet+markEvery {
		o.marks = append(o.marks, logMark{o.n, o.logDet})
	}
}

// Met tells that feedback n comes next, of a round that was decided when feedback 1…through was learned. A round is
// bad, and its own regret is charged 1, if the determinant has more than doubled since: by marks, 8/7 as often at
// most. Rounds that another law played are none of its own.
func (o *Frozen) Met(n, through int64, own bool) {
	o.n = n
	for len(o.marks) > 1 && o.logDet-o.marks[1].logDet > math.Ln2 {
		o.marks = o.marks[1:]
	}
	last := 0
	for last+1 < len(o.marks) && o.marks[last+1].n <= through {
		last++
	}
	if own && (o.logDet-o.marks[last].logDet > math.Ln2 || o.marks[last].n > through) {
		o.bad++
	}
}

// Determinant returns λ, b², Λ and the number of bad rounds.
func (o *Frozen) Determinant() (lambda, square, logDet float64, bad int64) {
	return o.lambda, float64(len(o.models)) / 4, o.logDet, o.bad
}

// Regret returns R.
func (o *Frozen) Regret() float64 {
	return float64(1.5*o.logDet) + float64(3*o.lambda)*float64(len(o.models))/4
}

// Proved reports that Regret is a theorem's bound.
func (o *Frozen) Proved() bool { return true }

// Beta returns 0: no stability constant is proved.
func (o *Frozen) Beta() float64 { return 0 }

// Lost returns the sum of the losses fed, each in [0,1].
func (o *Frozen) Lost() float64 { return o.sumLoss }

// OrderFree implements [Regressor]: w and P are those of ridge regression over the set fed.
func (o *Frozen) OrderFree() bool { return true }

const frozenVersion = 1

// AppendBinary implements [Regressor].
func (o *Frozen) AppendBinary(b []byte) ([]byte, error) { return appendState(b, o) }

// UnmarshalBinary implements [Regressor].
func (o *Frozen) UnmarshalBinary(b []byte) error {
	n := *o
	n.models = make([]ridge, len(o.models))
	for i := range n.models {
		n.models[i].grow(len(o.z), o.lambda)
	}
	return readState(b, "ridge", o, &n)
}

func (o *Frozen) code(c *Coder) {
	c.Version(frozenVersion, frozenVersion, "")
	c.Same("other parameters", o.lambda, len(o.models), len(o.z))
	c.Ints(&o.fed, &o.bad, &o.n)
	marks := c.Count(len(o.marks), 9)
	c.Float(0, &o.sumLoss, &o.logDet)
	if c.Reading() {
		o.marks = make([]logMark, marks)
	}
	for i := range o.marks {
		c.Ints(&o.marks[i].n)
		c.Float(math.Inf(-1), &o.marks[i].logDet)
	}
	for i := range o.models {
		c.Floats(o.models[i].w)
		c.Floats(o.models[i].p)
	}
	c.Must(marks > 0, "damaged")
}
