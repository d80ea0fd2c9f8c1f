package replay

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hindsight/internal/ledger"
	"hindsight/internal/ope"
	"hindsight/internal/random"
)

// A course says of a run of any length what all of its rounds say, in at most so many
// stretches.
func TestCourseKeepsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 2000).Draw(t, "rounds")
		seed := random.New(rapid.Uint64().Draw(t, "seed"), "course")
		c := newCourse()
		c.timed = true
		c.bounds = func() map[string]float64 { return map[string]float64{"a_priori": float64(c.sizeSoFar())} }
		c.judged = func() []ledger.Estimate {
			return []ledger.Estimate{{Rounds: 1, Value: ledger.Interval{Mean: float64(c.sizeSoFar())}}}
		}
		sum, best, regret, waits, most := 0.0, 0.0, 0.0, 0.0, int64(0)
		for i := range n {
			u := seed.Uniform(uint64(i), 0)
			truth := []float64{u, 1 - u}
			c.truth(truth, u)
			c.now.of[lineLoss].Add(1, u*u)
			wait := int64(10 * u)
			c.decided(wait/2, wait, 1)
			c.end(int64(i) * 1e6)
			sum, best, regret, waits, most = sum+u*u, best+min(u, 1-u), regret+u, waits+float64(wait), max(most, wait)
		}
		got := c.finish()
		last := len(got.Rounds) - 1
		if last+1 > courseStretches || n >= courseStretches && last+1 < courseStretches/2 {
			t.Fatalf("%d stretches of %d rounds", last+1, n)
		}
		if got.Rounds[last] != int64(n) || got.Times[last] != int64(n-1) {
			t.Errorf("%d rounds, to %d ms", got.Rounds[last], got.Times[last])
		}
		near(t, "mean loss", got.Loss.SoFar[last], sum/float64(n))
		near(t, "best", got.Best.SoFar[last], best/float64(n))
		near(t, "uniform", got.Uniform.SoFar[last], .5)
		near(t, "regret", got.Regret[last], regret)
		near(t, "bound", got.Bounds["a_priori"][last], float64(n))
		total, top := 0.0, int64(0)
		for i, x := range got.Candidates[0].Mean {
			near(t, "what candidates are worth", x, float64(got.Rounds[i]))
		}
		for i, x := range got.Waiting {
			from := int64(0)
			if i > 0 {
				from = got.Rounds[i-1]
			}
			if size := got.Rounds[i] - from; 2*size >= 3*got.Stretch || n >= courseStretches && 2*size < got.Stretch ||
				i < last && size != got.Stretch {
				t.Errorf("stretch %d has %d rounds, not %d", i, size, got.Stretch)
			}
			total += float64(x) * float64(got.Rounds[i]-from)
			top = max(top, got.Most[i])
		}
		near(t, "waiting", ope.Figure(total), waits)
		if top != most {
			t.Errorf("at most %d waited, want %d", top, most)
		}
	})
}

// sizeSoFar is the number of rounds that are in stretches, that at hand included.
func (c *course) sizeSoFar() (n int64) {
	for i := range c.done {
		n += c.done[i].rounds
	}
	return n + c.now.rounds
}

func near(t interface{ Errorf(string, ...any) }, what string, got ope.Figure, want float64) {
	if math.Abs(float64(got)-want) > 1e-5*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// By hand: the standard error of 0, 1, 1 is √(Σ(l−⅔)²)/3 = √(2/3)/3.
func TestCourseErrors(t *testing.T) {
	c := newCourse()
	for _, loss := range []float64{0, 1, 1} {
		c.now.of[lineLoss].Add(1, loss)
		c.end(0)
	}
	got := c.finish()
	near(t, "mean", got.Loss.SoFar[2], 2./3)
	near(t, "standard error", got.Loss.SoFarSE[2], math.Sqrt(2./3)/3)
	if !math.IsNaN(float64(got.Loss.SoFarSE[0])) || got.Uniform != nil || got.Regret != nil || got.Times != nil ||
		len(got.Bounds) != 0 {
		t.Errorf("what is not known is there: %+v", got)
	}
}

// What a run's course ends with is what its result says, for learners with a truth, with
// bounds, and on logs.
func TestCourseEndsAsTheResult(t *testing.T) {
	r := courseRun(t, 3000)
	c := r.Course
	last := len(c.Rounds) - 1
	near(t, "mean loss", c.Loss.SoFar[last], *r.MeanLoss)
	near(t, "uniform", c.Uniform.SoFar[last], *r.UniformLoss)
	near(t, "best", c.Best.SoFar[last], *r.BestLoss)
	near(t, "regret", c.Regret[last], *r.Regret)
	near(t, "measured drift", c.Bounds["measured_drift"][last], *r.Certificate.MeasuredDrift.Value)
	near(t, "a priori", c.Bounds["a_priori"][last], *r.Certificate.APriori.Value)
	for i := range c.Rounds {
		if c.Waiting[i] < c.Arriving[i] {
			t.Errorf("to round %d: %v wait for their outcome, and %v to be learned", c.Rounds[i], c.Arriving[i],
				c.Waiting[i])
		}
	}
	raw, released := int64(0), int64(0)
	for i, b := range c.Delays {
		raw, released = raw+b.Raw, released+b.Released
		if i > 0 && b.Low != c.Delays[i-1].High+1 {
			t.Errorf("bar %d is from %d, after %d", i, b.Low, c.Delays[i-1].High)
		}
	}
	if raw != r.Rounds || released != r.Rounds {
		t.Errorf("%d and %d rounds in the histogram of %d", raw, released, r.Rounds)
	}
	if top := c.Delays[len(c.Delays)-1]; max(r.Delays.Raw.DMax, r.Delays.Released.DMax) < top.Low ||
		max(r.Delays.Raw.DMax, r.Delays.Released.DMax) > top.High {
		t.Errorf("the last bar is %+v, and the longest delays are %d and %d", top, r.Delays.Raw.DMax,
			r.Delays.Released.DMax)
	}
}

func courseRun(t *testing.T, rounds int) *Result {
	t.Helper()
	env, err := NewEnvironment("sigmoid", 1, rounds)
	if err != nil {
		t.Fatal(err)
	}
	r, err := trialOf(t, env, "dafa", "200", "lognormal:20,1.5").Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Recording a round allocates nothing.
func TestCourseAllocatesNothing(t *testing.T) {
	c := newCourse()
	truth := []float64{.1, .9, .5}
	if n := testing.AllocsPerRun(10_000, func() {
		c.truth(truth, .4)
		c.now.of[lineLoss].Add(1, .1)
		c.decided(1, 2, 1)
		c.end(0)
	}); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// BenchmarkCourse says what share of a round of a backtest recording it takes.
func BenchmarkCourse(b *testing.B) {
	const rounds = 5000
	env, err := NewEnvironment("sigmoid", 1, rounds)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if _, err := trialOf(b, env, "dafa", "200", "lognormal:20,1.5").Run(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	round := float64(time.Since(start)) / rounds
	c := newCourse()
	truth := make([]float64, len(env.Actions))
	env.Truth(truth, 0)
	b.ReportAllocs()
	for b.Loop() {
		c.truth(truth, .4)
		c.now.of[lineLoss].Add(1, .1)
		c.decided(1, 2, 1)
		c.end(0)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/round, "of-a-round")
}
