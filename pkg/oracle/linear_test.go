package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	_ "hindsight/internal/testkit/roomy"
)

func newLinear(o LinearOptions) *Linear {
	l, err := NewLinear(o)
	if err != nil {
		panic(err)
	}
	return l
}

func predictions(r Regressor, x *Input) []float64 {
	dst := make([]float64, len(x.Actions))
	r.Predict(dst, x)
	return dst
}

func num(name string, v float64) Feature { return Feature{Name: name, Kind: Number, Value: v} }
func text(name, v string) Feature        { return Feature{Name: name, Kind: Text, Text: v} }
func flagged(name string, v float64) Feature {
	return Feature{Name: name, Kind: Bool, Value: v}
}

func named(actions ...string) (out []Action) {
	for _, a := range actions {
		out = append(out, Action{Name: a})
	}
	return out
}

// TestLinearByHand follows two examples without features through the formulas:
// z = (1), λ = 1, so P = 1, then ½, then ⅓.
func TestLinearByHand(t *testing.T) {
	l := newLinear(LinearOptions{Beta: 0.5})
	x := &Input{Actions: named("a", "b")}
	want := func(a, b, regret float64) {
		t.Helper()
		p := predictions(l, x)
		if !near(p[0], a) || !near(p[1], b) || !near(l.Regret(), regret) {
			t.Fatalf("predictions %v, regret %v; want %v %v, %v", p, l.Regret(), a, b, regret)
		}
	}
	want(0, 0, 0)
	l.Update(x, 0, 1) // u = 1, e = 1: w = ½, P = ½, R = ½
	want(0.5/(1+0.5*0.5), 0, 0.5)
	l.Update(x, 0, 1)                       // u = ½, e = ½: w = ½ + ½·½/1.5 = 2/3, P = ⅓
	want(2.0/3/(1+0.5/3), 0, 0.5+0.125/1.5) // R += ¼·½/1.5
}

// TestLinearRegretIdentity: for β = 0 the regret Σe²u/(1+u) is exactly the loss
// over the λ-regularised comparator (sum of e²/(1+u) = min_w Σ(y−wz)² + λ|w|²).
func TestLinearRegretIdentity(t *testing.T) {
	l := newLinear(LinearOptions{Lambda: 2, Schema: []FeatureSpec{{"x", -1, 1}}})
	rng := rand.New(rand.NewPCG(1, 1))
	var zs [][2]float64
	var ys []float64
	online := 0.0
	for range 50 {
		x := &Input{Features: []Feature{num("x", rng.Float64()*2-1)}, Actions: named("a")}
		y := rng.Float64()
		z := [2]float64{1, x.Features[0].Value * math.Sqrt(3)}
		m := 0.0
		if len(l.actions) > 0 {
			w := l.actions[0].w
			m = w[0]*z[0] + w[1]*z[1]
		}
		online += (y - m) * (y - m)
		zs, ys = append(zs, z), append(ys, y)
		l.Update(x, 0, y)
	}
	w := l.actions[0].w
	best := 2 * (w[0]*w[0] + w[1]*w[1])
	for i, z := range zs {
		e := ys[i] - w[0]*z[0] - w[1]*z[1]
		best += e * e
	}
	if !near(l.Regret(), online-best) {
		t.Errorf("Regret() = %v, online loss − best = %v", l.Regret(), online-best)
	}
}

