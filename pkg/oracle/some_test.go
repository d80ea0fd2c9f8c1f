package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEvalSome holds that some functions have the bits that they have among all, for
// every kind of class, of inputs, and of actions, unknown ones included.
func TestEvalSome(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const size = 17
	var w [][][]float64
	var tables []map[string][]float64
	for range size {
		rows, table := [][]float64{}, map[string][]float64{}
		for range 2 {
			rows = append(rows, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
		}
		for _, key := range []string{"1|red", "2|blue"} {
			table[key] = []float64{rng.Float64(), rng.Float64()}
		}
		w, tables = append(w, rows), append(tables, table)
	}
	features, actions := []string{"n", "colour=red"}, []string{"a", "b"}
	linear, err1 := NewLinearClass(features, actions, w)
	logistic, err2 := NewLogisticClass(features, actions, w)
	tabular, err3 := NewTabularClass([]string{"n", "colour"}, actions, tables)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	x := &Input{Actions: named("b", "stranger", "a"), Features: []Feature{{Name: "n", Kind: Number, Value: 1},
		{Name: "colour", Kind: Text, Text: "red"}}}
	all := make([]float64, size)
	for name, c := range map[string]Class{"linear": linear, "logistic": logistic, "tabular": tabular} {
		for range 50 {
			x.Features[0].Value = float64(rng.IntN(3))
			var which []int32
			for i := range int32(size) {
				if rng.IntN(2) == 0 {
					which = append(which, i)
				}
			}
			for a := range x.Actions {
				some := make([]float64, len(which))
				c.(Picker).EvalSome(some, which, x, a)
				c.Eval(all, x, a)
				for j, i := range which {
					if math.Float64bits(some[j]) != math.Float64bits(all[i]) {
						t.Fatalf("%s: function %d of action %d is %v among some, %v among all", name, i, a,
							some[j], all[i])
					}
				}
			}
		}
	}
}

// TestHedgeSharesValues holds that learning from values that are at hand is learning, and
// their mean the prediction, to the bit.
func TestHedgeSharesValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	c := make(table, 30)
	for i := range c {
		c[i] = []float64{rng.Float64(), rng.Float64()}
	}
	x := &Input{Actions: named("a", "b")}
	own, shared := newHedge(c, HedgeOptions{}), newHedge(c, HedgeOptions{})
	for range 400 {
		p := predictions(own, x)
		for a := range p {
			if m := shared.Mean(shared.Values(x, a)); math.Float64bits(m) != math.Float64bits(p[a]) {
				t.Fatalf("mean %v, predicted %v", m, p[a])
			}
		}
		a, y := rng.IntN(2), rng.Float64()
		own.Update(x, a, y)
		shared.UpdateValues(slices.Clone(shared.Values(x, a)), y)
	}
	b1, _ := own.AppendBinary(nil)
	b2, _ := shared.AppendBinary(nil)
	if fmt.Sprintf("%x", b1) != fmt.Sprintf("%x", b2) {
		t.Error("another state")
	}
}
