package watch

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// law returns a random law over k actions, all with support, skewed more or less.
func law(r *rand.Rand, k int) []float64 {
	p, sum := make([]float64, k), 0.0
	for a := range p {
		p[a] = math.Exp(3 * r.NormFloat64())
		sum += p[a]
	}
	for a := range p {
		p[a] = max(p[a]/sum, 1e-4)
	}
	sum = 0
	for _, v := range p {
		sum += v
	}
	for a := range p {
		p[a] /= sum
	}
	return p
}

func draw(r *rand.Rand, p []float64) int {
	u := r.Float64()
	for a, v := range p {
		if u -= v; u < 0 {
			return a
		}
	}
	return len(p) - 1
}

// Each rival is a law: the mean of its ratio under the law itself is 1, which makes the
// capital a martingale.
func TestRivalsAreLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := law(r, rapid.IntRange(2, 12).Draw(t, "k"))
		var mean [faults]float64
		for a := range p {
			for i, ratio := range rivals(p, a) {
				mean[i] += p[a] * ratio
			}
		}
		for i, m := range mean {
			if math.Abs(m-1) > 1e-9 {
				t.Errorf("rival %d: mean %v over %v", i, m, p)
			}
		}
	})
}

// By hand: of (½, ¼, ¼) action 1 is drawn. The rivals say ⅓, 0 (not the likeliest), 1 (the
// first of the least likely), 0, 0, ¼ (that behind it), ½ (that before it), ¼, and
// p²/Σp² = 1/6 of it, each over ¼.
func TestRivalsByHand(t *testing.T) {
	want := [faults]float64{uniformly: 4. / 3, greedily: 0, leastLike: 4, first: 0, last: 0, slipBack: 1, slipAhead: 2,
		backwards: 1, tooSharply: 2. / 3}
	for i, got := range rivals([]float64{.5, .25, .25}, 1) {
		if math.Abs(got-want[i]) > 1e-12 {
			t.Errorf("rival %d: %v, want %v", i, got, want[i])
		}
	}
	var c drawCheck
	c.add([]float64{.5, .25, .25}, 1)
	mean := 0.0
	for _, r := range want {
		for _, s := range stakes {
			mean += (1 + s*(r-1)) / float64(faults*len(stakes))
		}
	}
	if e := .5*mean + .5; math.Abs(c.evidence()-max(e, 1)) > 1e-12 || c.count() != 1 {
		t.Errorf("evidence %v after %d draws, want %v", c.evidence(), c.count(), e)
	}
}

// trials is how often chance is asked.
func trials(n int) int {
	switch {
	case os.Getenv("HINDSIGHT_LONG") != "":
		return 20 * n
	case testing.Short():
		return n / 10
	}
	return n
}

// While draws follow their laws the evidence seldom becomes large, however long one looks:
// it reaches 20 in at most a twentieth of all histories, at any time, across blocks.
func TestDrawsFalseAlarms(t *testing.T) {
	r, n, alarms := rand.New(rand.NewPCG(1, 2)), trials(150), 0
	for range n {
		var c drawCheck
		p := law(r, 2+r.IntN(6))
		for range 2500 {
			if r.IntN(20) == 0 {
				p = law(r, 2+r.IntN(6))
			}
			c.add(p, draw(r, p))
		}
		if c.evidence() >= 20 {
			alarms++
		}
	}
	limit := float64(n)/20 + 3*math.Sqrt(float64(n)/20)
	t.Logf("%d of %d histories reach evidence 20; at most a twentieth may", alarms, n)
	if float64(alarms) > limit {
		t.Errorf("%d of %d histories", alarms, n)
	}
}

// A fault is found, from the start or after many good draws.
func TestDrawsFaults(t *testing.T) {
	argmax := func(p []float64) int {
		best := 0
		for a, v := range p {
			if v > p[best] {
				best = a
			}
		}
		return best
	}
	faulty := map[string]func(r *rand.Rand, p []float64) int{
		"uniform":          func(r *rand.Rand, p []float64) int { return r.IntN(len(p)) },
		"greedy":           func(_ *rand.Rand, p []float64) int { return argmax(p) },
		"first":            func(*rand.Rand, []float64) int { return 0 },
		"off by one":       func(r *rand.Rand, p []float64) int { return (draw(r, p) + 1) % len(p) },
		"off by minus one": func(r *rand.Rand, p []float64) int { return (draw(r, p) + len(p) - 1) % len(p) },
		"backwards":        func(r *rand.Rand, p []float64) int { return len(p) - 1 - draw(r, p) },
		"greedy now and so": func(r *rand.Rand, p []float64) int {
			if r.IntN(5) == 0 {
				return argmax(p)
			}
			return draw(r, p)
		},
	}
	for name, fault := range faulty {
		for _, good := range []int{0, 12_000} {
			r := rand.New(rand.NewPCG(3, 4))
			var c drawCheck
			for range good {
				p := law(r, 5)
				c.add(p, draw(r, p))
			}
			if c.refuted() {
				t.Fatalf("%s: an alarm before the fault", name)
			}
			n := 0
			for ; n < 20_000 && !c.refuted(); n++ {
				p := law(r, 5)
				c.add(p, fault(r, p))
			}
			t.Logf("%s after %d good draws: found after %d", name, good, n)
			if !c.refuted() {
				t.Errorf("%s after %d good draws is not found", name, good)
			}
		}
	}
}

// What cannot be drawn is proof.
func TestDrawsImpossible(t *testing.T) {
	var c drawCheck
	c.add([]float64{1}, 0) // no choice
	c.add([]float64{.5, .5}, 7)
	if c.count() != 0 || c.evidence() != 1 {
		t.Errorf("%d draws, evidence %v", c.count(), c.evidence())
	}
	c.add([]float64{1, 0}, 1)
	if !c.refuted() || !math.IsInf(c.evidence(), 1) {
		t.Errorf("evidence %v", c.evidence())
	}
	if !(&drawCheck{peak: 1 / drawLevel}).refuted() || (&drawCheck{peak: .99 / drawLevel}).refuted() {
		t.Error("the level is reached at 1/drawLevel")
	}
}
