package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestGoldenRandomLinear pins predictions and state of a fixed run with random features,
// with and without forgetting and optimism.
func TestGoldenRandomLinear(t *testing.T) {
	out := ""
	for _, o := range []LinearOptions{
		{Fourier: 32, Seed: 3},
		{Fourier: 32, Seed: 3, Beta: 0.5, Columns: 9, Bandwidth: 0.5},
		{Fourier: 8, Seed: 4, Beta: 0.5, Forget: 0.99, Lambda: 2},
	} {
		l := newLinear(o)
		rng := rand.New(rand.NewPCG(7, 7))
		var d digest
		for range 600 {
			x := &Input{Actions: named("a", "b", "c")}
			for j := range 6 {
				x.Features = append(x.Features, num(fmt.Sprint("x", j), rng.Float64()*3))
			}
			x.Features = append(x.Features, text("c", fmt.Sprint(rng.IntN(5))))
			d.add(predictions(l, x)...)
			l.Update(x, rng.IntN(3), rng.Float64())
		}
		d.add(l.Regret())
		b, _ := l.AppendBinary(nil)
		d.b = append(d.b, b...)
		out += fmt.Sprintf("fourier=%d beta=%v forget=%v bandwidth=%v columns=%d %v\n", o.Fourier, o.Beta, o.Forget,
			o.Bandwidth, o.Columns, &d)
	}
	golden(t, "randomlinear.golden", out)
}

// TestRandomLinearByHand: with one random feature and one column, two examples are ridge
// regression on (1, √2·cos(w·z/(h√2) + b), z), which is solved here by its normal equations.
func TestRandomLinearByHand(t *testing.T) {
	const wide = 0.7
	l := newLinear(LinearOptions{Fourier: 1, Seed: 5, Bandwidth: wide, Lambda: 1, Schema: []FeatureSpec{{"x", -1, 1}}})
	ask := func(v float64) *Input { return &Input{Features: []Feature{num("x", v)}, Actions: named("a")} }
	l.Update(ask(0.3), 0, 1)
	l.Update(ask(-0.4), 0, 0.25)
	w, b := 2*math.Pi*l.fourier.w[0], 2*math.Pi*l.fourier.phase[0]
	phi := func(v float64) [3]float64 {
		z := v * math.Sqrt(3) // the bounds -1…1 standardise the uniform law on them
		return [3]float64{1, math.Sqrt2 * math.Cos(w*z/(wide*math.Sqrt2)+b), z}
	}
	// (I + Σφφᵀ) w = Σφy, by two steps of Sherman and Morrison with explicit inverses.
	p := [3][3]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	var weights [3]float64
	for _, e := range []struct{ x, y float64 }{{0.3, 1}, {-0.4, 0.25}} {
		f := phi(e.x)
		var k [3]float64
		u, m := 0.0, 0.0
		for i := range k {
			for j := range k {
				k[i] += p[i][j] * f[j]
			}
			u += k[i] * f[i]
			m += weights[i] * f[i]
		}
		for i := range k {
			weights[i] += k[i] * (e.y - m) / (1 + u)
			for j := range k {
				p[i][j] -= k[i] * k[j] / (1 + u)
			}
		}
	}
	f := phi(0.1)
	want := weights[0]*f[0] + weights[1]*f[1] + weights[2]*f[2]
	if got := predictions(l, ask(0.1))[0]; !near(got, want) {
		t.Errorf("prediction %v, want %v", got, want)
	}
}

