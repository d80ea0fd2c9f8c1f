package replay

import (
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/grammar"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/testkit/daily"
	"hindsight/internal/world"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// regretOf returns the regret of a learner in an environment, under the delays that it is
// meant for unless others are given.
func regretOf(t testing.TB, env *Rounds, spec, delays string, arrival bool, seed uint64) (float64, *Result) {
	t.Helper()
	l, err := model.ParseLearner(spec)
	if err != nil {
		t.Fatal(err)
	}
	if delays == "" {
		delays = env.Delays
	}
	d, err := delay.Parse(delays, delay.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	m, files := ModelFor(env, "test", l, loop.Window{Rounds: int64(env.Len())})
	m.Arrival = arrival
	if err := UsePolicies(m, env); err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	trial := &Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: spec, Seed: seed}
	r, err := trial.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *r.Regret, r
}

// over returns mean and standard error over seeds.
func over(seeds int, f func(seed uint64) float64) (mean, se float64) {
	sum, squares := 0.0, 0.0
	for s := range seeds {
		v := f(uint64(s))
		sum += v
		squares += v * v
	}
	n := float64(seeds)
	mean = sum / n
	return mean, math.Sqrt(math.Max(0, squares/n-mean*mean) / math.Max(1, n-1))
}

// many returns the number of seeds: few, or all with HINDSIGHT_LONG.
func many(few, all int) int {
	if os.Getenv("HINDSIGHT_LONG") != "" {
		return all
	}
	return few
}

// TestPolicedTruth holds that the policies of the file advise what the environment
// counts its regret by, and that the best of them is the least sum.
func TestPolicedTruth(t *testing.T) {
	for _, spec := range []string{"blocks:4,16", "trap:3,10,40,80", "cyc:7,2"} {
		e := environment(t, spec, 3, 120)
		file, err := model.ParsePolicies("p", e.Policies.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		class, err := file.Class()
		if err != nil {
			t.Fatal(err)
		}
		advice, sums := make([]int32, class.Size()), make([]float64, class.Size())
		for round := range e.Len() {
			class.Advise(advice, inputOf(e, round))
			for i, a := range advice {
				if want := e.Advice(i, round); int(a) != want {
					t.Fatalf("%s: round %d: policy %d plays %d, counted as %d", spec, round, i, a, want)
				}
				sums[i] += e.Loss(round, int(a))
			}
		}
		best := sums[0]
		for _, v := range sums {
			best = min(best, v)
		}
		if counted := bestPolicy(e); counted != best {
			t.Errorf("%s: the best policy loses %v, counted as %v", spec, best, counted)
		}
	}
}

// inputOf is the context of a round as a learner sees it.
func inputOf(e *Rounds, round int) *oracle.Input {
	var c codec.Context
	e.Context(&c, round)
	x := &oracle.Input{}
	for _, v := range c.Features {
		x.Features = append(x.Features, oracle.Feature{Name: v.Name, Kind: oracle.FeatureKind(v.Kind), Value: v.Value})
	}
	for _, a := range c.Actions {
		x.Actions = append(x.Actions, oracle.Action{Name: a.Name})
	}
	return x
}

// TestPolicedRegret is worked by hand: cyc:2,0 over 8 rounds has each action right in two
// of them, so that the best policy loses 6; uniform play loses ¾ in each: 6.
func TestPolicedRegret(t *testing.T) {
	e := environment(t, "cyc:2,0", 1, 8)
	if r, res := regretOf(t, e, "uniform", "none", false, 1); math.Abs(r) > 1e-12 || *res.BestLoss != 0.75 {
		t.Errorf("uniform regrets %v, the best policy loses %v a round", r, *res.BestLoss)
	}
	if r, _ := regretOf(t, e, "fixed:a1", "none", false, 1); r != 0 {
		t.Errorf("a fixed action regrets %v", r)
	}
}

// TestHeadOfWorlds holds that the first rounds of a world are a world of the same kind: they have its
// oracle, and regret is against the best policy over them, in any row order.
func TestHeadOfWorlds(t *testing.T) {
	for _, spec := range []string{"hypercube:2,0.1", "unstable", "unstable-hedge"} {
		for order := range 2 {
			e := Order(environment(t, spec, 1, 50), order, 1)
			m, files := ModelFor(e, "replay", model.Learner{Kind: "greedy"}, loop.Window{Rounds: 10})
			trial := &Trial{Rounds: Head(e, 20).For(m), Delays: delays(t, "none", 1), Model: m, Files: files, Seed: 1}
			if _, err := trial.Run(t.Context(), nil); err != nil {
				t.Errorf("%s: %v", spec, err)
			}
		}
	}
	// cyc:2,0: over the first 6 rounds each of three actions is right in two, and the last never.
	e := environment(t, "cyc:2,0", 1, 8)
	r, res := regretOf(t, Head(e, 6), "fixed:a4", "none", false, 1)
	if math.Abs(r-2) > 1e-12 || math.Abs(*res.BestLoss-4./6) > 1e-12 || res.Course.Regret != nil {
		t.Errorf("fixed:a4 regrets %v, the best policy loses %v a round", r, *res.BestLoss)
	}
	shuffled := Order(e, 1, 1)
	sums := make([]float64, 4)
	for round := range 6 {
		for a := range sums {
			sums[a] += shuffled.Loss(round, a)
		}
	}
	if _, res := regretOf(t, Head(shuffled, 6), "uniform", "none", false, 1); math.Abs(
		*res.BestLoss-slices.Min(sums)/6) > 1e-12 {
		t.Errorf("shuffled, the best policy loses %v, want %v", *res.BestLoss, slices.Min(sums)/6)
	}
}

// TestUnstable holds the lower bound (thm:lower-bound): greedy on the unstable oracle has
// regret 0 without delay and half of all rounds with delay 1, where Hedge-Vovk, over the
// same class and losses, does not mind.
func TestUnstable(t *testing.T) {
	const rounds = 2000
	seeds := many(6, 30)
	if testing.Short() {
		seeds = 2
	}
	play := func(spec, l, delays string) (float64, float64) {
		return over(seeds, func(s uint64) float64 {
			r, _ := regretOf(t, environment(t, spec, s, rounds), l, delays, false, s)
			return r
		})
	}
	if mean, _ := play("unstable", "greedy", "none"); mean != 0 {
		t.Errorf("greedy without delay regrets %v", mean)
	}
	mean, se := play("unstable", "greedy", "constant:1")
	t.Logf("greedy, delay 1: %.1f ± %.1f", mean, se)
	if math.Abs(mean-rounds/2) > 5*math.Sqrt(rounds/4/float64(seeds)) {
		t.Errorf("greedy with delay 1 regrets %v, want about %v", mean, rounds/2)
	}
	if testing.Short() {
		return
	}
	for _, d := range []string{"none", "constant:1"} {
		mean, se := over(many(1, 2), func(s uint64) float64 {
			r, _ := regretOf(t, environment(t, "unstable-hedge", s, rounds), "dafa", d, false, s)
			return r
		})
		t.Logf("Hedge-Vovk, %s: %.1f ± %.1f", d, mean, se)
		if mean > 120 || mean < 40 {
			t.Errorf("Hedge-Vovk, %s: regret %v, want about 80", d, mean)
		}
	}
}

// TestHypercube holds the environment to its definition, its oracle to the enumerated
// class, and its claim: at the paper's ε a learner does as uniform play does, at ε = .158
// better.
func TestHypercube(t *testing.T) {
	if testing.Short() {
		return
	}
	share := func(eps float64) (float64, float64) {
		return over(many(8, 40), func(s uint64) float64 {
			env := environment(t, grammar.Write("hypercube", 20, eps), s, 4000)
			uniform, best, _ := reference(env)
			r, _ := regretOf(t, env, "dafa", "none", false, s)
			return r / (uniform - best) / 4000
		})
	}
	mean, se := share(0)
	t.Logf("at the paper's ε: %.3f ± %.3f of the regret of uniform play", mean, se)
	if math.Abs(mean-1) > 0.1 {
		t.Errorf("at the paper's ε a learner has %v of the regret of uniform play", mean)
	}
	mean, se = share(0.158)
	t.Logf("at ε = .158: %.3f ± %.3f", mean, se)
	if mean > 0.7 {
		t.Errorf("at ε = .158 a learner has %v of the regret of uniform play", mean)
	}
}

// TestBlocks holds the lower bound with many delays (thm:lower-bound-full-feedback):
// EXP4-DALE's regret is a constant times √((d+1)·T·ln N/2), whatever d.
func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		n, rounds, seeds int
		delays           []int
		low, high        float64
	}{
		{4, 4000, many(6, 200), []int{0, 4, 19, 99}, 0.40, 0.90},
		{256, 2000, many(2, 40), []int{0, 19}, 0.70, 1.05},
	} {
		if testing.Short() {
			c.seeds, c.delays = 2, c.delays[:1]
		}
		var means, errs []float64
		for _, d := range c.delays {
			mean, se := over(c.seeds, func(s uint64) float64 {
				r, _ := regretOf(t, environment(t, grammar.Write("blocks", float64(d), float64(c.n)), s, c.rounds),
					"exp4dale:"+strconv.Itoa(c.rounds*d/2), "", true, s)
				return r / math.Sqrt(float64((d+1)*c.rounds)*math.Log(float64(c.n))/2)
			})
			t.Logf("d = %d, N = %d: %.2f ± %.2f", d, c.n, mean, se)
			if mean < c.low-2*se || mean > c.high+2*se {
				t.Errorf("d = %d, N = %d: ratio %.2f ± %.2f, want %v to %v", d, c.n, mean, se, c.low, c.high)
			}
			for i := range means {
				if math.Abs(means[i]-mean) > 0.05+3*math.Hypot(se, errs[i]) {
					t.Errorf("N = %d: the ratio is %.2f for d = %d and %.2f for d = %d: it is not flat", c.n, means[i],
						c.delays[i], mean, d)
				}
			}
			means, errs = append(means, mean), append(errs, se)
		}
	}
}

