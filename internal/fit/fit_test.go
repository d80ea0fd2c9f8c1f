package fit

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/model"
	"hindsight/pkg/oracle"
)

// world makes n rows of d columns, uniform in [−1,1], and losses of two actions with the
// means that mean says; all known.
func world(seed uint64, n, d int, mean func(x []float64, a int) float64) *Data {
	rng := rand.New(rand.NewPCG(seed, 1))
	data := &Data{Actions: []string{"a", "b"}}
	for j := range d {
		data.Features = append(data.Features, string(rune('p'+j)))
	}
	for range n {
		x := make([]float64, d)
		for j := range x {
			x[j] = 2*rng.Float64() - 1
		}
		data.X = append(data.X, x)
		loss := make([]float64, 2)
		for a := range loss {
			if rng.Float64() < mean(x, a) {
				loss[a] = 1
			}
		}
		data.Loss = append(data.Loss, loss)
		data.Weight = append(data.Weight, 1)
	}
	return data
}

// whole is a sample that has every row once and all columns.
func whole(d *Data) *sample {
	s := &sample{data: d, scale: d.scaling(), count: make([]float64, d.Len())}
	for t := range s.count {
		s.count[t] = 1
	}
	for j := range d.Features {
		s.columns = append(s.columns, j)
	}
	return s
}

// TestRidgeByHand: losses that are linear are found, and a large λ leaves the mean.
func TestRidgeByHand(t *testing.T) {
	d := &Data{Features: []string{"x", "none"}, Actions: []string{"a"}}
	for i := range 5 {
		x := float64(i)
		d.X, d.Loss, d.Weight = append(d.X, []float64{x, 7}), append(d.Loss, []float64{.1 + .2*x}), append(d.Weight, 3)
	}
	got := whole(d).ridge(1e-9)[0]
	for j, want := range []float64{.2, 0, .1} {
		if math.Abs(got[j]-want) > 1e-5 {
			t.Errorf("coefficients %v", got)
		}
	}
	// Weights are divided by their mean, and z has Σz² = n = 5: the slope in z is 5·.2·√2/(5+λ).
	lambda := 20.
	if got = whole(d).ridge(lambda)[0]; math.Abs(got[0]-.2*5/(5+lambda)) > 1e-6 {
		t.Errorf("λ = %v: slope %v", lambda, got[0])
	}
	if got = whole(d).ridge(1e9)[0]; math.Abs(got[2]-.5) > 1e-5 {
		t.Errorf("the intercept %v is shrunk", got[2])
	}
}

// TestLogistic finds the coefficients that made the losses.
func TestLogistic(t *testing.T) {
	w := [][]float64{{1.5, -1, .3}, {0, 2, -.5}}
	d := world(1, 6000, 2, func(x []float64, a int) float64 {
		return oracle.Sigmoid(w[a][0]*x[0] + w[a][1]*x[1] + w[a][2])
	})
	for a, row := range whole(d).logistic(.01) {
		for j, v := range row {
			if math.Abs(v-w[a][j]) > .15 {
				t.Errorf("action %d: %v, want %v", a, row, w[a])
			}
		}
	}
}

// TestTree finds a step that no line can tell, and keeps leaves as large as they must be.
func TestTree(t *testing.T) {
	d := world(1, 2000, 3, func(x []float64, a int) float64 {
		if (x[0] > 0) == (x[1] > 0) {
			return .9 - .8*float64(a)
		}
		return .1 + .8*float64(a)
	})
	tree := whole(d).tree(treeOptions{depth: 6, leaf: 20, try: 1}, rand.New(rand.NewPCG(1, 1)))
	class, err := oracle.NewMixedClass(d.Features, d.Actions, []oracle.MixedFunction{{Trees: []oracle.Tree{tree}}})
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i := range 400 {
		x := &oracle.Input{Vector: []float64{-.95 + .1*float64(i%20), -.95 + .1*float64(i/20), 0},
			Actions: []oracle.Action{{Name: "a"}}}
		var got [1]float64
		class.Eval(got[:], x, 0)
		if (got[0] > .5) != ((x.Vector[0] > 0) == (x.Vector[1] > 0)) {
			wrong++
		}
	}
	if wrong > 60 { // its first split is arbitrary: neither column tells anything alone
		t.Errorf("%d of 400 points are on the wrong side", wrong)
	}
	if one := whole(d).tree(treeOptions{depth: 9, leaf: d.Len(), try: 1},
		rand.New(rand.NewPCG(1, 1))); len(one.Splits) != 0 || len(one.Leaves) != 1 {
		t.Errorf("%d splits with leaves of all rows", len(one.Splits))
	}
}

// logged makes of data what a log has that plays action a the more, the larger x is.
func logged(d *Data, weigh bool) *Data {
	rng := rand.New(rand.NewPCG(3, 3))
	out := *d
	out.Loss, out.Weight = nil, nil
	for t, x := range d.X {
		p := .5 + .45*x[0]
		a, w := 0, 1/p
		if rng.Float64() >= p {
			a, w = 1, 1/(1-p)
		}
		loss := []float64{math.NaN(), math.NaN()}
		loss[a] = d.Loss[t][a]
		if !weigh {
			w = 1
		}
		out.Loss, out.Weight = append(out.Loss, loss), append(out.Weight, w)
	}
	return &out
}

