package fit

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/oracle"
)

// ads makes n rows of one action each: the loss is a 1 with probability q·(0.1 + 0.8·r),
// where q of the context is 0 or 1 and r of the action is in [0,1]: neither alone says it.
func ads(seed uint64, n int) *Data {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := &Data{Features: []string{"noise", "q=1"}, ActionFeatures: []string{"kind=food", "r"}}
	for range n {
		q, r, loss := float64(rng.IntN(2)), rng.Float64(), 0.0
		if rng.Float64() < q*(.1+.8*r) {
			loss = 1
		}
		d.X = append(d.X, []float64{rng.Float64(), q, float64(rng.IntN(2)), r})
		d.Loss, d.Weight = append(d.Loss, []float64{loss}), append(d.Weight, 1+float64(rng.IntN(3)))
	}
	return d
}

// TestSharedFit: functions over the context, the action's features and their products find
// what neither says alone, of actions that were never seen; the class file holds them, and
// the oracle reads them from named features as they were fitted.
func TestSharedFit(t *testing.T) {
	d := ads(1, 900)
	o := Defaults()
	o.Functions = 12
	c, err := Fit(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	if c.File.Kind != model.SharedClass || len(c.Functions) != 12 || !(c.Functions[0].HeldOut < .85*c.Constant) {
		t.Fatalf("%s, %d functions, the best %+v, constants %v", c.File.Kind, len(c.Functions), c.Functions[0],
			c.Constant)
	}
	text := c.File.Append(nil)
	read, err := model.ParseClass("c", text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read.Append(nil), text) {
		t.Error("the class file is not read as it was written")
	}
	class, err := read.Class()
	if err != nil {
		t.Fatal(err)
	}
	value := make([]float64, class.Size())
	at := func(q string, r float64) []float64 {
		class.Eval(value, &oracle.Input{Features: []oracle.Feature{{Name: "q", Kind: oracle.Text, Text: q},
			{Name: "noise", Kind: oracle.Number, Value: .5}},
			Actions: []oracle.Action{{Name: "new", Features: []oracle.Feature{{Name: "r", Kind: oracle.Number,
				Value: r}, {Name: "kind", Kind: oracle.Text, Text: "toys"}}}}}, 0)
		return value
	}
	for i, want := range map[string][2]float64{"1": {.18, .82}, "0": {0, 0}} {
		for j, r := range []float64{.1, .9} {
			if best := at(i, r)[0]; math.Abs(best-want[j]) > .12 {
				t.Errorf("q = %s, r = %v: the best function says %v, the truth is %v", i, r, best, want[j])
			}
		}
	}
}

// TestMatrixByHand: the matrix of a class says of a row what the coefficients over its
// columns and their products say.
func TestMatrixByHand(t *testing.T) {
	d := ads(3, 1)
	if d.width() != 8 {
		t.Fatalf("width %d", d.width())
	}
	var w []float64 // noise, q, food, r, noise·food, noise·r, q·food, q·r, intercept
	for j := range 9 {
		w = append(w, float64(j+1)/100)
	}
	if got := fmt.Sprint(d.matrix(w)); got != "[[0.05 0.07 0.03] [0.06 0.08 0.04] [0.01 0.02 0.09]]" {
		t.Errorf("matrix %s", got)
	}
	x := []float64{.5, 1, 1, .25}
	for j, want := range []float64{.5, 1, 1, .25, .5, .125, 1, .25} {
		if got := d.value(x, j); got != want {
			t.Errorf("column %d is %v, want %v", j, got, want)
		}
	}
}

// TestChooseShared: a product comes with both of its columns, and there are no more than a
// fit can bear.
func TestChooseShared(t *testing.T) {
	d := &Data{Features: make([]string, 60), ActionFeatures: make([]string, 40)}
	rng := rand.New(rand.NewPCG(1, 1))
	products := 0
	for range 200 {
		columns := d.chooseShared(shares[rng.IntN(len(shares))], true, rng)
		has := map[int]bool{}
		for _, j := range columns {
			has[j] = true
		}
		for _, j := range columns {
			if j >= 100 {
				products++
				if p := j - 100; !has[p/40] || !has[60+p%40] {
					t.Fatalf("product %d is without its columns", j)
				}
			}
		}
		if len(has) != len(columns) || len(columns) > mostLinear {
			t.Fatalf("%d columns, %d different", len(columns), len(has))
		}
	}
	for _, j := range d.chooseShared(1, false, rng) {
		if j >= 100 {
			t.Fatal("a tree has products")
		}
	}
	if products == 0 {
		t.Error("no products were drawn")
	}
}
