package learner_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/learner/learnertest"
	"hindsight/pkg/oracle"
)

// costing makes of the loss of a round two outcomes: the quality 1 − loss, and a cost of the action; of every third
// round the cost comes in a record before.
type costing struct {
	*learner.DAFA
	outcomes []learner.Outcome
}

var prices = map[string]float64{"a": .1, "b": .8, "c": .3, "d": .05, "e": .5}

func (c *costing) Learn(r *learner.Round) {
	known := r.Fate == learner.Observed || r.Fate == learner.Imputed
	own := *r
	usd := learner.Outcome{Known: known, Value: prices[r.Input.Actions[r.Action].Name]}
	own.Outcomes = append(c.outcomes[:0], learner.Outcome{}, usd)
	if own.Partial = true; r.N%3 == 0 && known {
		c.DAFA.Learn(&own)
		own.Outcomes[1] = learner.Outcome{}
	}
	own.Partial = false
	if known {
		own.Outcomes[0] = learner.Outcome{Known: true, Value: 1 - r.Loss}
	}
	c.DAFA.Learn(&own)
	c.outcomes = own.Outcomes
}

var (
	toLoss  = []float64{-1, 0}
	ofCost  = []float64{0, 2}
	ofGood  = []float64{1, 0}
	ofWorth = []float64{0, 0, 1}
)

// costed is a learner over heads of quality and usd, with budgets, whose loss is 1 − quality.
func costed(kind func() oracle.Regressor, of ...learner.Budget) *learner.DAFA {
	return costedBy(toLoss, kind, of...)
}

func costedBy(loss []float64, kind func() oracle.Regressor, of ...learner.Budget) *learner.DAFA {
	heads := []oracle.Head{{Name: "quality", Regressor: kind(), Good: true}, {Name: "usd", Regressor: kind()}}
	for _, b := range of {
		if b.Worth != nil {
			heads = append(heads, oracle.Head{Name: "budget " + b.Name, Regressor: kind()})
		}
	}
	d := learner.NewDAFA(must(oracle.NewHeads(heads, func(string) (float64, []float64) {
		return max(-loss[0], 0), loss
	})),
		learner.Root{C: learner.RootBalanced})
	if err := d.Spend(of); err != nil {
		panic(err)
	}
	return d
}

// ofCosts is a budget of twice the cost.
func ofCosts(name string, mean float64) learner.Budget {
	return learner.Budget{Name: name, Of: func(string) (float64, []float64) { return 0, ofCost }, Mean: mean,
		About: map[string]float64{"a": .1, "b": 2, "c": .5}}
}

// ofQuality asks for a mean quality.
func ofQuality(least float64) learner.Budget {
	return learner.Budget{Name: "good", AtLeast: true, Mean: least,
		Of: func(string) (float64, []float64) { return 0, ofGood }}
}

// ofProduct is a budget of quality · usd, which has a head of its own.
func ofProduct(mean float64) learner.Budget {
	return learner.Budget{Name: "product", Mean: mean, PayBack: 200, Head: 2,
		Of: func(string) (float64, []float64) { return 0, ofWorth },
		Worth: func(_ string, y []learner.Outcome) learner.Outcome {
			return learner.Outcome{Known: y[0].Known && y[1].Known, Value: y[0].Value * y[1].Value}
		}}
}

func TestBudgetContract(t *testing.T) {
	kinds := map[string]func() oracle.Regressor{
		"linear": func() oracle.Regressor { return newLinear() },
		"auto": func() oracle.Regressor {
			return must(oracle.NewAggregate(oracle.AggregateOptions{Beta: .5, Fourier: 4, MaxFeatures: 32, Version: 2}))
		},
	}
	for name, c := range map[string]struct {
		kind string
		of   []learner.Budget
	}{
		"none": {"linear", nil}, "cost": {"auto", []learner.Budget{ofCosts("cost", .4)}},
		"several": {"linear", []learner.Budget{ofCosts("cost", .4), ofQuality(.6), ofProduct(.1)}},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Test(t, func() learner.Learner { return &costing{DAFA: costed(kinds[c.kind], c.of...)} },
				learnertest.Options{Rounds: 60})
		})
	}
}