// TestImportance: of a log that prefers actions by their context, a fit that is too
// simple for the losses is that to all contexts if rows are weighed, and another if not.
func TestImportance(t *testing.T) {
	square := func(x []float64, a int) float64 { return x[0] * x[0] } // best constant 1/3
	d := world(2, 20000, 1, square)
	d.Features = []string{"x"}
	intercept := func(d *Data) float64 {
		s := whole(d)
		s.columns = nil
		return s.ridge(1)[0][1]
	}
	if got := intercept(logged(d, true)); math.Abs(got-1./3) > .03 {
		t.Errorf("weighed: %v, want 1/3", got)
	}
	skewed := world(2, 20000, 1, func(x []float64, _ int) float64 { return .5 + .5*x[0] }) // best constant 1/2
	if got := intercept(logged(skewed, true)); math.Abs(got-.5) > .03 {
		t.Errorf("weighed: %v, want 1/2", got)
	}
	if got := intercept(logged(skewed, false)); got < .6 {
		t.Errorf("not weighed: %v is not off: the test cannot fail", got)
	}
}

func options(functions int) Options {
	o := Defaults()
	o.Functions = functions
	return o
}

// TestFit: the class has what was asked for, its file builds, functions differ, the best
// come first and beat constants, and the same seed gives the same bytes.
func TestFit(t *testing.T) {
	d := world(1, 600, 3, func(x []float64, a int) float64 { return oracle.Sigmoid(3 * x[a]) })
	c, err := Fit(t.Context(), d, options(24))
	if err != nil {
		t.Fatal(err)
	}
	if c.Rows != 480 || c.HeldOut != 120 || len(c.Functions) != 24 || c.Tried != 24+c.Alike {
		t.Fatalf("%d rows, %d held out, %d functions of %d, %d alike", c.Rows, c.HeldOut, len(c.Functions),
			c.Tried, c.Alike)
	}
	text := c.File.Append(nil)
	back, err := model.ParseClass("f", text)
	if err != nil {
		t.Fatal(err)
	}
	class, err := back.Class()
	if err != nil || class.Size() != 24 {
		t.Fatal(err)
	}
	_, held := d.split(480)
	values, sum := make([]float64, 24), make([]float64, 24)
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	for i := range held.X {
		x.Vector = held.X[i]
		for a := range 2 {
			class.Eval(values, x, a)
			for f, v := range values {
				sum[f] += (v - held.Loss[i][a]) * (v - held.Loss[i][a]) / 240
			}
		}
	}
	survive := 0
	for i, f := range c.Functions {
		if math.Abs(f.HeldOut-sum[i]) > 1e-9 || i > 0 && f.HeldOut < c.Functions[i-1].HeldOut {
			t.Errorf("function %d, %s: held-out loss %v, measured %v", i, f.Kind, f.HeldOut, sum[i])
		}
		if f.Survives {
			survive++
		}
	}
	if last := c.Functions[23]; !c.Functions[0].Survives || last.Survives || last.HeldOut < c.Functions[0].HeldOut+.05 {
		t.Errorf("the best survives: %v; the worst, of loss %v: %v", c.Functions[0].Survives, last.HeldOut,
			last.Survives)
	}
	if survive != c.Surviving || c.Functions[0].HeldOut > .95*c.Constant {
		t.Errorf("%d survive, said %d; best %v, constant %v", survive, c.Surviving, c.Functions[0].HeldOut, c.Constant)
	}
	for _, kind := range Kinds() {
		if !slices.ContainsFunc(c.Functions, func(f Fitted) bool { return f.Kind == kind }) {
			t.Errorf("no %s", kind)
		}
	}
	again, err := Fit(t.Context(), d, options(24))
	if err != nil || !bytes.Equal(again.File.Append(nil), text) {
		t.Errorf("the same seed gave another class (%v)", err)
	}
}

// TestAlike: with a distance beyond any two functions one is left; the others were tried.
func TestAlike(t *testing.T) {
	d := world(1, 100, 1, func([]float64, int) float64 { return .5 })
	o := options(4)
	o.Distance = 2
	c, err := Fit(t.Context(), d, o)
	if err != nil || len(c.Functions) != 1 || c.Tried != extra*4 || c.Alike != extra*4-1 || c.Surviving != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	o.Distance = 0
	if c, err = Fit(t.Context(), d, o); err != nil || len(c.Functions) != 4 || c.Alike != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestFitRefuses(t *testing.T) {
	fine := world(1, 100, 1, func([]float64, int) float64 { return .5 })
	unknown := world(1, 100, 1, func([]float64, int) float64 { return .5 })
	for i := range unknown.Loss {
		unknown.Loss[i][1] = math.NaN()
	}
	for want, c := range map[string]struct {
		d *Data
		f func(o *Options)
	}{
		"a class has at least 1":    {fine, func(o *Options) { o.Functions = 0 }},
		"held out":                  {fine, func(o *Options) { o.HoldOut = 1 }},
		"cannot be negative":        {fine, func(o *Options) { o.Distance = -1 }},
		"between 0 and 1":           {fine, func(o *Options) { o.Alpha = 1 }},
		`"forest" is no kind`:       {fine, func(o *Options) { o.Kinds = []string{"forest"} }},
		"no kinds":                  {fine, func(o *Options) { o.Kinds = nil }},
		"rows or more":              {world(1, 9, 1, func([]float64, int) float64 { return 0 }), func(*Options) {}},
		`action "b" is known in no`: {unknown, func(*Options) {}},
	} {
		o := options(3)
		c.f(&o)
		if _, err := Fit(t.Context(), c.d, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Fit(ctx, fine, options(3)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
