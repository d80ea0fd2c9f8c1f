package oracle

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSharedClassByHand: with x̃ = (h, 1) and b̃ = (price, kind=food, name is a, 1) the rows
// are what each of b̃ multiplies.
func TestSharedClassByHand(t *testing.T) {
	w := [][]float64{{.01, .02}, {0, .1}, {.05, 0}, {.001, .2}}
	trees := []Tree{
		{Splits: []Split{{Column: 0, At: 2, Low: -1, High: 1}, {Column: 1, At: 4, Low: -2, High: -3}},
			Leaves: [][]float64{{.1}, {.2}, {.9}}},
		{Splits: []Split{{Column: 3, At: .5, Low: -1, High: -2}}, Leaves: [][]float64{{.4}, {2}}},
	}
	c, err := NewSharedClass([]string{"h"}, []string{"price", "kind=food", "=a"},
		[]MixedFunction{{Linear: w}, {Logistic: w}, {Trees: trees}})
	if err != nil {
		t.Fatal(err)
	}
	x := &Input{Features: []Feature{num("h", 3)}, Actions: []Action{
		{Name: "a", Features: []Feature{num("price", 5), text("kind", "food")}},
		{Name: "new", Features: []Feature{num("price", 4), text("kind", "toys"), num("more", 9)}},
		{Name: "bare"},
	}}
	for a, want := range [][2]float64{
		{5*(.03+.02) + .1 + .15 + .203, 1}, // (.9+2)/2 is clipped
		{4*(.03+.02) + .203, .3},           // (.2+.4)/2
		{.203, .3},                         // price is 0
	} {
		got := make([]float64, 3)
		if c.Eval(got, x, a); !near(got[0], want[0]) || !near(got[1], 1/(1+math.Exp(-want[0]))) || !near(got[2],
			want[1]) {
			t.Errorf("action %d: %v, want %v", a, got, want)
		}
	}
	x.Features, x.Vector = nil, []float64{3}
	got := make([]float64, 2)
	if c.EvalSome(got, []int32{0, 2}, x, 0); !near(got[0], .703) || !near(got[1], 1) {
		t.Errorf("of a vector: %v", got)
	}
}

// TestSharedClassMixes: a mixture is that of the values one by one, to the bit, and costs no
// memory; nor does a value.
func TestSharedClassMixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	var functions []MixedFunction
	for i := range 8 {
		w := [][]float64{}
		for range 3 {
			w = append(w, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()})
		}
		w[rng.IntN(3)] = []float64{0, 0, 0}
		f := MixedFunction{Linear: w}
		if i%2 == 1 {
			f = MixedFunction{Logistic: w}
		}
		functions = append(functions, f)
	}
	functions = append(functions,
		MixedFunction{
			Trees: []Tree{{Splits: []Split{{Column: 2, At: .1, Low: -1, High: -2}}, Leaves: [][]float64{{.3}, {.7}}}}})
	c, err := NewSharedClass([]string{"p", "q=u"}, []string{"r", "s=v"}, functions)
	if err != nil {
		t.Fatal(err)
	}
	q, x := make([]float64, c.Size()), &Input{Features: []Feature{num("p", .7), text("q", "u")}}
	for i := range q {
		q[i] = rng.Float64() * float64(i%3)
	}
	for range 4 {
		x.Actions = append(x.Actions,
			Action{Name: "z", Features: []Feature{num("r", rng.NormFloat64()), text("s", []string{"v",
				"w"}[rng.IntN(2)])}})
	}
	mixed, values := make([]float64, len(x.Actions)), make([]float64, c.Size())
	all := func() {
		c.Mix(mixed, q, x)
		for a := range x.Actions {
			c.Eval(values, x, a)
		}
	}
	all()
	for a := range x.Actions {
		c.Eval(values, x, a)
		want := 0.0
		for i, v := range values {
			if q[i] != 0 {
				want += float64(q[i] * v)
			}
		}
		if mixed[a] != want {
			t.Errorf("action %d: %v, one by one %v", a, mixed[a], want)
		}
	}
	if n := testing.AllocsPerRun(50, all); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSharedClassRefuses(t *testing.T) {
	row := []float64{0, 0}
	for want, f := range map[string]MixedFunction{
		"exactly one":    {},
		"1 rows where 2": {Linear: [][]float64{row}},
		"row 1, of a number a feature and the intercept: 1 numbers where 2": {Logistic: [][]float64{row, {0}}},
		"row 0, of a number a feature and the intercept: NaN is not": {Linear: [][]float64{{0, math.NaN()},
			row}},
		"leaf 0: 2 numbers where 1": {Trees: []Tree{{Leaves: [][]float64{{0, 1}}}}},
		"column 2": {
			Trees: []Tree{{Splits: []Split{{Column: 2, Low: -1, High: -1}}, Leaves: [][]float64{{0}}}}},
	} {
		if _, err := NewSharedClass([]string{"x"}, []string{"p"}, []MixedFunction{f}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	one := []MixedFunction{{Linear: [][]float64{row, row, row}}}
	for want, call := range map[string]func() error{
		"no functions": func() error { _, err := NewSharedClass(nil, []string{"p"}, nil); return err },
		`action feature "p" is listed twice`: func() error {
			_, err := NewSharedClass([]string{"x"}, []string{"p", "p"}, one)
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
