package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"hindsight/internal/cores"
	"hindsight/internal/model"
	"hindsight/pkg/oracle"
)

// Kinds of functions.
const (
	kindRidge    = "ridge"
	kindLogistic = "logistic"
	kindTrees    = "trees"
)

// Kinds lists them.
func Kinds() []string { return []string{kindRidge, kindLogistic, kindTrees} }

// Options say what class is built. The zero value is not usable; see [Defaults].
type Options struct {
	Functions int      // that are wanted
	Kinds     []string // dealt in turn
	HoldOut   float64  // share of the rows, the last ones, that no function sees
	Distance  float64  // functions that predict within it, in root mean square, of one that is kept are dropped
	Alpha     float64  // of survival
	Seed      uint64
	Progress  func(done int) // functions tried so far; may be nil
}

// Defaults returns the options of the command.
func Defaults() Options {
	return Options{Functions: 200, Kinds: Kinds(), HoldOut: .2, Distance: .01, Alpha: .05, Seed: 1}
}

// Validate reports what cannot be.
func (o *Options) Validate() error {
	switch {
	case o.Functions < 1:
		return fmt.Errorf("%d functions: a class has at least 1", o.Functions)
	case !(o.HoldOut >= .05 && o.HoldOut <= .9):
		return fmt.Errorf("a share of %v held out: expected between 0.05 and 0.9", o.HoldOut)
	case !(o.Distance >= 0):
		return fmt.Errorf("a distance of %v: it cannot be negative", o.Distance)
	case !(o.Alpha > 0 && o.Alpha < 1):
		return fmt.Errorf("a level of %v: expected one between 0 and 1", o.Alpha)
	case len(o.Kinds) == 0:
		return fmt.Errorf("no kinds of functions: name some of %v", Kinds())
	}
	for _, k := range o.Kinds {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("%q is no kind of function: expected some of %v", k, Kinds())
		}
	}
	return nil
}

// Class is a class with what the held-out rows say of it.
type Class struct {
	// the best first; of kind shared where actions have features, else mixed
	File      *model.ClassFile `json:"-"`
	Functions []Fitted         `json:"functions"` // in the file's order
	Rows      int              `json:"rows"`      // fitted to
	HeldOut   int              `json:"held_out"`  // rows
	Constant  float64          `json:"constant"`  // held-out loss of the best constants: the mean loss of each action
	Tried     int              `json:"tried"`     // functions
	Alike     int              `json:"alike"`     // dropped: too near to one that is kept
	Surviving int              `json:"surviving"` // that the held-out losses do not refute at level Alpha
	Alpha     float64          `json:"alpha"`
}

// Fitted says what one function is and how good.
type Fitted struct {
	Kind     string  `json:"kind"`
	Lambda   float64 `json:"lambda,omitempty"`
	Trees    int     `json:"trees,omitempty"`
	Depth    int     `json:"depth,omitempty"`
	Columns  int     `json:"columns"`
	HeldOut  float64 `json:"held_out"` // importance-weighted mean square loss on the rows held out
	Survives bool    `json:"survives"`

	f      oracle.MixedFunction
	losses []float64 // its predictions on the held-out rows, [rows·K]
	sum    float64   // of squares, every known loss once
}

// extra is how many times as many functions are tried as are wanted, at most.
const extra = 3

