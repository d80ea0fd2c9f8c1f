package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClassesByHand(t *testing.T) {
	// One function over features x, vip and country=DE; rows (x, vip, DE, intercept).
	features := []string{"x", "vip", "country=DE"}
	w := [][][]float64{{{0.1, 0.2, 0.3, 0.05}, {2, 0, 0, -1}}}
	linear, err := NewLinearClass(features, []string{"a", "b"}, w)
	if err != nil {
		t.Fatal(err)
	}
	logistic, err := NewLogisticClass(features, []string{"a", "b"}, w)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		x    Input
		a, b float64 // affine values
	}{
		{"nothing", Input{}, 0.05, -1},
		{"numbers", Input{Features: []Feature{num("x", 2)}}, 0.25, 3},
		{"bool", Input{Features: []Feature{flagged("vip", 1), num("x", -1)}}, 0.15, -3},
		{"text", Input{Features: []Feature{text("country", "DE"), text("x", "7")}}, 0.35, -1},
		{"other text", Input{Features: []Feature{text("country", "FR"), num("unknown", 9)}}, 0.05, -1},
		{"vector", Input{Vector: []float64{1, 1, 1}}, 0.65, 1},
		{"short vector", Input{Vector: []float64{1}}, 0.15, 1},
		{"long vector", Input{Vector: []float64{1, 0, 0, 5}}, 0.15, 1},
	} {
		x := c.x
		x.Actions = named("b", "nobody", "a")
		dst := make([]float64, 1)
		for i, v := range []float64{c.b, 0, c.a} {
			lin, log := math.Max(0, math.Min(1, v)), 1/(1+math.Exp(-v))
			if i == 1 {
				lin, log = 0.5, 0.5
			}
			if linear.Eval(dst, &x, i); !near(dst[0], lin) {
				t.Errorf("%s: linear %d: %v, want %v", c.name, i, dst[0], lin)
			}
			if logistic.Eval(dst, &x, i); !near(dst[0], log) {
				t.Errorf("%s: logistic %d: %v, want %v", c.name, i, dst[0], log)
			}
		}
	}
	if got := fmt.Sprint(linear.Features(), linear.Actions(), linear.Size()); got != "[x vip country=DE] [a b] 1" {
		t.Error(got)
	}
}

