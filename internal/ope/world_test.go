package ope

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "hindsight/internal/testkit/roomy"
)

// world is contexts 0 … 3, three actions, and rewards of 0 or 1 with means that depend
// on both; the log explores unevenly, the policy prefers one action a context.
type world struct{ logging, target, mean [4][3]float64 }

func newWorld() *world {
	return &world{
		logging: [4][3]float64{{.6, .3, .1}, {.2, .2, .6}, {.1, .8, .1}, {.4, .3, .3}},
		target:  [4][3]float64{{.1, .1, .8}, {.5, .4, .1}, {.3, .3, .4}, {0, 1, 0}},
		mean:    [4][3]float64{{.2, .5, .7}, {.4, .1, .3}, {.6, .2, .5}, {.3, .8, .1}},
	}
}

// value is the truth.
func (w *world) value() float64 {
	v := 0.0
	for x := range w.mean {
		for a, m := range w.mean[x] {
			v += w.target[x][a] * m / 4
		}
	}
	return v
}

// draw draws n rows; wrong says what the log claims instead of the propensity.
func (w *world) draw(rng *rand.Rand, n int, wrong func(p float64) float64) (*Sample, Policy) {
	s := &Sample{Actions: 3}
	contexts := make([]int, n)
	for t := range n {
		x := rng.IntN(4)
		contexts[t] = x
		a, u := 0, rng.Float64()
		for a < 2 && u >= w.logging[x][a] {
			u -= w.logging[x][a]
			a++
		}
		r := 0.0
		if rng.Float64() < w.mean[x][a] {
			r = 1
		}
		s.Action, s.Reward = append(s.Action, int32(a)), append(s.Reward, r)
		s.Propensity = append(s.Propensity, wrong(w.logging[x][a]))
	}
	return s, func(dst []float64, t int) { copy(dst, w.target[contexts[t]][:]) }
}

func right(p float64) float64 { return p }

// runs is how often Monte Carlo tests draw a log.
func runs(t *testing.T) int {
	switch {
	case os.Getenv("HINDSIGHT_LONG") == "1":
		return 20000
	case testing.Short():
		return 300
	}
	return 2000
}

// simulated is what Monte Carlo says of one estimator.
type simulated struct {
	mean, se                     float64
	normal, bootstrap, bernstein float64 // coverage
}

