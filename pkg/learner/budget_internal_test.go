package learner

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/pkg/oracle"
)

func cost(mean float64, w ...float64) Budget {
	return Budget{Mean: mean, Of: func(string) (float64, []float64) { return 0, w }}
}

// ringOf are budgets of costs 1 and 3 over forecasts of two actions, f̂ by action and ĉ/B of each budget.
func ringOf(of []Budget, ring ...forecast) *DAFA {
	n := len(of)
	return &DAFA{s: Fixed{G: 4}, reg: &oracle.Linear{}, budgets: budgets{of: of, ring: ring, price: make([]float64, n),
		debt: make([]float64, n), told: make([]int64, n), strange: make([]int64, n)}}
}

// TestAtHeadByHand: of .1 + ½·y_0 + 2·y_1 that is about .7 each term is .3; a head without weight has nothing.
func TestAtHeadByHand(t *testing.T) {
	b := Budget{Mean: 3, About: map[string]float64{"a": .7, "b": .9, "c": 5, "d": 7},
		Of: func(action string) (float64, []float64) {
			return map[string]float64{"a": .1, "b": .1}[action],
				map[string][]float64{"a": {.5, 2}, "b": {0, -4}, "c": {1}, "d": nil, "": {.25, 1}}[action]
		}}
	for k, want := range []map[string]float64{{"a": .6, "c": 5}, {"a": .15, "b": -.2}, nil} {
		large := []float64{24, 6, 0}[k] // 8·3 by the most weight: 1 of c, and 4 of b
		for _, b.AtLeast = range []bool{false, true} {
			if b.AtLeast {
				large = 0
			}
			about, got := b.atHead(k)
			if !maps.EqualFunc(about, want, func(v, w float64) bool { return math.Abs(v-w) < 1e-15 }) || got != large {
				t.Errorf("head %d, at least %t: %v, large %v", k, b.AtLeast, about, got)
			}
		}
	}
	other := cost(3, -.5) // of which nothing is known
	if about, large := other.atHead(0); about == nil || large != 48 {
		t.Errorf("of other actions alone: %v, large %v", about, large)
	}
}

// TestChargeByHand: f̂ + Σ λ·ĉ/B of two budgets, no more than 1e15/max(γ, 1) above the least.
func TestChargeByHand(t *testing.T) {
	f := forecast{.125, .25, 1, 2, .5, 0}
	for _, c := range []struct {
		of    int
		price []float64
		gamma float64
		want  [2]float64
	}{
		{0, nil, 4, [2]float64{.125, .25}}, {2, []float64{2, .5}, 4, [2]float64{2.375, 4.25}},
		{1, []float64{1 << 20}, 1e15, [2]float64{1<<20 + .125, 1<<20 + 1.125}},
		{1, []float64{0x1p51}, .25, [2]float64{0x1p51 + .25, 0x1p51 + 1e15}},
		{1, []float64{0x1p51}, 2, [2]float64{0x1p51 + .25, 0x1p51 + 5e14}},
	} {
		b, dst := budgets{of: make([]Budget, c.of), price: c.price}, make([]float64, 2)
		b.charge(dst, f[:2+2*c.of], c.gamma)
		if math.Abs(dst[0]-c.want[0]) > 1e-15*c.want[0] || math.Abs(dst[1]-c.want[1]) > 1e-15*c.want[1] {
			t.Errorf("%+v: %v", c, dst)
		}
	}
}

// TestRingByHand: the last 150 forecasts, from the oldest on. What is predicted is not retained, but copied.
func TestRingByHand(t *testing.T) {
	var b budgets
	f := forecast{0}
	for i := range 153 {
		f[0] = float64(i)
		b.remember(f)
	}
	for j := range b.ring {
		if got := b.ring[(b.next+j)%150]; len(b.ring) != 150 || len(got) != 1 || got[0] != float64(3+j) {
			t.Fatalf("of %d, number %d is %v", len(b.ring), j, got)
		}
	}
}