func TestTabularByHand(t *testing.T) {
	c, err := NewTabularClass([]string{"hour", "country", "vip"}, []string{"a", "b"}, []map[string][]float64{
		{"14|DE|true": {0.1, 0.2}, "||": {0.3, 1.7}},
		{"14|DE|true": {0.6, -1}, "1000000|0.5|false": {0.8, 0.9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		x    Input
		want string
	}{
		{Input{Features: []Feature{flagged("vip", 1), text("country", "DE"), num("hour", 14)}}, "[0.1 0.6] [0.2 0]"},
		{Input{}, "[0.3 0.5] [1 0.5]"},
		{Input{Features: []Feature{num("hour", 1e6), num("country", 0.5), flagged("vip", 0)}}, "[0.5 0.8] [0.5 0.9]"},
		{Input{Features: []Feature{num("hour", 15)}}, "[0.5 0.5] [0.5 0.5]"},
	} {
		k.x.Actions = named("a", "b", "c")
		a, b, u := make([]float64, 2), make([]float64, 2), make([]float64, 2)
		c.Eval(a, &k.x, 0)
		c.Eval(b, &k.x, 1)
		c.Eval(u, &k.x, 2)
		if got := fmt.Sprint(a, b); got != k.want || u[0] != 0.5 {
			t.Errorf("%+v: %s %v, want %s", k.x.Features, got, u, k.want)
		}
	}
	vector := &Input{Vector: []float64{14, 0}, Actions: named("a")}
	if key := string(c.appendKey(nil, vector)); key != "14|0|" {
		t.Errorf("key of a vector %q", key)
	}
}

func TestClassesRefuse(t *testing.T) {
	row := []float64{1, 0}
	for name, f := range map[string]func() error{
		"no actions":   func() error { _, err := NewLinearClass([]string{"x"}, nil, nil); return err },
		"no functions": func() error { _, err := NewLinearClass([]string{"x"}, []string{"a"}, nil); return err },
		"twice x":      func() error { _, err := NewLogisticClass([]string{"x", "x"}, []string{"a"}, nil); return err },
		"twice a":      func() error { _, err := NewLogisticClass(nil, []string{"a", "a"}, nil); return err },
		"rows": func() error {
			_, err := NewLinearClass([]string{"x"}, []string{"a", "b"}, [][][]float64{{row}})
			return err
		},
		"columns": func() error {
			_, err := NewLinearClass([]string{"x"}, []string{"a"}, [][][]float64{{{1}}})
			return err
		},
		"NaN": func() error {
			_, err := NewLinearClass(nil, []string{"a"},
				[][][]float64{{{math.NaN()}}})
			return err
		},
		"no tables": func() error { _, err := NewTabularClass(nil, []string{"a"}, nil); return err },
		"table width": func() error {
			_, err := NewTabularClass(nil, []string{"a"}, []map[string][]float64{{"": row}})
			return err
		},
		"infinite loss": func() error {
			_, err := NewTabularClass(nil, []string{"a"}, []map[string][]float64{{"": {math.Inf(1)}}})
			return err
		},
	} {
		if err := f(); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), "class:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unmixed hides a class's Mix.
type unmixed struct{ Class }

// TestMix: Hedge has the same bits with Mix and with Eval.
func TestMix(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	features, actions := []string{"p", "q", "r=u", "s"}, []string{"a", "b", "c", "d", "e", "f"}
	var w [][][]float64
	var tables []map[string][]float64
	for range 12 {
		var rows [][]float64
		for range actions {
			row := make([]float64, len(features)+1)
			for j := range row {
				row[j] = rng.Float64()*2 - 1
			}
			rows = append(rows, row)
		}
		w = append(w, rows)
		row := make([]float64, len(actions))
		for a := range row {
			row[a] = rng.Float64()
		}
		tables = append(tables,
			map[string][]float64{"|||": row, "1|||": {rng.Float64(), 0, 1, rng.Float64(), rng.Float64(), .5}})
	}
	linear, _ := NewLinearClass(features, actions, w)
	logistic, _ := NewLogisticClass(features, actions, w)
	tabular, _ := NewTabularClass(features, actions, tables)
	var functions []MixedFunction
	for i, rows := range w {
		functions = append(functions, MixedFunction{Linear: rows})
		if i%3 == 1 {
			functions[i] = MixedFunction{Logistic: rows}
		} else if i%3 == 2 {
			functions[i] = MixedFunction{Trees: []Tree{{Splits: []Split{{Column: i % 4, At: 0, Low: -1, High: -2}},
				Leaves: [][]float64{slices.Concat(rows[0], rows[1][:1]), slices.Concat(rows[2], rows[3][:1])}}}}
		}
	}
	mixed, _ := NewMixedClass(features, actions, functions)
	for name, c := range map[string]Class{"linear": linear, "logistic": logistic, "tabular": tabular, "mixed": mixed} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				mixed, plain := newHedge(c, HedgeOptions{}), newHedge(unmixed{c}, HedgeOptions{})
				for range rapid.IntRange(1, 30).Draw(rt, "rounds") {
					x := &Input{Actions: named(rapid.SliceOfNDistinct(rapid.SampledFrom(append(actions, "?", "!")), 1,
						8,
						rapid.ID[string]).Draw(rt, "actions")...)}
					for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r", "s", "t"}), 0, 5,
						rapid.ID[string]).Draw(rt, "names") {
						if rapid.Bool().Draw(rt, "text") {
							x.Features = append(x.Features, text(n, "u"))
						} else {
							x.Features = append(x.Features, num(n, float64(rapid.IntRange(-2, 2).Draw(rt, "v"))))
						}
					}
					p, q := predictions(mixed, x), predictions(plain, x)
					for i := range p {
						if p[i] != q[i] {
							rt.Fatalf("Mix %v, Eval %v", p, q)
						}
					}
					a := rapid.IntRange(0, len(x.Actions)-1).Draw(rt, "a")
					mixed.Update(x, a, 1)
					plain.Update(x, a, 1)
				}
			})
		})
	}
}