// simulate evaluates the world's policy on many logs.
func simulate(t *testing.T, n, runs, folds, resamples int, wrong func(p float64) float64) map[string]*simulated {
	t.Helper()
	w := newWorld()
	truth := w.value()
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	o := Defaults()
	o.Bootstrap, o.Model.Folds = resamples, folds
	out, square := map[string]*simulated{}, map[string]float64{}
	holds := func(low, high Figure) float64 {
		if float64(low) <= truth && truth <= float64(high) {
			return 1 / float64(runs)
		}
		return 0
	}
	for i := range runs {
		o.Seed, o.Model.Seed = uint64(i), uint64(i)
		s, policy := w.draw(rng, n, wrong)
		e, err := Evaluate(s, "target", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range e.Estimates {
			m := out[v.Name]
			if m == nil {
				m = &simulated{}
				out[v.Name] = m
			}
			m.mean += float64(v.Value) / float64(runs)
			square[v.Name] += float64(v.Value*v.Value) / float64(runs)
			m.normal += holds(v.Low, v.High)
			m.bootstrap += holds(v.Bootstrap.Low, v.Bootstrap.High)
			m.bernstein += holds(v.Bernstein.Low, v.Bernstein.High)
		}
	}
	for name, m := range out {
		m.se = math.Sqrt((square[name] - m.mean*m.mean) / float64(runs-1))
	}
	return out
}

// unbiased reports whether a mean is within so many standard errors of the truth.
func (m *simulated) unbiased(errors float64) bool {
	return math.Abs(m.mean-newWorld().value()) <= errors*m.se
}

// TestUnbiased: IPS, and DR with a cross-fitted model; DM, whose model knows no
// contexts, is not, and neither is IPS on a log that claims wrong propensities.
func TestUnbiased(t *testing.T) {
	n := runs(t)
	got := simulate(t, 200, n, 5, 0, right)
	for _, name := range []string{"ips", "dr"} {
		if m := got[name]; !m.unbiased(2) || m.se > .05*newWorld().value() {
			t.Errorf("%s: mean %v ± %v over %d logs, the truth is %v", name, m.mean, m.se, n, newWorld().value())
		}
	}
	if got["dm"].unbiased(5) {
		t.Errorf("a model without contexts is unbiased: %+v", got["dm"])
	}
	planted := simulate(t, 200, n, 5, 0, func(p float64) float64 { return min(1, 1.2*p) })
	if planted["ips"].unbiased(5) {
		t.Errorf("wrong propensities do not show: %+v", planted["ips"])
	}
}

// TestCoverage: intervals of 95 % hold the truth about so often; Bernstein's at least.
func TestCoverage(t *testing.T) {
	n := max(runs(t)/4, 200)
	got := simulate(t, 500, n, 2, 100, right)
	noise := 3 * math.Sqrt(.95*.05/float64(n))
	for _, name := range []string{"ips", "snips", "dr", "sndr", "cips10", "switchdr10"} {
		m := got[name]
		if math.Abs(m.normal-.95) > .02+noise || math.Abs(m.bootstrap-.95) > .03+noise {
			t.Errorf("%s: coverage of the normal interval %.3f, of the bootstrap %.3f", name, m.normal, m.bootstrap)
		}
		if name != "snips" && name != "sndr" && m.bernstein < .98 {
			t.Errorf("%s: coverage of the empirical Bernstein interval %.3f", name, m.bernstein)
		}
	}
	planted := simulate(t, 500, n, 2, 100, func(p float64) float64 { return min(1, 1.2*p) })
	if m := planted["ips"]; m.normal > .85 {
		t.Errorf("wrong propensities do not show in the coverage: %.3f", m.normal)
	}
}

// sampled draws an arbitrary sample and a policy.
func sampled(t *rapid.T) (*Sample, Policy) {
	k, n := rapid.IntRange(1, 5).Draw(t, "K"), rapid.IntRange(2, 40).Draw(t, "n")
	s := &Sample{Actions: k}
	laws := make([][]float64, n)
	for i := range n {
		s.Action = append(s.Action, int32(rapid.IntRange(0, k-1).Draw(t, "a")))
		s.Propensity = append(s.Propensity, float64(rapid.IntRange(1, 100).Draw(t, "p"))/100)
		s.Reward = append(s.Reward, float64(rapid.IntRange(0, 16).Draw(t, "r"))/16)
		law, sum := make([]float64, k), 0.0
		for a := range law {
			law[a] = float64(rapid.IntRange(0, 3).Draw(t, "π"))
			sum += law[a]
		}
		if sum == 0 {
			law[0], sum = 1, 1
		}
		for a := range law {
			law[a] /= sum
		}
		laws[i] = law
	}
	return s, func(dst []float64, t int) { copy(dst, laws[t]) }
}

func same(t *rapid.T, what string, got, want Figure, scale float64) {
	t.Helper()
	g, w := float64(got), float64(want)*scale
	if math.IsNaN(g) && math.IsNaN(w) {
		return
	}
	if !(math.Abs(g-w) <= 1e-9*max(1, math.Abs(w))) {
		t.Fatalf("%s: %v, want %v", what, g, w)
	}
}

// TestInvariances: rewards times c give estimates times c; without folds the order of rows
// does not matter.
func TestInvariances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy := sampled(t)
		o := Defaults()
		o.Bootstrap, o.Model.Folds = 20, 0
		o.Lambda = rapid.SampledFrom([]float64{0, 1, 10, math.Inf(1)}).Draw(t, "λ")
		base, err := Evaluate(s, "p", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		const c = 8
		scaled, so := *s, o
		scaled.Reward = nil
		for _, r := range s.Reward {
			scaled.Reward = append(scaled.Reward, c*r)
		}
		so.Range.Max *= c
		perm := rapid.Permutation(indices(s.Len())).Draw(t, "order")
		shuffled := &Sample{Actions: s.Actions}
		for _, i := range perm {
			shuffled.Action = append(shuffled.Action, s.Action[i])
			shuffled.Propensity = append(shuffled.Propensity, s.Propensity[i])
			shuffled.Reward = append(shuffled.Reward, s.Reward[i])
		}
		times, err := Evaluate(&scaled, "p", policy, so)
		if err != nil {
			t.Fatal(err)
		}
		moved, err := Evaluate(shuffled, "p", func(dst []float64, t int) { policy(dst, perm[t]) }, o)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range base.Estimates {
			m, x := moved.Estimates[i], times.Estimates[i]
			same(t, e.Name+" in another order", m.Value, e.Value, 1)
			same(t, e.Name+" se in another order", m.SE, e.SE, 1)
			same(t, e.Name+" of scaled rewards", x.Value, e.Value, c)
			same(t, e.Name+" se of scaled rewards", x.SE, e.SE, c)
			same(t, e.Name+" bootstrap of scaled rewards", x.Bootstrap.High, e.Bootstrap.High, c)
			same(t, e.Name+" Bernstein of scaled rewards", x.Bernstein.High, e.Bernstein.High, c)
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestAgree: without clipping cIPS is IPS, and Switch and DRos are DR; a model of 0 makes
// DR IPS.
func TestAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy := sampled(t)
		o := Defaults()
		o.Bootstrap, o.Lambda = 0, math.Inf(1)
		e, err := Evaluate(s, "p", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "cIPS", e.Estimates.Get("cips+Inf").Value, e.Estimates.Get("ips").Value, 1)
		same(t, "Switch", e.Estimates.Get("switchdr+Inf").Value, e.Estimates.Get("dr").Value, 1)
		same(t, "DRos", e.Estimates.Get("dros+Inf").Value, e.Estimates.Get("dr").Value, 1)
		o.Model = rewardModel{Count: 1e15}
		if e, err = Evaluate(s, "p", policy, o); err != nil {
			t.Fatal(err)
		}
		same(t, "DR", e.Estimates.Get("dr").Value, e.Estimates.Get("ips").Value, 1)
	})
}

