package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func newAggregate(o AggregateOptions) *Aggregate {
	a, err := NewAggregate(o)
	if err != nil {
		panic(err)
	}
	return a
}

// TestGoldenAggregate pins predictions and state of a fixed run, dense and sparse, with
// and without random features.
func TestGoldenAggregate(t *testing.T) {
	out := ""
	for _, categories := range []int{2, 40} {
		for _, m := range []int{0, 32} {
			o := newAggregate(AggregateOptions{Beta: 0.5, Fourier: m, Columns: 9, Seed: 3})
			rng := rand.New(rand.NewPCG(7, 7))
			var d digest
			for range 600 {
				x := &Input{Actions: named("a", "b", "c")}
				for j := range 6 {
					x.Features = append(x.Features, num(fmt.Sprint("x", j), rng.Float64()*3))
				}
				x.Features = append(x.Features, text("c", fmt.Sprint(rng.IntN(categories))))
				d.add(predictions(o, x)...)
				o.Update(x, rng.IntN(3), rng.Float64())
			}
			d.add(o.Regret())
			b, _ := o.AppendBinary(nil)
			d.b = append(d.b, b...)
			out += fmt.Sprintf("categories=%d fourier=%d %v\n", categories, m, &d)
		}
	}
	golden(t, "aggregate.golden", out)
}

// TestAggregateByHand follows one action without features through the formulas: z = (1),
// λ = 1 and ρ = .998 for core 2, core 3 a copy of core 1.
func TestAggregateByHand(t *testing.T) {
	o := newAggregate(AggregateOptions{Beta: 0.5, Fourier: 4, Columns: 1})
	x := &Input{Actions: named("a")}
	for _, v := range predictions(o, x) {
		if v != 0 {
			t.Errorf("an action that was never learned is predicted %v", v)
		}
	}
	// u = 1 for both, all predictions 0: q stays. w = ½. P¹ = ½, P² = ½ (the cap: λP = 1).
	o.Update(x, 0, 1)
	want := 0.5 / (1 + 0.5*0.5)
	if p := predictions(o, x); !near(p[0], want) || !near(o.AppendWeights(nil)[0], 1.0/3) {
		t.Fatalf("after one: %v, want %v, weights %v", p, want, o.AppendWeights(nil))
	}
	// Core 1: u = ½, e = ½, w = ½ + ½·½/1.5 = ⅔, P = ⅓. Core 2 forgets: P = ½/.998,
	// w = ½ + ½·P/(1+P). All predicted the same: q stays.
	o.Update(x, 0, 1)
	p2 := 0.5 / 0.998
	w2 := 0.5 + 0.5*p2/(1+p2)
	c := 1 + 0.5/3
	want = (2*(2.0/3) + w2) / 3 / c
	if p := predictions(o, x); !near(p[0], want) {
		t.Fatalf("after two: %v, want %v", p, want)
	}
	// y = 0: the members' losses are (⅔/c)², (w2/c)², (⅔/c)².
	o.Update(x, 0, 0)
	f := []float64{2.0 / 3 / c, w2 / c, 2.0 / 3 / c}
	sum, e := 0.0, make([]float64, 3)
	for i := range f {
		e[i] = math.Exp(-f[i] * f[i] / 2)
		sum += e[i]
	}
	for i, q := range o.AppendWeights(nil) {
		if !near(q, 0.999*e[i]/sum+0.001/3) {
			t.Errorf("weight %d is %v", i, q)
		}
	}
	a, b := math.Exp(-2*f[0]*f[0]), math.Exp(-2*f[1]*f[1])
	if want := a / (a + b); math.Abs(o.duel-want) > 1e-6 {
		t.Errorf("duel %v, want %v", o.duel, want)
	}
}

