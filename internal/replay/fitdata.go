package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	classes "hindsight/internal/fit" // the tests of this package have a fit of their own
	"hindsight/internal/random"
	"hindsight/pkg/codec"
)

// FitOptions say what of an environment a class of functions is fitted to.
type FitOptions struct {
	Rows    int // the first so many; 0: all
	Columns int // at most so many; of texts the values that occur most
	// columns of actions at most, if functions are shared by all actions and go by features of theirs; 0: functions are
	// of named actions
	Shared int
	Bandit bool   // where the loss of every action is known, that of one counts, drawn uniformly
	Seed   uint64 // of that draw
}

// FitData returns what functions are fitted to: the losses of all actions where they are known (a labelled CSV, a
// built-in environment), else that of the recorded action, weighted by 1/propensity where the log has propensities,
// times the events that a row stands for. Columns are numbers, bools, and a text's values as NAME=VALUE; an absent
// number is 0, as a class reads it.
func FitData(env *Rounds, o FitOptions) (*classes.Data, error) {
	n := env.Len()
	if o.Rows > 0 {
		n = min(n, o.Rows)
	}
	b := fitBuilder{env: env, o: o, stream: random.New(o.Seed, "fit")}
	d := &classes.Data{Actions: env.Actions}
	d.Features = b.columns(n)
	if o.Shared > 0 {
		return b.shared(d, n)
	}
	if len(d.Features) == 0 {
		return nil, fmt.Errorf("%s has no features: a class of constants needs no fit", env.Name)
	}
	for t := range n {
		loss, weight := b.losses(t)
		if loss == nil {
			continue
		}
		d.X = append(d.X, b.row(t))
		d.Loss = append(d.Loss, loss)
		d.Weight = append(d.Weight, weight)
	}
	return d, nil
}

type fitBuilder struct {
	env    *Rounds
	o      FitOptions
	stream random.Stream
	ctx    codec.Context
	at     map[string]int // column

	eligible []int32
}

// columns chooses the columns by the first n rows, and returns their names in byte order.
func (b *fitBuilder) columns(n int) []string {
	seen := map[string]int{}
	for t := range n {
		b.env.Context(&b.ctx, t)
		for i := range b.ctx.Features {
			if f := &b.ctx.Features[i]; f.Kind != codec.Vector {
				seen[columnName(f)]++
			}
		}
		for i := range b.ctx.Vector {
			seen[vectorName(i)]++
		}
	}
	names := frequent(seen, func(n int) int { return n }, b.o.Columns)
	b.at = map[string]int{}
	for i, name := range names {
		b.at[name] = i
	}
	return names
}

// frequent returns the names that were seen most, at most so many, in byte order.
func frequent[V any](all map[string]V, seen func(V) int, most int) []string {
	names := slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		return cmp.Or(cmp.Compare(seen(all[y]), seen(all[x])), cmp.Compare(x, y))
	})
	names = names[:min(len(names), most)]
	slices.Sort(names)
	return names
}

// columnName is the column that a feature is in: that of a class file.
func columnName(f *codec.Feature) string {
	if f.Kind == codec.Text {
		return f.Name + "=" + f.Text
	}
	return f.Name
}

// vectorName names place i of a vector such that byte order is that of places: a class matches vectors by place.
func vectorName(i int) string { return fmt.Sprintf("v%05d", i) }

func (b *fitBuilder) row(t int) []float64 {
	x := make([]float64, len(b.at))
	b.env.Context(&b.ctx, t)
	for i := range b.ctx.Features {
		f := &b.ctx.Features[i]
		if at, ok := b.at[columnName(f)]; ok {
			if x[at] = f.Value; f.Kind == codec.Text {
				x[at] = 1
			}
		}
	}
	for i, v := range b.ctx.Vector {
		if at, ok := b.at[vectorName(i)]; ok {
			x[at] = v
		}
	}
	return x
}

// losses returns the losses of a row, NaN where they are not known, and its weight; nil if none is.
func (b *fitBuilder) losses(t int) ([]float64, float64) {
	k := len(b.env.Actions)
	out := make([]float64, k)
	log := b.env.Log
	if log == nil && !b.o.Bandit {
		for a := range out {
			out[a] = b.env.Loss(t, a)
		}
		return out, 1
	}
	for a := range out {
		out[a] = math.NaN()
	}
	if log == nil {
		a := min(int(float64(k)*b.stream.Uniform(uint64(t), 0)), k-1)
		out[a] = b.env.Loss(t, a)
		return out, float64(k)
	}
	row := b.env.Row(t)
	if !log.Observed(row) {
		return nil, 0
	}
	out[log.Action[row]] = log.Loss(row, log.Slot(row))
	if log.Props == nil {
		return out, log.Stands(row)
	}
	return out, 1 / log.Kept(row)
}
