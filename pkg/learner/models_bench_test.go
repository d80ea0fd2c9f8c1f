package learner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// BenchmarkModels times Learn with the models of the class beside Learn without, over
// predictions given and over logistic functions evaluated on the fly (d = 16), 10 actions:
// while all functions are left, which is the dearest there is (the losses tell nothing
// apart), and when 1 % are. ×learn is the ratio for a round without delay, ×delayed that for
// a delayed one, ×round that of deciding and learning a delayed one; +alarm are ×learn and
// ×round with the alarm.
func BenchmarkModels(b *testing.B) {
	for _, c := range []struct {
		name  string
		class oracle.Class
		x     *oracle.Input
	}{givenAlike(10_000, 10), logisticAlike(1000, 10, 16)} {
		for _, left := range []int{c.class.Size(), c.class.Size() / 100} {
			b.Run(fmt.Sprintf("%s/left=%d", c.name, left), func(b *testing.B) {
				plain := learner.NewDAFA(must(oracle.NewHedge(c.class, oracle.HedgeOptions{})),
					learner.Anytime{C: learner.Balanced})
				law, gamma := plain.Propensities(nil, c.x)
				r := learner.Round{Input: c.x, Propensities: law, Gamma: gamma, N: 5000, Fate: learner.Observed,
					Loss: 0.5}
				seen, alert := leaving(c.class, left, false), leaving(c.class, left, true)
				r.LearnedThrough = r.N - 1
				b.ReportAllocs()
				for b.Loop() {
					seen.Learn(&r)
				}
				round := func(l *learner.DAFA) float64 {
					l.Propensities(nil, c.x)
					return measureFew(func() { law, _ = l.Propensities(law[:0], c.x) }) + leastFew(l, r, 1)
				}
				b.ReportMetric(leastFew(seen, r, 0)/leastFew(plain, r, 0), "×learn")
				b.ReportMetric(leastFew(alert, r, 0)/leastFew(plain, r, 0), "×learn+alarm")
				b.ReportMetric(leastFew(seen, r, 1)/leastFew(plain, r, 1), "×delayed")
				p := round(plain)
				b.ReportMetric(round(seen)/p, "×round")
				b.ReportMetric(round(alert)/p, "×round+alarm")
			})
		}
	}
}

// givenAlike is a class of given predictions that agree on the first action.
func givenAlike(size, k int) (c struct {
	name  string
	class oracle.Class
	x     *oracle.Input
}) {
	rng := rand.New(rand.NewPCG(1, 1))
	g := make(given, k)
	c.name, c.x = "given", &oracle.Input{}
	for a := range g {
		c.x.Actions = append(c.x.Actions, oracle.Action{Name: fmt.Sprint("a", a)})
		for range size {
			v := rng.Float64()
			if a == 0 {
				v = 0.5
			}
			g[a] = append(g[a], v)
		}
	}
	c.class = g
	return c
}

// logisticAlike is a class of logistic functions that agree on the first action.
func logisticAlike(size, k, d int) (c struct {
	name  string
	class oracle.Class
	x     *oracle.Input
}) {
	rng := rand.New(rand.NewPCG(1, 1))
	var features, names []string
	c.name, c.x = "logistic", &oracle.Input{}
	for j := range d {
		features = append(features, fmt.Sprint("x", j))
		c.x.Features = append(c.x.Features, oracle.Feature{Name: features[j], Kind: oracle.Number,
			Value: rng.Float64()})
	}
	for a := range k {
		names = append(names, fmt.Sprint("a", a))
		c.x.Actions = append(c.x.Actions, oracle.Action{Name: names[a]})
	}
	w := make([][][]float64, size)
	for i := range w {
		for a := range k {
			row := make([]float64, d+1)
			for j := range row {
				if a > 0 {
					row[j] = rng.NormFloat64()
				}
			}
			w[i] = append(w[i], row)
		}
	}
	c.class = must(oracle.NewLogisticClass(features, names, w))
	return c
}

// leaving returns DA-FA of whose models so many functions are left.
func leaving(class oracle.Class, left int, alarm bool) *learner.DAFA {
	d := watched(must(oracle.NewHedge(class, oracle.HedgeOptions{})), learner.ModelsOptions{Alarm: alarm})
	if left < class.Size() {
		learner.Refute(d.Models(), left)
	}
	return d
}

func leastFew(l learner.Learner, r learner.Round, delay int64) float64 {
	r.LearnedThrough = r.N - 1 - delay
	return measureFew(func() { l.Learn(&r) })
}

// measureFew is measure for calls that take long: the least of several samples of 16
// rounds, of which one looks at which functions survive.
func measureFew(f func()) float64 {
	best := time.Hour
	for range 40 {
		start := time.Now()
		for range 16 {
			f()
		}
		best = min(best, time.Since(start)/16)
	}
	return best.Seconds()
}