// TestAggregateBound: mixing costs no more than Overhead over the best member, whatever
// comes: random, switching, and losses chosen against the mixture.
func TestAggregateBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newAggregate(AggregateOptions{Beta: 0.5, Fourier: rapid.SampledFrom([]int{0, 8}).Draw(t, "fourier"),
			Steered: rapid.Bool().Draw(t, "steered")})
		kind := rapid.SampledFrom([]string{"random", "linear", "switch", "adversary", "noise"}).Draw(t, "kind")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 400).Draw(t, "n")
		for i := range n {
			v := 2*rng.Float64() - 1
			x := &Input{Features: []Feature{num("x", v), num("y", rng.Float64())}, Actions: named("a", "b")}
			a, y := rng.IntN(2), 0.0
			switch kind {
			case "random":
				y = float64(rng.IntN(2))
			case "linear":
				y = 0.5 + v/2
			case "switch":
				y = 0.5 + v/2*float64(1-2*(i*3/n%2))
			case "adversary":
				if predictions(o, x)[a] < 0.5 {
					y = 1
				}
			default:
				y = 0.3 + 0.4*rng.Float64()
			}
			o.Update(x, a, y)
			checkBound(t, o)
		}
	})
	// The test can fail: an overhead of log 3 instead of 2 log 3 is not enough for q that
	// starts on the wrong member and a loss that is linear in no member; here the losses
	// are set by hand.
	o := newAggregate(AggregateOptions{Fourier: 8})
	o.lin.fed, o.lost, o.lostMean = 1, [wideMember + 1]float64{3, 4, 5}, 3+2*math.Log(3)+0.01
	if boundHolds(o) {
		t.Error("a loss over the bound passes")
	}
}

func boundHolds(o *Aggregate) bool {
	l := o.AppendLosses(nil)
	best := math.Inf(1)
	for _, v := range l[:len(l)-1] {
		best = math.Min(best, v)
	}
	return l[len(l)-1] <= best+o.Overhead()+1e-9
}

func checkBound(t interface{ Fatalf(string, ...any) }, o *Aggregate) {
	if !boundHolds(o) {
		t.Fatalf("losses %v (the mixture's last) exceed the best member's by more than %v", o.AppendLosses(nil),
			o.Overhead())
	}
}

// TestAggregateSteers: core 3 keeps everything while the world stands still, and forgets
// when it moves.
func TestAggregateSteers(t *testing.T) {
	o := newAggregate(AggregateOptions{Beta: 0.5, Fourier: 8, Columns: 4})
	rng := rand.New(rand.NewPCG(1, 1))
	play := func(n int, sign float64) {
		for range n {
			x := &Input{Features: []Feature{num("x", 2*rng.Float64()-1), num("y", rng.Float64()),
				num("z", rng.Float64())}, Actions: named("a")}
			y := 0.0
			if rng.Float64() < 0.5+sign*x.Features[0].Value/2 {
				y = 1
			}
			o.Update(x, 0, y)
		}
	}
	play(20_000, 1)
	if o.duel < 0.99 {
		t.Errorf("duel %v after a long stationary stream", o.duel)
	}
	play(1000, -1)
	if o.duel > 0.01 {
		t.Errorf("duel %v after the world has turned round", o.duel)
	}
	if w := o.AppendWeights(nil); w[0] > 0.1 {
		t.Errorf("weights %v after the world has turned round", w)
	}
	checkBound(t, o)
}

// TestAggregateSteersItsShare: where the world stands still a steered share leaves the core
// that forgets next to no weight, a fixed one a lasting part; both follow when it moves. The
// snapshot of one is not the other's.
func TestAggregateSteersItsShare(t *testing.T) {
	weight := map[bool]float64{}
	for _, steered := range []bool{false, true} {
		o := newAggregate(AggregateOptions{Steered: steered, Columns: 11})
		rng := rand.New(rand.NewPCG(2, 2))
		play := func(n int, sign float64) {
			for range n {
				x := &Input{Actions: named("a")}
				for j := range 10 {
					x.Features = append(x.Features, num(fmt.Sprint("x", j), 2*rng.Float64()-1))
				}
				y := 0.0
				if rng.Float64() < 0.5+sign*x.Features[0].Value/2 {
					y = 1
				}
				o.Update(x, 0, y)
			}
		}
		play(20_000, 1)
		weight[steered] = o.AppendWeights(nil)[1]
		play(1000, -1)
		if w := o.AppendWeights(nil); w[1] < 0.9 {
			t.Errorf("steered %v: weights %v after the world has turned round", steered, w)
		}
		checkBound(t, o)
		b, _ := o.AppendBinary(nil)
		if newAggregate(AggregateOptions{Steered: !steered, Columns: 11}).UnmarshalBinary(b) == nil {
			t.Errorf("steered %v: the other takes its snapshot", steered)
		}
	}
	t.Logf("weight of the core that forgets: %.4f, steered %.2g", weight[false], weight[true])
	if weight[false] < 0.02 || weight[true] > weight[false]/20 {
		t.Errorf("weight of the core that forgets: %v, steered %v", weight[false], weight[true])
	}
}