// TestSpendByHand: the mean of Σ p·ĉ/B over the newer of the forecasts, with the laws at their γ; the least price
// of the grid (6·k/2^18)^4 that meets a target.
func TestSpendByHand(t *testing.T) {
	of := []Budget{cost(2), cost(1)}
	ring := []forecast{{.5, .25, 3, .25, .5, 2}, {.125, .75, .5, 2, .25, 1}, {0, .25, .75, 4, 1, .5},
		{.25, .5, 1, 1.5, 3, .5}}
	d := ringOf(of, ring...)
	b := &d.budgets
	b.next, b.price = 1, []float64{.25, .5}
	d.makeRoom()
	if !slices.Equal(b.gammas, []float64{4, 4, 4, 4}) || len(b.charged) != 2 || len(b.p) != 2 {
		t.Fatalf("γ %v, room for %d and %d", b.gammas, len(b.charged), len(b.p))
	}
	spend := func(i int, of ...int) (mean float64) {
		for _, j := range of {
			f, p := ring[j], make([]float64, 2)
			Solve(p, []float64{f[0] + b.price[0]*f[2] + b.price[1]*f[4], f[1] + b.price[0]*f[3] + b.price[1]*f[5]}, 4)
			mean += (p[0]*f[2+2*i] + p[1]*f[3+2*i]) / float64(len(of))
		}
		return mean
	}
	for costs, of := range map[int64][]int{0: {0}, 1: {0}, 2: {3, 0}, 3: {3, 0}, 4: {2, 3, 0}, 9: {1, 2, 3, 0}} {
		b.costs = costs
		for i := range 2 {
			if got, want := b.spend(i), spend(i, of...); math.Abs(got-want) > 1e-12 {
				t.Errorf("after %d costs budget %d: %v, want %v", costs, i, got, want)
			}
		}
	}
	most := spend(0, 1, 2, 3, 0)
	b.price[0] = 7 // which is found anew
	if b.halve(0, 9); b.price[0] != 0 {
		t.Errorf("the price of what is never spent is %v", b.price[0])
	}
	b.halve(0, b.spend(0))
	if b.price[0] != 0 {
		t.Errorf("the price of what is just spent is %v", b.price[0])
	}
	b.halve(0, .9*most)
	k := math.Sqrt(math.Sqrt(b.price[0])) / 6 * (1 << 18)
	if at := b.spend(0); k != math.Round(k) || at > .9*most {
		t.Errorf("price %v, number %v of the grid: %v is spent of %v", b.price[0], k, at, .9*most)
	}
	if b.price[0] = math.Pow(6*(k-1)/(1<<18), 4); b.spend(0) <= .9*most {
		t.Error("a price that is less is enough")
	}
	b.price[0] = 81 // half way
	if b.halve(0, b.spend(0)); b.price[0] != 81 {
		t.Errorf("a price that is just enough is %v", b.price[0])
	}
}

// TestPricesByHand: three sweeps over budgets, each priced beside the others.
func TestPricesByHand(t *testing.T) {
	ring := []forecast{{.5, .25, 1.5, .25, .5, 2}, {.125, .75, .25, 2, 3, .25}}
	d, twin := ringOf([]Budget{cost(2), cost(1)}, ring...), ringOf([]Budget{cost(2), cost(1)}, ring...)
	d.budgets.costs, twin.budgets.costs = 9, 9
	d.budgets.debt, twin.budgets.debt = []float64{100, 50}, []float64{100, 50}
	d.setPrices(1000)
	twin.makeRoom()
	var before []float64
	for range 3 {
		before = slices.Clone(twin.budgets.price)
		twin.budgets.halve(0, .9)
		twin.budgets.halve(1, .95)
	}
	if got := d.Prices([]float64{7}); !slices.Equal(got[1:], twin.budgets.price) || slices.Equal(before, got[1:]) {
		t.Errorf("%v, want %v, after two sweeps %v", got, twin.budgets.price, before)
	}
}

// TestFirstPricesByHand: of one action that is known the cost is what it is about, whatever the price, and of several
// each counts once. Nothing of that is left among the forecasts.
func TestFirstPricesByHand(t *testing.T) {
	for name, c := range map[string]struct {
		about []map[string]float64
		want  func(d *DAFA)
	}{
		"one too dear":     {[]map[string]float64{{"a": 3}}, func(d *DAFA) { d.budgets.price[0] = 1296 }},
		"nothing is known": {[]map[string]float64{nil}, func(d *DAFA) { d.budgets.price[0] = 7 }},
		"of two budgets": {[]map[string]float64{{"b": 4, "a": 1}, {"a": 1.5, "c": .5}}, func(d *DAFA) {
			d.budgets.ring = []forecast{{0, 0, 0, .5, 2, leastCost, 1.5, leastCost, .5}}
			d.setPrices(1000)
		}},
	} {
		of := []Budget{cost(2), cost(1)}[:len(c.about)]
		for i := range of {
			of[i].About = c.about[i]
		}
		d, twin := ringOf(of), ringOf(of)
		d.budgets.price[0] = 7
		d.firstPrices()
		if c.want(twin); !slices.Equal(d.budgets.price, twin.budgets.price) || d.budgets.ring != nil {
			t.Errorf("%s: prices %v, want %v, %d forecasts", name, d.budgets.price, twin.budgets.price,
				len(d.budgets.ring))
		}
	}
}

