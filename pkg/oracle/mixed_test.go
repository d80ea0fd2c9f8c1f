package oracle

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// handTrees are one tree of two splits and one that is a leaf, over x and country=DE for
// the actions a and b.
func handTrees() []Tree {
	return []Tree{
		{Splits: []Split{{Column: 0, At: 2, Low: -1, High: 1}, {Column: 1, At: .5, Low: -2, High: -3}},
			Leaves: [][]float64{{.1, .9}, {.2, .8}, {.3, 2}}},
		{Leaves: [][]float64{{.5, .4}}},
	}
}

func TestMixedByHand(t *testing.T) {
	row := [][]float64{{.1, .2, .05}, {2, 0, -1}}
	c, err := NewMixedClass([]string{"x", "country=DE"}, []string{"a", "b"},
		[]MixedFunction{{Linear: row}, {Logistic: row}, {Trees: handTrees()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		x    []Feature
		a, b [3]float64 // affine value, and that of the trees
	}{
		{nil, [3]float64{.05, .05, .3}, [3]float64{-1, -1, .65}},
		{[]Feature{num("x", 2)}, [3]float64{.25, .25, .3}, [3]float64{3, 3, .65}},
		{[]Feature{num("x", 2.5)}, [3]float64{.3, .3, .35}, [3]float64{4, 4, .6}},
		// (2+.4)/2 is clipped
		{[]Feature{num("x", 2.5), text("country", "DE")}, [3]float64{.5, .5, .4}, [3]float64{4, 4, 1}},
	} {
		x := &Input{Features: k.x, Actions: named("b", "?", "a")}
		got := make([]float64, 3)
		for i, want := range [][3]float64{k.b, {}, k.a} {
			c.Eval(got, x, i)
			lin, log := math.Max(0, math.Min(1, want[0])), 1/(1+math.Exp(-want[1]))
			if i == 1 {
				lin, log, want[2] = .5, .5, .5
			}
			if !near(got[0], lin) || !near(got[1], log) || !near(got[2], want[2]) {
				t.Errorf("%v, %s: %v, want %v %v %v", k.x, x.Actions[i].Name, got, lin, log, want[2])
			}
			some := make([]float64, 2)
			if c.EvalSome(some, []int32{0, 2}, x, i); some[0] != got[0] || some[1] != got[2] {
				t.Errorf("some: %v of %v", some, got)
			}
		}
	}
}

// TestMixedEqualsPlain: linear and logistic functions of a mixed class are those of the
// classes of their own, to the bit.
func TestMixedEqualsPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	features, actions := []string{"p", "q", "r"}, []string{"a", "b"}
	var w [][][]float64
	var linear, logistic []MixedFunction
	for range 5 {
		rows := make([][]float64, len(actions))
		for a := range rows {
			rows[a] = []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		}
		w = append(w, rows)
		linear, logistic = append(linear, MixedFunction{Linear: rows}), append(logistic, MixedFunction{Logistic: rows})
	}
	plain1, _ := NewLinearClass(features, actions, w)
	plain2, _ := NewLogisticClass(features, actions, w)
	mixed1, _ := NewMixedClass(features, actions, linear)
	mixed2, _ := NewMixedClass(features, actions, logistic)
	for range 50 {
		x := &Input{Vector: []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()},
			Actions: named("a", "b")}
		for a := range actions {
			for _, c := range [][2]Class{{plain1, mixed1}, {plain2, mixed2}} {
				p, m := make([]float64, 5), make([]float64, 5)
				c[0].Eval(p, x, a)
				c[1].Eval(m, x, a)
				for i := range p {
					if p[i] != m[i] {
						t.Fatalf("%v and %v", p, m)
					}
				}
			}
		}
	}
}

func TestMixedRefuses(t *testing.T) {
	leaf := [][]float64{{0, 1}}
	tree := func(s Split, leaves [][]float64) MixedFunction {
		return MixedFunction{Trees: []Tree{{Splits: []Split{s}, Leaves: leaves}}}
	}
	for name, f := range map[string]MixedFunction{
		"none":       {},
		"two":        {Linear: [][]float64{{0, 0}, {0, 0}}, Trees: []Tree{{Leaves: leaf}}},
		"no trees":   {Trees: []Tree{}},
		"no leaves":  {Trees: []Tree{{}}},
		"rows":       {Linear: [][]float64{{0, 0}}},
		"numbers":    {Logistic: [][]float64{{0}, {0}}},
		"NaN":        {Linear: [][]float64{{0, math.NaN()}, {0, 0}}},
		"leaf width": {Trees: []Tree{{Leaves: [][]float64{{0}}}}},
		"infinite":   {Trees: []Tree{{Leaves: [][]float64{{0, math.Inf(1)}}}}},
		"column":     tree(Split{Column: 1, Low: -1, High: -1}, leaf),
		"column -1":  tree(Split{Column: -1, Low: -1, High: -1}, leaf),
		"at":         tree(Split{At: math.NaN(), Low: -1, High: -1}, leaf),
		"itself":     tree(Split{Low: 0, High: -1}, leaf),
		"no split":   tree(Split{Low: -1, High: 1}, leaf),
		"no leaf":    tree(Split{Low: -1, High: -2}, leaf),
	} {
		if _, err := NewMixedClass([]string{"x"}, []string{"a", "b"}, []MixedFunction{f}); err == nil ||
			!strings.Contains(err.Error(), "mixed class:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewMixedClass(nil, []string{"a"}, nil); err == nil {
		t.Error("an empty class was accepted")
	}
}

func TestMixedAllocates(t *testing.T) {
	c, err := NewMixedClass([]string{"x", "country=DE"}, []string{"a", "b"},
		[]MixedFunction{{Linear: [][]float64{{1, 0, 0}, {0, 0, 1}}}, {Trees: handTrees()}})
	if err != nil {
		t.Fatal(err)
	}
	x := &Input{Features: []Feature{num("x", 3), text("country", "DE")}, Actions: named("a", "b")}
	h := newHedge(c, HedgeOptions{})
	dst, which := make([]float64, 2), []int32{1}
	if n := testing.AllocsPerRun(100, func() {
		h.Predict(dst, x)
		h.Update(x, 1, 1)
		c.EvalSome(dst, which, x, 0)
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}