// TestAggregateReset breaks each core as rounding could, and sees the action start anew.
func TestAggregateReset(t *testing.T) {
	for core := range 3 {
		for _, broken := range []float64{math.NaN(), math.Inf(1), -1e3} {
			o := newAggregate(AggregateOptions{Beta: 0.5, Fourier: 4})
			x := &Input{Features: []Feature{num("x", 1)}, Actions: named("a", "b")}
			for i := range 20 {
				x.Features[0].Value = float64(i % 3)
				o.Update(x, i%2, 1)
			}
			p := [][]float64{o.lin.actions[0].p, o.fadings[0].plain.p, o.fadings[0].random.p}[core]
			for i := range p {
				p[i] = broken
			}
			b, err := o.AppendBinary(nil)
			if err != nil || o.UnmarshalBinary(b) != nil {
				t.Errorf("core %d, P=%v: a broken state does not survive a snapshot", core+1, broken)
			}
			for _, v := range predictions(o, x) {
				if !(v >= 0 && v <= 1) {
					t.Errorf("core %d, P=%v: prediction %v", core+1, broken, v)
				}
			}
			o.Update(x, 0, 1)
			if n := o.Counts().Resets; n != 1 {
				t.Errorf("core %d, P=%v: resets %d, want 1", core+1, broken, n)
			}
			if p := predictions(o, x); p[0] != 0 || p[1] == 0 {
				t.Errorf("core %d, P=%v: after the reset %v", core+1, broken, p)
			}
			for range 5 {
				o.Update(x, 0, 1)
			}
			if p := predictions(o, x); !(p[0] > 0.5) || o.Counts().Resets != 1 {
				t.Errorf("core %d, P=%v: five examples later %v, %d resets", core+1, broken, p, o.Counts().Resets)
			}
		}
	}
}

func TestAggregateOptions(t *testing.T) {
	for _, o := range []AggregateOptions{
		{Beta: -1}, {Beta: 1.5}, {Columns: -1}, {Columns: 1 << 20}, {Fourier: -1}, {Fourier: 1 << 20},
		{MaxFeatures: -1}, {MaxFeatures: 1 << 20}, {MaxActions: -1}, {MaxActions: 1 << 20}, {Fourier: 4000,
			MaxActions: 100},
		{Schema: []FeatureSpec{{"x", 1, 1}}},
	} {
		if _, err := NewAggregate(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
	for _, c := range []struct{ k, d, m int }{{10, 17, 128}, {10, 188, 128}, {10, 189, 0}, {2, 118, 128},
		{1000, 257, 0}, {10, 1, 128}} {
		if m := AutoFourier(c.k, c.d); m != c.m {
			t.Errorf("K=%d d=%d: %d random features, want %d", c.k, c.d, m, c.m)
		}
	}
}

// TestFourierColumns: what belongs to a column depends on its feature and the seed, not
// on when it came; other seeds draw others; and the draws are normal and uniform.
func TestFourierColumns(t *testing.T) {
	frequencies := func(seed uint64, names ...string) map[string][]float64 {
		o := newAggregate(AggregateOptions{Fourier: 64, Seed: seed})
		x := &Input{Actions: named("a")}
		for _, n := range names {
			x.Features = append(x.Features, num(n, 1))
			o.Update(x, 0, 1)
		}
		out := map[string][]float64{}
		for i, c := range o.lin.cols[1:] {
			out[o.lin.slots[c.slot].name] = o.fourier.w[64*i : 64*i+64]
		}
		return out
	}
	a, b, c := frequencies(1, "x", "y", "z"), frequencies(1, "z", "x"), frequencies(2, "x")
	sum, squares := 0.0, 0.0
	for j := range 64 {
		if a["x"][j] != b["x"][j] || a["z"][j] != b["z"][j] {
			t.Fatal("a column's frequencies depend on the order of columns")
		}
		if a["x"][j] == c["x"][j] || a["x"][j] == a["y"][j] {
			t.Fatal("frequencies repeat")
		}
		for _, n := range []string{"x", "y", "z"} {
			v := 2 * math.Pi * a[n][j]
			sum += v
			squares += v * v
		}
	}
	if n := 3.0 * 64; math.Abs(sum/n) > 4/math.Sqrt(n) || math.Abs(squares/n-1) > 4*math.Sqrt(2/n) {
		t.Errorf("frequencies have mean %v and mean square %v", sum/n, squares/n)
	}
	for _, p := range newFourier(64, 1).phase {
		if !(p > 0 && p < 1) {
			t.Errorf("phase %v", p)
		}
	}
}