// TestBudgetStateByHand: what is kept of budgets by learners whose budgets are the same, have other bounds, or are
// others; unpriced are those of which the state has some.
func TestBudgetStateByHand(t *testing.T) {
	named := func(name string, mean float64, good bool) Budget {
		return Budget{Name: name, Mean: mean, AtLeast: good}
	}
	d := ringOf([]Budget{named("a", 2, false), named("b", 3, true)}, forecast{1, 2, 3}, forecast{4, 5, 6, 7, 8, 9},
		forecast{10, 11, 12})
	was := &d.budgets
	was.price, was.debt, was.told, was.costs, was.next = []float64{.5, 600}, []float64{-7, 8}, []int64{9, 10}, 3, 2
	written := func(b *budgets) []byte {
		c := oracle.NewWriter(nil)
		b.code(&c)
		return c.Bytes()
	}
	state := written(was)
	ring := []forecast{{10, 11, 12}, {1, 2, 3}, {4, 5, 6, 7, 8, 9}}
	for name, c := range map[string]struct {
		of          []Budget
		price, debt []float64
		told        []int64
		ring        []forecast
		unpriced    bool
	}{
		"the same": {was.of, []float64{.5, 600}, []float64{-7, 8}, []int64{9, 10}, ring, false},
		"bounds": {[]Budget{named("a", 3, false), named("b", 9, true)}, []float64{.75, 1296}, []float64{0, 0},
			[]int64{0, 0}, nil, false},
		"one bound": {[]Budget{named("a", 1, false), was.of[1]}, []float64{.25, 600}, []float64{0, 8}, []int64{0, 10},
			nil, false},
		"one": {was.of[1:], []float64{600}, []float64{8}, []int64{10}, nil, false},
		"more": {[]Budget{was.of[0], named("b", 3, false), was.of[1]}, []float64{.5, 0, 600}, []float64{-7, 0, 8},
			[]int64{9, 0, 10}, nil, true},
		"another": {[]Budget{named("c", 2, false), was.of[1]}, []float64{0, 600}, []float64{0, 8}, []int64{0, 10}, nil,
			true},
	} {
		b := (&budgets{of: c.of}).fresh()
		r := newReader(state)
		unpriced := b.code(&r)
		if r.Err() != nil || len(r.Bytes()) > 0 || unpriced != c.unpriced || !slices.Equal(b.price, c.price) ||
			!slices.Equal(b.debt, c.debt) || !slices.Equal(b.told, c.told) || b.costs != 3 ||
			!slices.EqualFunc(b.ring, c.ring, slices.Equal) || len(b.strange) != len(c.of) {
			t.Errorf("%s: %v, unpriced %t, %+v", name, r.Err(), unpriced, b)
		}
		if again := written(&b); name == "the same" && !slices.Equal(again, state) {
			t.Errorf("%x was read, and is %x", state, again)
		}
	}
	for name, damage := range map[string]func(b *budgets){
		"none": func(*budgets) {},
		"long name": func(b *budgets) {
			b.of, b.ring = []Budget{b.of[0], named(strings.Repeat("n", 200), 3, true)}, nil
		},
		"as many costs": func(b *budgets) { b.costs = 4 },
		"few costs":     func(b *budgets) { b.costs = 2 },
		"no bound":      func(b *budgets) { b.of = []Budget{named("a", 0, false), b.of[1]} },
		"a bound":       func(b *budgets) { b.of = []Budget{b.of[0], named("b", -1, true)} },
		"a price":       func(b *budgets) { b.price = []float64{-1, 0} },
		"an action":     func(b *budgets) { b.ring = []forecast{{}, b.ring[1], b.ring[2]} },
		"a half":        func(b *budgets) { b.ring = []forecast{{1, 2}, b.ring[1], b.ring[2]} },
		"full": func(b *budgets) {
			b.ring, b.next, b.costs = slices.Repeat([]forecast{{1, 2, 3}}, 150), 7, 150
		},
		"long": func(b *budgets) {
			b.ring, b.next, b.costs = slices.Repeat([]forecast{{1, 2, 3}}, 151), 7, 151
		},
		"many": func(b *budgets) { b.of = append(slices.Clone(b.of), Budget{}); b.price = []float64{1, 1, 1} },
	} {
		b, into := *was, was.fresh()
		b.debt, b.told = []float64{1, 2, 3}, []int64{1, 2, 3}
		damage(&b)
		r := newReader(written(&b))
		into.code(&r)
		fine := slices.Contains([]string{"none", "as many costs", "full", "long name"}, name)
		if (r.Err() == nil) != fine {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
}