// TestDelayAdapted holds that delay-adapted weighting beats plain importance weighting
// where outcomes come when the law has moved: trap with its D known, and cyc with a rate
// that expects no delays. (With the rate for its D, cyc shows no difference.)
func TestDelayAdapted(t *testing.T) {
	for i, c := range []struct {
		spec   string
		rounds int
		d      string
		seeds  int
	}{
		{"trap:2,400,800,2000", many(8000, 20_000), "560000", many(8, 100)}, // D = 400·1400
		{"cyc:1000,1000", 20_000, "0", many(4, 60)},
	} {
		if testing.Short() || !daily.Turn(t, i, 2) {
			continue
		}
		play := func(form string) (float64, float64) {
			return over(c.seeds, func(s uint64) float64 {
				r, _ := regretOf(t, environment(t, c.spec, s, c.rounds), form+c.d, "", true, s)
				return r
			})
		}
		dale, se := play("exp4dale:")
		plain, pe := play("exp4dale:plain,")
		t.Logf("%s: %.0f ± %.0f, plain %.0f ± %.0f", c.spec, dale, se, plain, pe)
		if plain-dale < 2*math.Hypot(se, pe) {
			t.Errorf("%s: DALE regrets %.0f ± %.0f, plain importance weighting %.0f ± %.0f", c.spec, dale, se,
				plain, pe)
		}
	}
}

