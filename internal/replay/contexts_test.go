package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"hindsight/internal/random"
	"hindsight/pkg/codec"
)

// fill adds rounds of which those with hour ≥ 18 on the plan "free" lose more.
func fill(c *contextTable, rounds int, planted bool) {
	stream := random.New(1, "contexts")
	for i := range rounds {
		u := func(k int) float64 { return stream.Uniform(uint64(i), uint64(k)) }
		hour, plan := math.Floor(24*u(0)), []string{"free", "pro"}[int(2*u(1))]
		loss := .2
		if planted && hour >= 18 {
			loss = .6
		}
		if u(2) >= loss {
			loss = 0
		} else {
			loss = 1
		}
		c.add([]codec.Feature{{Name: "hour", Kind: codec.Number, Value: hour}, {Name: "plan", Kind: codec.Text,
			Text: plan}, {Name: "vip", Kind: codec.Bool, Value: math.Floor(2 * u(3))}}, 1, loss)
	}
}

func TestWorstContextIsFound(t *testing.T) {
	c := newContextTable()
	fill(c, 20_000, true)
	w := c.report("loss")
	if len(w.Worst) == 0 || !strings.HasPrefix(w.Worst[0].Context, "hour ≥ ") {
		t.Fatalf("the worst is %+v", w.Worst)
	}
	g := w.Worst[0]
	if g.Above < .3 || g.Above-2*g.AboveSE < .2 || math.Abs(float64(g.Part)-.5) > .1 || math.Abs(g.Share-.25) > .06 {
		t.Errorf("%+v", g)
	}
	if w.Groups != 4+2+2 || w.Small != 0 || w.Untracked != 0 || w.MinRounds != 100 {
		t.Errorf("%+v", w)
	}
}

// Where nothing is worse, no group is above the others by more than chance.
func TestNoContextIsWorst(t *testing.T) {
	c := newContextTable()
	fill(c, 20_000, false)
	for _, g := range c.report("loss").Worst {
		if g.Above > 3.5*g.AboveSE {
			t.Errorf("%+v", g)
		}
	}
}

// By hand: ten rounds of a that lose 1 and weigh 2, 90 of b that lose 0 or ½.
func TestContextsByHand(t *testing.T) {
	c := newContextTable()
	text := func(s string) []codec.Feature { return []codec.Feature{{Name: "x", Kind: codec.Text, Text: s}} }
	for i := range 90 {
		c.add(text("b"), 1, float64(i%2)/2)
	}
	for range 40 {
		c.add(text("a"), 2, 1)
	}
	c.add(text("rare"), 1, 1)
	w := c.report("loss")
	if len(w.Worst) != 1 || w.Worst[0].Context != "x = a" || w.Groups != 2 || w.Small != 1 {
		t.Fatalf("%+v", w)
	}
	g := w.Worst[0]
	near(t, "mean", g.Mean, 1)
	near(t, "above", g.Above, 1-(22.5+1)/91)
	near(t, "part", g.Part, 80/(80+22.5+1))
	near(t, "standard error", g.SE, 0)
	near(t, "all", w.Mean, (80+22.5+1)/171)
}

// Few values of a number are each their own group, and what the sample had not is any other; places of a vector are
// numbers, whole vectors and numbers that the sample lacks are none.
func TestContextsOfNumbers(t *testing.T) {
	c := newContextTable()
	add := func(rounds int, features []codec.Feature, loss float64, vector ...float64) {
		for range rounds {
			c.addContext(&codec.Context{Features: features, Vector: vector}, 1, loss)
		}
	}
	number := func(name string, x float64) codec.Feature {
		return codec.Feature{Name: name, Kind: codec.Number, Value: x}
	}
	add(contextSample-100, []codec.Feature{number("n", 1)}, 0, 1, 2)
	add(100, []codec.Feature{number("n", 2)}, .5, 1, 3)
	add(200, []codec.Feature{number("n", 7), number("new", 1), codec.VectorOf("v", []float64{1})}, 1, 1, 2)
	w := c.report("loss")
	var got []string
	for _, g := range w.Worst {
		got = append(got, fmt.Sprint(g.Context, " ", g.Rounds, " ", g.Mean))
	}
	if want := "n = any other 200 1, n = 2 100 0.5, x1 = 3 100 0.5"; strings.Join(got, ", ") != want ||
		w.Untracked != 2*200 || w.Small != 0 || w.Groups != 5 {
		t.Errorf("%q, want %q; %+v", got, want, w)
	}
	if c.report("loss").Groups != 5 || (*contextTable)(nil).report("loss") != nil ||
		newContextTable().report("loss") != nil {
		t.Error("a report changes what is reported, or there is one of nothing")
	}
}

// Memory has a limit: a feature with a value a round does not make a group a round.
func TestContextsAreBounded(t *testing.T) {
	c := newContextTable()
	for i := range 3 * contextGroups {
		c.add([]codec.Feature{{Name: "id", Kind: codec.Text, Text: fmt.Sprint(i)},
			{Name: "part", Kind: codec.Text, Text: fmt.Sprint(i % 32)}}, 1, float64(i%32))
	}
	// Groups that have their place count on, and the ten worst are told.
	if w := c.report("loss"); len(c.texts) != contextGroups || w.Untracked != 2*contextGroups+32 ||
		len(w.Worst) != worstShown || w.Worst[0].Context != "part = 31" || w.Worst[0].Rounds != 3*contextGroups/32 {
		t.Errorf("%d groups, %+v", len(c.texts), w)
	}
}

// A run's worst contexts are of its regret where the truth is known.
func TestRunHasWorstContexts(t *testing.T) {
	env, err := NewEnvironment("sigmoid", 1, 2000)
	if err != nil {
		t.Fatal(err)
	}
	tr := trialOf(t, env, "uniform", "200", "none")
	tr.Contexts = true
	r, err := tr.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := r.Contexts
	if w == nil || w.Of != "regret" || w.Groups == 0 {
		t.Fatalf("%+v", w)
	}
	if want := *r.UniformLoss - *r.BestLoss; math.Abs(float64(w.Mean)-want) > .05 {
		t.Errorf("regret a round %v, of the uniform policy %v", w.Mean, want)
	}
}

func TestSweepPairsOrders(t *testing.T) {
	run := func(loss float64) Result { return Result{Rounds: 10, MeanLoss: &loss} }
	got := NewSweep("dafa", []int64{0, 10}, [][]Result{{run(.2), run(.4)}, {run(.3), run(.5)}})
	if p := got[1]; p.Delay != 10 || p.Orders != 2 || p.Rounds != 10 || p.Regret != nil ||
		math.Abs(p.MeanLoss.Value-.4) > 1e-12 || math.Abs(p.Worse.Value-.1) > 1e-12 || *p.Worse.SE > 1e-12 {
		t.Errorf("%+v", p)
	}
	if got[0].Worse.Value != 0 {
		t.Errorf("%+v", got[0])
	}
	if got := NewSweep("dafa", []int64{0}, [][]Result{{run(.2)}}); got[0].Rounds != 10 {
		t.Errorf("of one order %+v", got[0])
	}
	if got := DefaultSweep(20_000); fmt.Sprint(got) != "[0 1 3 10 30 100 300 1000]" {
		t.Error(got)
	}
	if got := DefaultSweep(5); fmt.Sprint(got) != "[0]" {
		t.Error(got)
	}
}