func TestLinearStandardisation(t *testing.T) {
	var c column
	c.kind = Number
	if c.observe(7); c.value(100) != 0 {
		t.Error("one value already standardises")
	}
	c.observe(9) // mean 8, sd 1
	if !near(c.value(9), 1) || !near(c.value(7.5), -0.5) || c.value(1e300) != 5 || c.value(-1e300) != -5 ||
		c.value(math.NaN()) != 0 {
		t.Errorf("values %v %v %v %v", c.value(9), c.value(7.5), c.value(1e300), c.value(math.NaN()))
	}
	// Constant over more rows than the outlier clip waits for, then moving: it
	// must come alive.
	c = column{kind: Number}
	for range 60 {
		c.observe(3)
	}
	if c.value(4) != 0 {
		t.Error("a constant feature does not read 0")
	}
	c.observe(4)
	c.observe(5)
	if c.value(5) <= 0 {
		t.Error("a feature that was constant stays dead")
	}
	// After 50 values an outlier moves the mean by at most 5 sd/n.
	c = column{kind: Number}
	for i := range 100 {
		c.observe(float64(i % 2))
	}
	c.observe(1e6)
	if want := 0.5 + 2.5/101; !near(c.mean, want) {
		t.Errorf("mean after an outlier is %v, want %v", c.mean, want)
	}
	// Up to 50 values nothing is clipped.
	c = column{kind: Number}
	for i := range 50 {
		c.observe(float64(i % 2))
	}
	early := c
	if early.observe(1e6); !near(early.mean, (25+1e6)/51) {
		t.Errorf("an outlier after 50 values is clipped: mean %v", early.mean)
	}
	for range 10 {
		c.observe(math.Inf(1))
		c.observe(-math.MaxFloat64)
	}
	if c.mean-c.mean != 0 || c.m2-c.m2 != 0 {
		t.Error("statistics are not finite")
	}
}

func TestLinearColumns(t *testing.T) {
	l := newLinear(LinearOptions{MaxFeatures: 6})
	x := &Input{
		Features: []Feature{text("c", "DE"), num("b", 1), flagged("a", 1)},
		Actions:  []Action{{Name: "x"}, {Name: "y", Features: []Feature{num("b", 2), num("a", 3)}}},
	}
	l.Predict(make([]float64, 2), x)
	if l.dim() != 1 {
		t.Fatal("predicting made columns")
	}
	l.Update(x, 1, 1)
	columns := func() (out []string) {
		for _, c := range l.cols[1:] {
			s := l.slots[c.slot]
			out = append(out, fmt.Sprint(s.scope, s.name, c.kind, c.text))
		}
		return out
	}
	want := "[0a3 0b1 0c2DE 1a1 1b1]"
	if got := fmt.Sprint(columns()); got != want {
		t.Fatalf("columns %v, want %v", got, want)
	}
	x.Features[0].Text = "FR"
	x.Features = append(x.Features, num("zz", 1))
	l.Update(x, 0, 1)
	if got := fmt.Sprint(columns()); got != "[0a3 0b1 0c2DE 1a1 1b1 0c2FR]" {
		t.Fatalf("columns %v", got)
	}
	if c := l.Counts(); c.FeaturesDropped != 1 || c.Columns != 7 || c.Actions != 2 || c.Fed != 2 {
		t.Errorf("counts %+v", c)
	}
	if len(l.actions[0].w) != 6 || len(l.actions[1].w) != 7 {
		t.Errorf("dimensions %d %d", len(l.actions[0].w), len(l.actions[1].w))
	}
}

// TestLinearActionFeatures: the features of an action move its prediction and
// nobody else's.
func TestLinearActionFeatures(t *testing.T) {
	l := newLinear(LinearOptions{Schema: []FeatureSpec{{"price", 0, 9}}}) // of contexts
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		v := rng.Float64()
		x := &Input{Actions: []Action{{Name: "a", Features: []Feature{num("price", v)}}, {Name: "b"}}}
		l.Update(x, 0, v)
		l.Update(x, 1, 0.3)
	}
	if l.cols[1].bounded {
		t.Error("the bounds of a context's feature apply to an action's")
	}
	ask := func(v float64) []float64 {
		return predictions(
			l, &Input{Actions: []Action{{Name: "b"}, {Name: "a", Features: []Feature{num("price", v)}}, {Name: "b"}}})
	}
	for _, v := range []float64{0.1, 0.5, 0.9} {
		p := ask(v)
		if math.Abs(p[1]-v) > 0.02 || math.Abs(p[0]-0.3) > 0.01 || p[0] != p[2] {
			t.Errorf("price %v: predictions %v", v, p)
		}
	}
}

