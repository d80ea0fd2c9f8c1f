package fit

import (
	"math/rand/v2"
	"slices"

	"hindsight/internal/model"
	"hindsight/pkg/oracle"
)

// width is the number of columns that functions may be linear in: those of X, and behind them, where actions have
// features, the product of each of the context's with each of the action's.
func (d *Data) width() int {
	e := len(d.ActionFeatures)
	return len(d.Features) + e + len(d.Features)*e
}

// value returns column j of a row.
func (d *Data) value(x []float64, j int) float64 {
	if j < len(x) {
		return x[j]
	}
	e := len(d.ActionFeatures)
	return x[(j-len(x))/e] * x[len(d.Features)+(j-len(x))%e]
}

// matrix returns the coefficients over all columns, then the intercept, as
// [oracle.MixedFunction] has them: a row a column of the action, then that of the 1.
func (d *Data) matrix(w []float64) [][]float64 {
	n, e := len(d.Features), len(d.ActionFeatures)
	out := make([][]float64, e+1)
	for j := range out {
		out[j] = make([]float64, n+1)
	}
	for j := range e {
		for i := range n {
			out[j][i] = w[n+e+i*e+j]
		}
		out[j][n] = w[n+j]
	}
	copy(out[e], w[:n])
	out[e][n] = w[len(w)-1]
	return out
}

// mostLinear bounds how many columns a linear function with products has: its cost goes with the cube.
const mostLinear = 256

// chooseShared draws the columns of a function that is shared by all actions: some of the context's and some of the
// action's, and for three linear functions in four the products of the ones with the others.
func (d *Data) chooseShared(share float64, linear bool, rng *rand.Rand) []int {
	n, e := len(d.Features), len(d.ActionFeatures)
	ofContext, ofAction := pickColumns(n, share, rng), pickColumns(e, share, rng)
	products := linear && rng.IntN(4) > 0
	for products && (len(ofContext)+1)*(len(ofAction)+1) > mostLinear+1 {
		if len(ofContext) > len(ofAction) {
			ofContext = ofContext[1:]
		} else {
			ofAction = ofAction[1:]
		}
	}
	columns := slices.Clone(ofContext)
	for _, j := range ofAction {
		columns = append(columns, n+j)
		for _, i := range ofContext {
			if products {
				columns = append(columns, n+e+i*e+j)
			}
		}
	}
	slices.Sort(columns)
	return columns
}

// inputs returns what the oracle's functions see of each row.
func (d *Data) inputs() []oracle.Input {
	out := make([]oracle.Input, d.Len())
	var named []oracle.Action
	for _, a := range d.Actions {
		named = append(named, oracle.Action{Name: a})
	}
	for t, x := range d.X {
		in := &out[t]
		if in.Vector, in.Actions = x[:len(d.Features)], named; d.ActionFeatures == nil {
			continue
		}
		in.Actions = make([]oracle.Action, 1)
		for j, v := range x[len(d.Features):] {
			if v != 0 { // a column by its full name is a number, whatever it stands for
				in.Actions[0].Features = append(in.Actions[0].Features, oracle.Feature{Name: d.ActionFeatures[j],
					Kind: oracle.Number, Value: v})
			}
		}
	}
	return out
}

// file returns the class of these functions.
func (d *Data) file(functions ...model.Function) *model.ClassFile {
	if d.ActionFeatures != nil {
		return &model.ClassFile{Kind: model.SharedClass, Features: d.Features, ActionFeatures: d.ActionFeatures,
			Functions: functions}
	}
	return &model.ClassFile{Kind: model.MixedClass, Features: d.Features, Actions: d.Actions, Functions: functions}
}