// TestSeeded: the same seed gives the same bits, another other intervals.
func TestSeeded(t *testing.T) {
	s, policy := newWorld().draw(rand.New(rand.NewPCG(1, 1)), 300, right)
	high := func(seed uint64) [2]Figure {
		o := Defaults()
		o.Seed, o.Model.Seed, o.Model.Folds = seed, seed, 5
		e, err := Evaluate(s, "p", policy, o)
		if err != nil {
			t.Fatal(err)
		}
		return [2]Figure{e.Estimates.Get("ips").Bootstrap.High, e.Estimates.Get("dm").Value}
	}
	if a, b := high(3), high(3); a != b {
		t.Errorf("%v and %v by the same seed", a, b)
	}
	if a, b := high(3), high(4); a[0] == b[0] || a[1] == b[1] {
		t.Errorf("%v and %v by other seeds", a, b)
	}
}

// BenchmarkEvaluate judges a policy on 10,000 rows of 34 actions with 1,000 bootstrap
// samples. The floor is to draw as many rows and to add one number of each.
func BenchmarkEvaluate(b *testing.B) {
	const n, k = 10_000, 34
	rng := rand.New(rand.NewPCG(1, 2))
	s := &Sample{Actions: k}
	for range n {
		s.Action = append(s.Action, int32(rng.IntN(k)))
		s.Propensity = append(s.Propensity, 1./k)
		s.Reward = append(s.Reward, float64(rng.IntN(100)/99))
	}
	policy := func(dst []float64, t int) {
		spread(dst, .1)
		dst[t%k] += .9
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Evaluate(s, "p", policy, Defaults()); err != nil {
			b.Fatal(err)
		}
	}
	whole := float64(b.Elapsed()) / float64(b.N)
	pcg, start, sum := rand.NewPCG(1, 2), time.Now(), 0.0
	for range n * 1000 / 2 {
		word := pcg.Uint64()
		sum += s.Reward[word>>32*n>>32] + s.Reward[word&math.MaxUint32*n>>32]
	}
	floor := float64(time.Since(start))
	if sum < 0 {
		b.Fatal("rewards are not below 0")
	}
	b.ReportMetric(whole/1e9, "s/policy")
	b.ReportMetric(whole/floor, "floors")
}