// TestHoldDelays holds that the rounds of an interval come all at once.
func TestHoldDelays(t *testing.T) {
	d, err := delay.Parse("hold:2,5,9", delay.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for round, want := range []int64{0, 0, 6, 5, 4, 0, 0} {
		if got := d.Delay(&delay.Play{Round: round}); got != want {
			t.Errorf("round %d: delay %d, want %d", round, got, want)
		}
	}
}

// TestExp4NeedsPolicies holds that data without policies is refused with what to do.
func TestExp4NeedsPolicies(t *testing.T) {
	l, _ := model.ParseLearner("exp4dale")
	env := read(t, "label\na\nb\n")
	m, _ := ModelFor(env, "test", l, loop.Window{Rounds: 10})
	if err := UsePolicies(m, env); err == nil {
		t.Error("a labelled CSV has policies")
	}
}

// Of three actions the first loses from the start, the second from round 2 of 8 on, the last never.
func TestBetrayals(t *testing.T) {
	e := OfWorld(world.NewBetrayals(8, 3))
	for a, want := range []float64{8, 6, 0} {
		sum := 0.0
		for round := range e.Len() {
			sum += e.Loss(round, a)
		}
		if sum != want {
			t.Errorf("action %d loses %v, want %v", a, sum, want)
		}
	}
	if best := bestPolicy(e); best != 0 {
		t.Errorf("the best policy loses %v", best)
	}
}