// Fit builds a class.
func Fit(ctx context.Context, d *Data, o Options) (*Class, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := d.validate(); err != nil {
		return nil, err
	}
	train, held := d.split(d.Len() - int(math.Ceil(o.HoldOut*float64(d.Len()))))
	if err := train.validate(); err != nil {
		return nil, err
	}
	c := &Class{Rows: train.Len(), HeldOut: held.Len(), Alpha: o.Alpha, Constant: constant(train, held)}
	scale, inputs := train.scaling(), held.inputs()
	batch := runtime.GOMAXPROCS(0)
	for c.Tried < extra*o.Functions && len(c.Functions) < o.Functions {
		tried := make([]*Fitted, min(batch, extra*o.Functions-c.Tried))
		err := cores.Each(ctx, len(tried), func(_ context.Context, i int) (err error) {
			tried[i], err = one(train, held, inputs, scale, o, c.Tried+i)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, f := range tried { // in their order: how many are tried at once changes nothing
			if len(c.Functions) < o.Functions {
				c.keep(f, o.Distance)
			}
		}
		if o.Progress != nil {
			o.Progress(len(c.Functions))
		}
	}
	c.finish(d)
	return c, nil
}

// keep adds a function, unless one that is kept predicts nearly the same.
func (c *Class) keep(f *Fitted, distance float64) {
	c.Tried++
	for i := range c.Functions {
		if apart(c.Functions[i].losses, f.losses) < distance {
			c.Alike++
			return
		}
	}
	c.Functions = append(c.Functions, *f)
}

// apart is the root mean square difference of predictions.
func apart(x, y []float64) float64 {
	s := 0.0
	for i, v := range x {
		s += (v - y[i]) * (v - y[i])
	}
	return math.Sqrt(s / float64(len(x)))
}

// finish orders the functions and says which survive: of the plausible set {f : softmax(−2L)(f) > α/|F|}, L the sum of
// squares over the held-out losses, each once (docs/algorithms.md, section 2.1).
func (c *Class) finish(d *Data) {
	slices.SortStableFunc(c.Functions, func(a, b Fitted) int { return cmp.Compare(a.HeldOut, b.HeldOut) })
	least := math.Inf(1)
	for i := range c.Functions {
		least = min(least, c.Functions[i].sum)
	}
	total := 0.0
	for i := range c.Functions {
		total += math.Exp(-2 * (c.Functions[i].sum - least))
	}
	c.File = d.file()
	for i := range c.Functions {
		f := &c.Functions[i]
		f.Survives = math.Exp(-2*(f.sum-least))/total > c.Alpha/float64(len(c.Functions))
		if f.Survives {
			c.Surviving++
		}
		f.losses = nil
		c.File.Functions = append(c.File.Functions, model.Function{Prior: 1, Mixed: f.f})
	}
}

// one fits function n and judges it on the rows held out, of which inputs are what it sees.
func one(train, held *Data, inputs []oracle.Input, scale *scaling, o Options, n int) (*Fitted, error) {
	rng := rand.New(rand.NewPCG(o.Seed, uint64(n)))
	f := draw(train, scale, o.Kinds[n%len(o.Kinds)], rng)
	class, err := train.file(model.Function{Prior: 1, Mixed: f.f}).Class()
	if err != nil {
		return nil, fmt.Errorf("function %d, %s: %w", n, f.Kind, err)
	}
	weight, value := 0.0, [1]float64{}
	for t := range held.X {
		for a, y := range held.Loss[t] {
			class.Eval(value[:], &inputs[t], a)
			f.losses = append(f.losses, value[0])
			if !math.IsNaN(y) {
				e := (value[0] - y) * (value[0] - y)
				f.sum += e
				f.HeldOut += held.Weight[t] * e
				weight += held.Weight[t]
			}
		}
	}
	f.HeldOut /= weight
	return f, nil
}

// What functions are drawn from, all alike.
var (
	lambdas = [...]float64{.1, 1, 10, 100}
	shares  = [...]float64{1, .7, .5} // of the columns
	bags    = [...]int{1, 5, 10, 20}  // trees of a function
	depths  = [...]int{4, 6, 8, 12}
	leaves  = [...]int{1, 2, 5}
	looks   = [...]float64{1, .5, .3} // share of the columns that a split looks at
)

// draw fits a function of a kind.
func draw(d *Data, scale *scaling, kind string, rng *rand.Rand) *Fitted {
	s := resample(d, scale, kind != kindTrees, rng)
	f := &Fitted{Kind: kind, Columns: len(s.columns)}
	switch kind {
	case kindRidge, kindLogistic:
		if f.Lambda = lambdas[rng.IntN(len(lambdas))]; kind == kindRidge {
			f.f.Linear = s.ridge(f.Lambda)
		} else {
			f.f.Logistic = s.logistic(f.Lambda)
		}
		if d.ActionFeatures != nil {
			for _, w := range []*[][]float64{&f.f.Linear, &f.f.Logistic} {
				if *w != nil {
					*w = d.matrix((*w)[0])
				}
			}
		}
	case kindTrees:
		o := treeOptions{depth: depths[rng.IntN(len(depths))], leaf: leaves[rng.IntN(len(leaves))],
			try: looks[rng.IntN(len(looks))]}
		f.Trees, f.Depth = bags[rng.IntN(len(bags))], o.depth
		for i := range f.Trees {
			if i > 0 {
				s.count = counts(d.Len(), rng)
			}
			f.f.Trees = append(f.f.Trees, s.tree(o, rng))
		}
	}
	return f
}

// resample draws as many rows as there are, with replacement, and some of the columns.
func resample(d *Data, scale *scaling, linear bool, rng *rand.Rand) *sample {
	s := &sample{data: d, scale: scale, count: counts(d.Len(), rng)}
	share := shares[rng.IntN(len(shares))]
	if d.ActionFeatures != nil {
		s.columns = d.chooseShared(share, linear, rng)
		return s
	}
	s.columns = pickColumns(len(d.Features), share, rng)
	slices.Sort(s.columns)
	return s
}

// pickColumns draws a share of d columns, at least one where there are any.
func pickColumns(d int, share float64, rng *rand.Rand) []int {
	n := max(1, int(math.Round(share*float64(d))))
	columns := rng.Perm(d)
	return columns[:min(n, d)]
}

func counts(n int, rng *rand.Rand) []float64 {
	out := make([]float64, n)
	for range n {
		out[rng.IntN(n)]++
	}
	return out
}

// constant returns the held-out loss of each action's mean.
func constant(train, held *Data) float64 {
	mean := make([]float64, train.outputs())
	for a := range mean {
		sum, weight := 0.0, 0.0
		for t := range train.Loss {
			if y := train.Loss[t][a]; !math.IsNaN(y) {
				sum += train.Weight[t] * y
				weight += train.Weight[t]
			}
		}
		mean[a] = sum / weight
	}
	sum, weight := 0.0, 0.0
	for t := range held.Loss {
		for a, y := range held.Loss[t] {
			if !math.IsNaN(y) {
				sum += held.Weight[t] * (y - mean[a]) * (y - mean[a])
				weight += held.Weight[t]
			}
		}
	}
	return sum / weight
}
