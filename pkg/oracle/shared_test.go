package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func newShared(o SharedOptions) *Shared {
	s, err := NewShared(o)
	if err != nil {
		panic(err)
	}
	return s
}

// TestSharedColdStart: what is learned of some actions is said of actions never seen, by
// their features and by the context's products with them; by name, only if hybrid.
func TestSharedColdStart(t *testing.T) {
	if testing.Short() {
		t.Skip("6,000 rounds in one goroutine: go test without -short runs this")
	}
	for _, hybrid := range []bool{false, true} {
		o := newShared(SharedOptions{Hybrid: hybrid})
		rng := rand.New(rand.NewPCG(1, 1))
		truth := func(hour, price float64, name string) float64 { // a product of both, and action x is worse
			y := 0.4 + 0.3*hour*price
			if name == "x" {
				y += 0.2
			}
			return y
		}
		ask := func(hour, price float64, name string) *Input {
			return &Input{Features: []Feature{num("hour", hour)},
				Actions: []Action{{Name: name, Features: []Feature{num("price", price)}}}}
		}
		for i := range 6000 {
			h, p, name := 2*rng.Float64()-1, 2*rng.Float64()-1, fmt.Sprint("old", i%7)
			if i%2 == 0 {
				name = "x"
			}
			o.Update(ask(h, p, name), 0, truth(h, p, name))
		}
		for _, hour := range []float64{-0.8, 0.8} {
			for _, price := range []float64{-0.8, 0.8} {
				for _, name := range []string{"x", "old3"} {
					got, want := predictions(o, ask(hour, price, name))[0], truth(hour, price, name)
					if hybrid && math.Abs(got-want) > 0.03 {
						t.Errorf("hybrid: %s at (%v, %v): %v, want %v", name, hour, price, got, want)
					}
					if !hybrid && math.Abs(got-0.1-truth(hour, price, "new")) > 0.03 { // the mean of both
						t.Errorf("shared: %s at (%v, %v): %v", name, hour, price, got)
					}
				}
				low, new := predictions(o, ask(hour, -price, "new"))[0], predictions(o, ask(hour, price, "new"))[0]
				if (new > low) != (hour*price > 0) || math.Abs(new-low) < 0.3 {
					t.Errorf("hybrid=%v: a new action at hour %v: price %v gives %v, %v gives %v", hybrid, hour,
						price, new, -price, low)
				}
			}
		}
	}
}

// TestSharedAlike: actions with numbers of the same names, which are taken together, have the predictions that each has
// beside one without features, where they are taken one by one; so has what is not quite alike.
func TestSharedAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	ask := func(n int, names ...string) *Input {
		x := &Input{Features: []Feature{num("hour", rng.Float64()), text("day", "mon")}}
		for a := range n {
			var own []Feature
			for _, name := range names {
				own = append(own, num(name, 20*rng.Float64()-10))
			}
			switch odd := rng.IntN(40); {
			case n == 1 || odd >= 2*len(own):
			case odd >= len(own):
				own[odd-len(own)].Name = "other"
			default:
				own[odd] = text(own[odd].Name, "odd")
			}
			x.Actions = append(x.Actions, Action{Name: fmt.Sprint("a", a), Features: own})
		}
		return x
	}
	// Numbers of the first examples have one column, later ones two, and a third where one of the first is missing.
	teach := [][]string{{"price", "rank"}, {"price", "rank", "late"}, {"rank"}, {}}
	asked := append(teach, []string{"rank", "never", "price"}, []string{"rank", "rank"}, []string{"late", "price",
		"rank"})
	for _, options := range []SharedOptions{{Hashed: 8}, {Version: Newest}, {Version: Newest, Hybrid: true,
		Hashed: 1000,
		Schema: []FeatureSpec{FeatureSpec{"price", -2, 2}.OfActions()}}} {
		options.Beta = .5
		o := newShared(options)
		for i := range 200 {
			o.Update(ask(1, teach[i/50]...), 0, rng.Float64())
			if i%10 != 9 {
				continue
			}
			for n := range 20 {
				x := ask(n, asked[rng.IntN(len(asked))]...)
				alone := &Input{Features: x.Features, Actions: []Action{{Name: "bare"}, {}}}
				for a, got := range predictions(o, x) {
					alone.Actions[1] = x.Actions[a]
					if want := predictions(o, alone)[1]; !same(got, want) {
						t.Fatalf("%+v, round %d: action %d of %d: %v, alone %v", options, i, a, n, got, want)
					}
				}
			}
		}
	}
}

func TestSharedOptions(t *testing.T) {
	for _, o := range []SharedOptions{{Beta: 2}, {Lambda: -1}, {Hashed: 1}, {Hashed: 1 << 14}, {MaxFeatures: -1},
		{Schema: []FeatureSpec{{"x", 1, 1}}}} {
		if _, err := NewShared(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
	if _, err := NewShared(SharedOptions{Hashed: 2}); err != nil {
		t.Error(err)
	}
}

// TestSharedReset breaks the matrix as rounding could.
func TestSharedReset(t *testing.T) {
	o := newShared(SharedOptions{Hashed: 8, Hybrid: true})
	x := &Input{Actions: named("a", "b")}
	for range 5 {
		o.Update(x, 0, 1)
	}
	for i := range o.ridge.p {
		o.ridge.p[i] = math.NaN()
	}
	o.Update(x, 0, 1)
	if p := predictions(o, x); p[0] != 0 || o.Counts().Resets != 1 {
		t.Errorf("after a reset %v, %d resets", p, o.Counts().Resets)
	}
	o.Update(x, 0, 1)
	if p := predictions(o, x); !(p[0] > 0.5) {
		t.Errorf("after a reset and an example %v", p)
	}
}

func FuzzSharedUnmarshal(f *testing.F) {
	fuzzOracle(f, func(version int) Regressor {
		return newShared(SharedOptions{Beta: 0.5, MaxFeatures: 6, Hashed: 6, Hybrid: true, Version: version})
	})
}

// TestGoldenShared pins predictions and state of a fixed run.
func TestGoldenShared(t *testing.T) {
	out := ""
	for _, hybrid := range []bool{false, true} {
		o := newShared(SharedOptions{Beta: 0.5, Hashed: 40, Hybrid: hybrid})
		rng := rand.New(rand.NewPCG(7, 7))
		var d digest
		for range 400 {
			x := &Input{Features: []Feature{num("x", rng.Float64()), text("c", fmt.Sprint(rng.IntN(3)))}}
			for a := range 3 {
				x.Actions = append(x.Actions, Action{Name: fmt.Sprint("a", rng.IntN(50)),
					Features: []Feature{num("p", rng.Float64()), text("b", fmt.Sprint(a))}})
			}
			d.add(predictions(o, x)...)
			o.Update(x, rng.IntN(3), rng.Float64())
		}
		b, _ := o.AppendBinary(nil)
		d.b = append(d.b, b...)
		out += fmt.Sprintf("hybrid=%v %v\n", hybrid, &d)
	}
	golden(t, "shared.golden", out)
}