// TestBudgetLater: an epoch whose budget is another one keeps the regressions, and goes on at the price of a unit.
func TestBudgetLater(t *testing.T) {
	linear := func() oracle.Regressor { return newLinear() }
	play := func(l *costing, rounds int) {
		rng := rand.New(rand.NewPCG(1, 7))
		x := &oracle.Input{}
		for name := range 5 {
			x.Actions = append(x.Actions, oracle.Action{Name: string(rune('a' + name))})
		}
		for n := range rounds {
			law, gamma := l.Propensities(nil, x)
			a := learner.Draw(law, rng.Uint64()>>11)
			l.Learn(&learner.Round{Input: x, Action: a, Propensities: law, Gamma: gamma, N: int64(n + 1),
				LearnedThrough: int64(n), Fate: learner.Observed, Loss: 1 - prices[x.Actions[a].Name]})
		}
	}
	was := &costing{DAFA: costed(linear, ofCosts("cost", .4))}
	play(was, 400)
	state := must(was.AppendBinary(nil))
	price := was.Prices(nil)[0]
	s := was.Spending(nil)[0]
	if t.Logf("%+v", s); s.Price != price || s.Costs != 400 || math.Abs(s.Mean-.4) > .06 ||
		math.Abs(s.Expected-.4) > .02 {
		t.Errorf("of .4 it spends %+v", s)
	}
	if !was.Certificate().Priced || costed(linear).Certificate().Priced {
		t.Error("a learner is priced that has a budget, and no other")
	}
	if !(price > .01) {
		t.Fatalf("the price is %v", price)
	}
	same, other, more := costed(linear, ofCosts("cost", .4)), costed(linear, ofCosts("cost", .8)),
		costed(linear, ofCosts("cost", .4), ofQuality(.6))
	for _, l := range []*learner.DAFA{same, other, more} {
		if err := l.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		if l.Learned() != 400 {
			t.Errorf("it has learned %d rounds", l.Learned())
		}
	}
	if got := must(same.AppendBinary(nil)); !bytes.Equal(got, state) {
		t.Error("the same budget has another state")
	}
	if got := other.Prices(nil)[0]; math.Abs(got-2*price) > 1e-12 {
		t.Errorf("the price of twice the budget is %v, was %v", got, price)
	}
	if got := fmt.Sprint(more.Prices(nil)); len(more.Prices(nil)) != 2 {
		t.Errorf("the prices of two budgets are %v", got)
	}
	// what is known of actions beforehand counts once, however many budgets know it
	one, spare := costed(linear, ofCosts("cost", .4)), costed(linear, ofCosts("cost", .4), ofCosts("spare", 1e6))
	if p, q := one.Prices(nil), spare.Prices(nil); !(p[0] > 0) || q[0] != p[0] || q[1] != 0 {
		t.Errorf("the first price is %v, beside a budget that is never spent %v", p, q)
	}
	if costed(linear).UnmarshalBinary(must(learner.NewDAFA(newLinear(), learner.Root{C: 1}).AppendBinary(nil))) == nil {
		t.Error("a state without outcomes is read")
	}
}

// TestBudgetUnmet: where no price meets a budget the price is the largest there is, and each action has a probability.
func TestBudgetUnmet(t *testing.T) {
	l := &costing{DAFA: costed(func() oracle.Regressor { return newLinear() }, ofCosts("cost", 1e-12))}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for n := range int64(50) {
		law, gamma := l.Propensities(nil, x)
		if got := l.Prices(nil); len(got) != 1 || got[0] != 1296 {
			t.Fatalf("the prices are %v", got)
		}
		sum := 0.0
		for _, p := range law {
			if sum += p; !(p > 0) {
				t.Fatalf("round %d: the law is %v", n, law)
			}
		}
		if sum != 1 {
			t.Fatalf("the law %v sums to %v", law, sum)
		}
		l.Learn(&learner.Round{Input: x, Action: int(n % 3), Propensities: law, Gamma: gamma, N: n + 1,
			LearnedThrough: n, Fate: learner.Observed, Loss: .5})
	}
}

// TestBudgetPayBack: the program's choice of when a debt is paid back is twice what is outstanding, and 1,000 rounds at
// least.
func TestBudgetPayBack(t *testing.T) {
	linear := func() oracle.Regressor { return newLinear() }
	for late, payBack := range map[int64]int64{100: 1000, 1000: 2000} {
		own, fixed := costed(linear, ofCosts("cost", .4)), ofCosts("cost", .4)
		fixed.PayBack = payBack
		as := costed(linear, fixed)
		x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
		for n := range int64(200) {
			r := &learner.Round{Input: x, Action: int(n % 3), Propensities: []float64{.5, .25, .25}, Gamma: 9,
				N: n + late + 1, LearnedThrough: n, Fate: learner.Observed, Loss: float64(n%2) / 2,
				Outcomes: []learner.Outcome{{Known: true, Value: 1 - float64(n%2)/2}, {Known: true}}}
			r.Outcomes[1].Value = prices[x.Actions[r.Action].Name]
			own.Learn(r)
			as.Learn(r)
			if got, want := own.Prices(nil)[0], as.Prices(nil)[0]; got != want {
				t.Fatalf("%d late, after %d rounds: the price is %v, to pay back in %d it is %v", late, n+1, got,
					payBack, want)
			}
		}
		if p := own.Prices(nil)[0]; !(p > 0 && p < 1000) {
			t.Errorf("a price of %v shows nothing", p)
		}
	}
}