func TestLinearVector(t *testing.T) {
	a, b := newLinear(LinearOptions{Beta: 0.5}), newLinear(LinearOptions{Beta: 0.5})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		v := []float64{rng.Float64(), rng.Float64()}
		x := &Input{Vector: v, Actions: named("p", "q")}
		y := &Input{Features: []Feature{num("1", v[1]), num("0", v[0])}, Actions: named("p", "q")}
		i := rng.IntN(2)
		a.Update(x, i, v[i])
		b.Update(y, i, v[i])
		if p, q := predictions(a, x), predictions(b, y); p[0] != q[0] || p[1] != q[1] {
			t.Fatalf("as vector %v, by names %v", p, q)
		}
	}
}

func TestLinearLimits(t *testing.T) {
	l := newLinear(LinearOptions{MaxActions: 2})
	x := &Input{Actions: named("a", "b", "c")}
	if p := predictions(l, x); p[0] != 0 || p[2] != 0 {
		t.Errorf("unlearned: %v, want 0: such actions are tried", p)
	}
	l.Update(x, 0, 0.8)
	l.Update(x, 1, 0.4)
	l.Update(x, 2, 0)
	if p := predictions(l, x); !near(p[2], 0.4) {
		t.Errorf("beyond the limit: %v, want the mean loss 0.4", p[2])
	}
	if c := l.Counts(); c.Actions != 2 || c.ActionsDropped != 1 {
		t.Errorf("counts %+v", c)
	}
	for _, o := range []LinearOptions{
		{Beta: -1}, {Beta: 1.5}, {Beta: math.NaN()}, {Lambda: -1}, {Lambda: math.Inf(1)},
		{MaxFeatures: -1}, {MaxFeatures: 1 << 20}, {MaxActions: -1}, {MaxActions: 1 << 20},
		{Schema: []FeatureSpec{{"x", 1, 1}}}, {Schema: []FeatureSpec{{"x", 0, math.Inf(1)}}},
		{Schema: []FeatureSpec{{"x", 0, 1}, {"x", 0, 1}}},
	} {
		if _, err := NewLinear(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}

// TestLinearReset breaks a matrix as rounding could, and sees that action start
// anew while the others keep what they know.
func TestLinearReset(t *testing.T) {
	for _, broken := range []float64{math.NaN(), math.Inf(1), -1} {
		l := newLinear(LinearOptions{Beta: 0.5})
		x := &Input{Features: []Feature{num("x", 1)}, Actions: named("a", "b")}
		for i := range 20 {
			x.Features[0].Value = float64(i % 3)
			l.Update(x, i%2, 1)
		}
		l.actions[0].p[0] = broken
		for _, v := range predictions(l, x) {
			if !(v >= 0 && v <= 1) {
				t.Errorf("P=%v: prediction %v", broken, v)
			}
		}
		b, err := l.AppendBinary(nil)
		if err != nil || l.UnmarshalBinary(b) != nil {
			t.Errorf("P=%v: a broken state does not survive a snapshot", broken)
		}
		l.Update(x, 0, 1)
		if l.Counts().Resets != 1 {
			t.Errorf("P=%v: resets %d, want 1", broken, l.Counts().Resets)
		}
		b, _ = l.AppendBinary(nil)
		if r := newLinear(LinearOptions{Beta: 0.5}); r.UnmarshalBinary(b) != nil || r.Counts() != l.Counts() {
			t.Errorf("counts %+v after a restore, want %+v", r.Counts(), l.Counts())
		}
		if p := predictions(l, x); p[0] != 0 || p[1] == 0 {
			t.Errorf("P=%v: after the reset %v", broken, p)
		}
	}
}

func TestAuto(t *testing.T) {
	for _, c := range []struct {
		k, d         int
		beta, lambda float64
	}{{10, 17, 0.5, 1}, {2, 118, 0.5, 5.9}, {10, 100, 0.5, 5}, {10, 101, 0, 5.05}, {1, 1, 0.5, 1}} {
		if b, l := AutoBeta(c.k, c.d), AutoLambda(c.d); b != c.beta || l != c.lambda {
			t.Errorf("K=%d d=%d: β=%v λ=%v, want %v %v", c.k, c.d, b, l, c.beta, c.lambda)
		}
	}
}

// TestLinearNumerics: after many updates on nearly collinear columns the
// weights still solve the ridge equations.
func TestLinearNumerics(t *testing.T) {
	l := newLinear(LinearOptions{Schema: []FeatureSpec{{"a", -1, 1}, {"b", -1, 1}}})
	rng := rand.New(rand.NewPCG(1, 1))
	var g [3][3]float64
	var h [3]float64
	for i := range g {
		g[i][i] = 1
	}
	for range 50_000 {
		a := rng.Float64()*2 - 1
		b := a + 1e-4*(rng.Float64()-0.5)
		y := rng.Float64()
		l.Update(&Input{Features: []Feature{num("a", a), num("b", b)}, Actions: named("x")}, 0, y)
		z := l.z
		for i := range g {
			h[i] += z[i] * y
			for j := range g {
				g[i][j] += z[i] * z[j]
			}
		}
	}
	w := l.actions[0].w
	for i := range g {
		r := -h[i]
		for j := range g {
			r += g[i][j] * w[j]
		}
		if math.Abs(r) > 1e-9*math.Abs(h[0]) {
			t.Errorf("residual of equation %d is %v of %v", i, r, h[0])
		}
	}
}

// TestGoldenLinear pins predictions and state of a fixed run, dense and sparse.
func TestGoldenLinear(t *testing.T) {
	out := ""
	for _, categories := range []int{2, 40} {
		for _, beta := range []float64{0, 0.5} {
			l := newLinear(LinearOptions{Beta: beta, Lambda: 1.5})
			rng := rand.New(rand.NewPCG(7, 7))
			var d digest
			for range 600 {
				x := &Input{Actions: named("a", "b", "c")}
				for j := range 6 {
					x.Features = append(x.Features, num(fmt.Sprint("x", j), rng.Float64()*3))
				}
				x.Features = append(x.Features, text("c", fmt.Sprint(rng.IntN(categories))))
				d.add(predictions(l, x)...)
				l.Update(x, rng.IntN(3), rng.Float64())
			}
			d.add(l.Regret())
			b, _ := l.AppendBinary(nil)
			d.b = append(d.b, b...)
			out += fmt.Sprintf("categories=%d beta=%v %v\n", categories, beta, &d)
		}
	}
	golden(t, "linear.golden", out)
}

// TestLinearHints: what stood where before never matters.
func TestLinearHints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newLinear(LinearOptions{Beta: 0.5})
		b := newLinear(LinearOptions{Beta: 0.5})
		input := rapid.Custom(func(t *rapid.T) *Input {
			x := &Input{}
			for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r", "s"}), 0, 4,
				rapid.ID[string]).Draw(t, "names") {
				switch rapid.IntRange(0, 2).Draw(t, "kind") {
				case 0:
					x.Features = append(x.Features, num(n, rapid.Float64Range(-3, 3).Draw(t, "v")))
				case 1:
					x.Features = append(x.Features, text(n, rapid.SampledFrom([]string{"u", "v", "w"}).Draw(t, "text")))
				default:
					x.Features = append(x.Features, flagged(n, float64(rapid.IntRange(0, 1).Draw(t, "bool"))))
				}
			}
			x.Actions = named(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3,
				rapid.ID[string]).Draw(
				t, "actions")...)
			return x
		})
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			x := input.Draw(t, "x")
			predictions(a, input.Draw(t, "other")) // fills other hints in a than in b
			b.hints, b.known.hint = nil, nil
			p, q := predictions(a, x), predictions(b, x)
			for i := range p {
				if p[i] != q[i] {
					t.Fatalf("predictions %v with hints, %v without", p, q)
				}
			}
			n := rapid.IntRange(0, len(x.Actions)-1).Draw(t, "action")
			y := rapid.Float64Range(0, 1).Draw(t, "y")
			a.Update(x, n, y)
			b.Update(x, n, y)
		}
	})
}