// TestRandomLinearBends: losses that no line can follow, and one that random features follow;
// where losses are linear they cost, which is why they are not the default.
func TestRandomLinearBends(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 1000
	}
	excess := func(truth func(x, y float64) float64) (plain, random float64) {
		rng := rand.New(rand.NewPCG(1, 1))
		oracles := []*Linear{newLinear(LinearOptions{}),
			newLinear(LinearOptions{Fourier: 64, Seed: 1, Lambda: AutoLambda(3 + 64)})}
		var sum [2]float64
		for i := range n {
			a, b := 2*rng.Float64()-1, 2*rng.Float64()-1
			x := &Input{Features: []Feature{num("x", a), num("y", b)}, Actions: named("a")}
			mean, y := truth(a, b), 0.0
			if rng.Float64() < mean {
				y = 1
			}
			for j, o := range oracles {
				if e := predictions(o, x)[0] - mean; i >= n/2 {
					sum[j] += e * e / float64(n-n/2)
				}
				o.Update(x, 0, y)
			}
		}
		return sum[0], sum[1]
	}
	plain, random := excess(func(x, y float64) float64 { return 0.5 + 0.4*math.Sin(3*x)*math.Cos(3*y) })
	t.Logf("mean square error where losses bend: %.4f, with random features %.4f", plain, random)
	if random > plain/3 {
		t.Errorf("where losses bend: %v, with random features %v", plain, random)
	}
	plain, random = excess(func(x, y float64) float64 { return 0.5 + 0.2*x + 0.2*y })
	t.Logf("where they are linear: %.5f, with random features %.5f", plain, random)
	if random > 0.02 {
		t.Errorf("where losses are linear: %v, with random features %v", plain, random)
	}
}

func TestRandomLinearOptions(t *testing.T) {
	for _, o := range []LinearOptions{
		{Fourier: -1}, {Fourier: MaxFourier + 1}, {Fourier: 8, Columns: -1}, {Fourier: 8, Columns: 1 << 20},
		{Fourier: 8, Bandwidth: -1},
		{Fourier: 8, Bandwidth: math.NaN()}, {Fourier: 8, Bandwidth: 1e4}, {Fourier: 4000, MaxActions: 200},
	} {
		if _, err := NewLinear(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
	b, _ := newLinear(LinearOptions{Fourier: 8, Seed: 1}).AppendBinary(nil)
	for _, o := range []LinearOptions{
		{}, {Forget: 0.9}, {Fourier: 8, Seed: 2}, {Fourier: 9, Seed: 1}, {Fourier: 8, Seed: 1, Columns: 3},
		{Fourier: 8, Seed: 1, Bandwidth: 2}, {Fourier: 8, Seed: 1, Forget: 0.9},
	} {
		if newLinear(o).UnmarshalBinary(b) == nil {
			t.Errorf("%+v: takes the snapshot of other random features", o)
		}
		if c, _ := newLinear(o).AppendBinary(nil); newLinear(LinearOptions{Fourier: 8, Seed: 1}).UnmarshalBinary(
			c) == nil {
			t.Errorf("%+v: its snapshot is taken", o)
		}
	}
}

func FuzzRandomLinearUnmarshal(f *testing.F) {
	fuzzOracle(f, func(version int) Regressor {
		return newLinear(LinearOptions{Beta: 0.5, Fourier: 3, MaxFeatures: 8, MaxActions: 3, Version: version})
	})
}

// BenchmarkRandomLinear times a decision among 10 actions and an update, d = 17, m = 128;
// floor is, of the decision, the sum of the weights and frequencies that it reads, of the
// update that of the packed matrix.
func BenchmarkRandomLinear(b *testing.B) {
	const k, d, m = 10, 17, 128
	l := newLinear(LinearOptions{Fourier: m, Seed: 1, Columns: d})
	rng := rand.New(rand.NewPCG(1, 1))
	x := &Input{}
	for a := range k {
		x.Actions = append(x.Actions, Action{Name: fmt.Sprint("a", a)})
	}
	for j := range d - 1 {
		x.Features = append(x.Features, num(fmt.Sprint("x", j), 0))
	}
	for i := range 40 * k {
		for j := range x.Features {
			x.Features[j].Value = rng.Float64()
		}
		l.Update(x, i%k, rng.Float64())
	}
	sink, dst := 0.0, make([]float64, k)
	sum := func(v []float64) {
		t := 0.0
		for _, x := range v {
			t += x
		}
		sink += t
	}
	for name, f := range map[string][2]func(){
		"decide": {func() { l.Predict(dst, x) }, func() {
			for i := range l.actions {
				sum(l.actions[i].w)
			}
			sum(l.fourier.w)
		}},
		"update": {func() { l.Update(x, 3, 0.5) }, func() { sum(l.actions[3].p) }},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f[0]()
			}
			b.ReportMetric(least(f[0])/least(f[1]), "×floor")
		})
	}
}