// TestBudgetOften: prices are renewed with every fifth cost, of many actions with as many costs as a quarter of them.
func TestBudgetOften(t *testing.T) {
	for k, every := range map[int]int{3: 5, 23: 5, 24: 6, 29: 7} {
		d := costed(func() oracle.Regressor { return newLinear() }, ofCosts("cost", .4))
		x := &oracle.Input{Actions: actions(k)}
		law, _ := learner.NewUniform().Propensities(nil, x)
		for n := range 3 * every {
			d.SetPrice(77)
			d.Learn(&learner.Round{Input: x, Action: n % k, Propensities: law, Gamma: 9, N: int64(n + 1),
				LearnedThrough: int64(n), Partial: true,
				Outcomes: []learner.Outcome{{}, {Known: true, Value: float64(n%3) / 4}}})
			if renewed := d.Prices(nil)[0] != 77; renewed != ((n+1)%every == 0) {
				t.Errorf("%d actions: after %d costs the price is renewed: %t", k, n+1, renewed)
			}
		}
	}
}

// TestBudgetBad names what a budget cannot be.
func TestBudgetBad(t *testing.T) {
	plain := learner.NewDAFA(newLinear(), learner.Root{C: 1})
	if plain.Spend([]learner.Budget{ofCosts("cost", 1)}) == nil {
		t.Error("a learner of one loss takes a budget")
	}
	d := costed(func() oracle.Regressor { return newLinear() })
	for _, mean := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if d.Spend([]learner.Budget{ofCosts("cost", mean)}) == nil {
			t.Errorf("a mean of %v is taken", mean)
		}
	}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	sum := ofCosts("sum", 1) // of two terms, each a half of what is known
	sum.Of = func(string) (float64, []float64) { return 0, []float64{.25, 4} }
	if err := d.Spend([]learner.Budget{sum}); err != nil {
		t.Error(err)
	}
	for k, want := range [][]float64{{.2, 1, 1}, {.0125, .25, .0625}} { // of .1, 2 and .5, in [0,1]
		got := make([]float64, 3)
		d.Oracle().(*oracle.Heads).HeadPredict(k, got, x)
		for a, v := range got {
			if math.Abs(v-want[a]) > 1e-12 {
				t.Errorf("head %d begins at %v, want %v", k, got, want)
			}
		}
	}
	d.Learn(&learner.Round{Input: x, Propensities: []float64{1, 0, 0}, N: 1, Fate: learner.Observed})
	if d.Spend(nil) == nil {
		t.Error("a learner that has learned a round takes budgets")
	}
	shared := oracle.Head{Name: "usd", Regressor: must(oracle.NewShared(oracle.SharedOptions{}))}
	if learner.NewDAFA(must(oracle.NewHeads([]oracle.Head{shared}, func(string) (float64, []float64) {
		return 0, []float64{1}
	})), learner.Root{C: 1}).Spend([]learner.Budget{sum}) == nil {
		t.Error("an oracle that cannot begin at a value takes a budget")
	}
}

// A cost that is far from what its action's are about is counted, whole costs only, and changes nothing that is
// learned.
func TestBudgetStrange(t *testing.T) {
	of := ofCosts("spend", .4)
	of.About = map[string]float64{"a": 1e-3, "b": 2, "c": 100}
	d := costed(func() oracle.Regressor { return newLinear() }, of)
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
	for n, usd := range []float64{.05, .06, .9, 1, .4, .6} { // costs are twice that: of a, a, b, b, c and c
		law, gamma := d.Propensities(nil, x)
		d.Learn(&learner.Round{Input: x, Action: n / 2, Propensities: law, Gamma: gamma, N: int64(n) + 1, Partial: true,
			LearnedThrough: int64(n), Outcomes: []learner.Outcome{{}, {Known: true, Value: usd}}})
	}
	d.Learn(&learner.Round{Input: x, Propensities: make([]float64, 4), Gamma: 1, N: 7, LearnedThrough: 6,
		Fate: learner.Skipped}) // has no outcome, not that of the round before
	if s := d.Spending(nil)[0]; s.Strange != 2 || s.Costs != 6 || // .12 of a is more than .1, .8 of c less than 1
		math.Abs(s.Mean-6.02/6) > 1e-12 {
		t.Errorf("%+v", s)
	}
}
