package paper

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"hindsight/internal/chart"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// additiveClaim tries theorem 3: its inequalities, its regret over each quantity, that its cost of delay does not
// grow with T, and the instance that attains √(D log|F|).
var additiveClaim = Claim{
	Name:   "additive",
	Source: "derived here: theorem 3 and its corollary (docs/algorithms.md, 3.4)",
	Says: "For delays that are blind to missing losses, in any order, E regret ≤ √(5.3(K−1)T log|F|) + 6.4·d·log|F| " +
		"for η = ½, and √(5.3(K−1)T log|F|) + 5.1·√(D log|F|) for delays fixed beforehand; on n = log₂|F| contexts, " +
		"each for √(2D/n) rounds whose outcomes come together, every algorithm regrets √(nD/2).",
	plan: additivePlan,
}

// latePoint is a cell of a sweep with its bound.
type latePoint struct {
	x float64
	*late
	proved float64
}

// lateSweep is regret over one quantity.
type lateSweep struct {
	axis   string
	points []latePoint
}

// additiveBound is theorem 3 for γ_t = c·√((K−1)n/(2 log|F|)) at constant delay d.
func additiveBound(rounds, actions, functions, d int, c float64) float64 {
	t, k, logF := float64(rounds), float64(actions), logOf(functions)
	blind := float64(d) * math.Min(1, math.Sqrt((k-1)*2*logF)/c) // γ is that of one round learned
	barrier := 2/c*math.Sqrt((k-1)*t*2*logF) + blind
	steepest := c * math.Sqrt((k-1)*t/(2*logF))
	least, _ := learner.Potential{Eta: oracle.DefaultEta, Scale: logF}.Additive(int64(d), func(lead float64) float64 {
		return barrier + steepest/4*lead
	}, func(w int64) float64 {
		if w < int64(d) {
			return t
		}
		return 0
	})
	return least
}

func additiveSweeps(o Options) (sweeps []lateSweep) {
	rounds := size(o, 20000, 5000)
	type at struct{ t, k, n, d int }
	for _, a := range []struct {
		axis   string
		values []int
		at     func(v int) at
	}{
		{"T", size(o, []int{5000, 20000, 80000}, []int{2500, 10000}), func(v int) at { return at{v, 4, 16, 50} }},
		{"K", size(o, []int{2, 4, 8, 16}, []int{2, 8}), func(v int) at { return at{rounds, v, 16, 50} }},
		{"log|F|", size(o, []int{4, 16, 64, 256}, []int{4, 64}), func(v int) at { return at{rounds, 4, v, 50} }},
		{"d", size(o, []int{10, 50, 200, 800}, []int{50, 400}), func(v int) at { return at{rounds, 4, 16, v} }},
	} {
		s := lateSweep{axis: a.axis}
		for _, v := range a.values {
			p, x := a.at(v), float64(v)
			if a.axis == "log|F|" {
				x = logOf(v)
			}
			s.points = append(s.points, latePoint{x, &late{world: lateSigmoid(p.t, p.k, p.n), rounds: p.t,
				delays: lateConstant(p.d), algo: single("arrival", false, oracle.HedgeOptions{}, learner.Cautious)},
				additiveBound(p.t, p.k, p.n, p.d, learner.Cautious)})
		}
		sweeps = append(sweeps, s)
	}
	return sweeps
}

// together are blocks of a cube whose outcomes come at their ends, at two lengths of the run.
func together(o Options) (cells []*late) {
	for _, rounds := range size(o, []int{20000, 80000}, []int{4000, 16000}) {
		for _, d := range size(o, []int{1, 1600, 3200}, []int{1, 800}) {
			gamma := 2 * math.Sqrt(float64(rounds)/learner.Potential{Eta: .5, Scale: 8 * math.Ln2}.Sum())
			cells = append(cells, &late{world: lateCube(8, .158, func(rng *rand.Rand) []int32 {
				return uniformContexts(rng, rounds, 8)
			}, .5), rounds: rounds, delays: lateBlocks(d), algo: lateAlgo{"arrival", false,
				func(w *lateWorld, _ int) ([]learner.Learner, error) {
					return over(w, oracle.HedgeOptions{}, learner.Fixed{G: gamma})
				}}})
		}
	}
	return cells
}

// attaining is the instance of the lower bound: n contexts, one after the other for m rounds each, of which the
// outcomes come together; then all of them without delay.
func attaining(o Options) (points []latePoint) {
	const n, rounds = 8, 4000
	for _, sum := range size(o, []float64{400, 1600, 6400, 25600}, []float64{400, 6400}) {
		m := int(math.Sqrt(2 * sum / n))
		d := lateDelays{sigma: m, wait: func(_ *rand.Rand, t int, _ bool, _ float64) int {
			if t < n*m {
				return m - 1 - t%m
			}
			return 0
		}}
		c := &late{rounds: rounds, delays: d, algo: single("arrival", false, oracle.HedgeOptions{}, learner.Cautious),
			world: lateCube(n, 1, func(rng *rand.Rand) []int32 {
				out := uniformContexts(rng, rounds, n)
				for t := range n * m {
					out[t] = int32(t / m)
				}
				return out
			}, 1)}
		logF := n * math.Ln2
		points = append(points, latePoint{sum, c, 1.41*math.Sqrt(5.3*rounds*logF) + 5.1*math.Sqrt(sum*logF) + 6.4*logF})
	}
	return points
}

func additivePlan(o Options) plan {
	seeds := size(o, o.seeds(), min(2, o.seeds()))
	sweeps, blocks, least := additiveSweeps(o), together(o), attaining(o)
	var s slack
	all := []job{{1000, func(context.Context) error {
		s = enumerate(size(o, 3000, 300), o.Seed, [3]bool{})
		return nil
	}}}
	for _, sweep := range sweeps {
		for _, p := range sweep.points {
			all = append(all, p.jobs(o, seeds)...)
		}
	}
	for _, c := range blocks {
		all = append(all, c.jobs(o, max(min(2, seeds), seeds/4))...)
	}
	for _, p := range least {
		all = append(all, p.jobs(o, seeds)...)
	}
	return plan{all, func(f *Finding) {
		f.enumerated(&s)
		for i := range sweeps {
			f.lateSweep(&sweeps[i])
		}
		excess := f.excess(blocks)
		f.attained(least)
		f.Checked = "the inequalities hold to 1e-9; regret is below the bound and grows no faster; blocks cost no " +
			"more in a run four times as long; the instance costs √(nD/2) at least, and less than the upper bound"
		f.Seen = "regret was far below the bound, and delay cost hardly anything; " + excess
	}}
}

func (f *Finding) enumerated(s *slack) {
	t := Table{Title: "the inequalities of theorem 3, all losses enumerated", Columns: []string{"inequality",
		"instances", "least slack"}}
	pic := chart.Chart{Title: "The inequalities of theorem 3, all losses enumerated", X: "share of the instances",
		Y: "slack of at most (1e−12 if less)", LogY: true}
	for i, name := range []string{"q_S(f) ≤ e^{ηX(f)}·E q_I(f)", "E[log W_S − log W_I] ≥ −log E_q e^{−cX}",
		"regret ≤ (K−1)/γ + (γ/4)·Σ_G q·e + 2q(B)"} {
		slack, line := slices.Sorted(slices.Values(s[i])), chart.Series{Name: name}
		for k, v := range slack {
			line.X, line.Y = append(line.X, float64(k+1)/float64(len(slack))), append(line.Y, math.Max(v, 1e-12))
		}
		t.row(name, len(slack), slack[0])
		f.check(slack[0] >= -1e-9, "%s", name)
		pic.Series = append(pic.Series, line)
	}
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"additive-slack", pic})
}

func (f *Finding) lateSweep(s *lateSweep) {
	t := Table{Title: "regret over " + s.axis + ", in the order of arrival", Columns: []string{s.axis, "regret",
		"proved"}}
	for _, p := range s.points {
		e := estimate(p.regret)
		t.row(p.x, e, p.proved)
		f.check(e.Value <= p.proved, "%s = %.4g: mean regret is below the bound that is proved", s.axis, p.x)
	}
	lines := f.draw(t, "additive-"+strings.Trim(s.axis, "log|"), chart.Chart{Title: "Additive: regret over " + s.axis,
		X: s.axis, Y: "regret", LogX: true, LogY: true}, 1, 2).Series
	regret, bound := &lines[0], &lines[1]
	if fit, ok := fitSlope("regret over "+s.axis, "at most", .5, regret.X, regret.Y); ok {
		of, _ := fitSlope("", "", 0, bound.X, bound.Y)
		if s.axis == "d" {
			fit.Predicted = 1
		}
		fit.Bound = &of.Slope
		f.Fits = append(f.Fits, fit)
		if s.axis == "T" || s.axis == "d" { // over K and |F| the environment is another one
			f.check(fit.Slope <= fit.Predicted+finite, "the exponent of regret over %s is at most %g", s.axis,
				fit.Predicted)
		}
	}
}

// excess compares what blocks cost at the two lengths of the run, and says what was seen.
func (f *Finding) excess(cells []*late) (seen string) {
	half := len(cells) / 2
	t := Table{Title: "blocks on a cube of 256 functions: regret", Columns: []string{"d",
		fmt.Sprintf("T = %d", cells[0].rounds), "more than d = 1", fmt.Sprintf("T = %d", cells[half].rounds),
		"more than d = 1", "√(dT log|F|/2), longer"}}
	pic := chart.Chart{Title: "What blocks cost does not grow with T", X: "d", Y: "regret − regret(d = 1)", LogX: true,
		Series: []chart.Series{{Name: t.Columns[1]}, {Name: t.Columns[3]}}}
	for i := range half {
		row := []any{cells[i].delays.sigma + 1}
		var more [2][]float64
		for j, c := range []*late{cells[i], cells[half+i]} {
			more[j] = minus(c.regret, cells[j*half].regret)
			row = append(row, estimate(c.regret), estimate(more[j]))
			if i > 0 {
				addPoint(&pic.Series[j], float64(c.delays.sigma+1), estimate(more[j]))
			}
		}
		long := cells[half+i]
		t.row(append(row, math.Sqrt(float64(long.delays.sigma+1)*float64(long.rounds)*8*math.Ln2/2))...)
		if i == 0 {
			continue
		}
		a, b := estimate(more[0]), estimate(more[1])
		f.check(b.Value <= 1.3*a.Value+2*math.Hypot(se(b), 1.3*se(a)), "blocks of %d cost at most 1.3 times as much "+
			"in a run four times as long, within two standard errors", long.delays.sigma+1)
		seen = fmt.Sprintf("blocks of %d cost %.0f in %d rounds and %.0f in %d, where √(dT) would double.",
			long.delays.sigma+1, a.Value, cells[0].rounds, b.Value, long.rounds)
	}
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"additive-blocks", pic})
	return seen
}

// attained checks the instance of the lower bound.
func (f *Finding) attained(points []latePoint) {
	t := Table{Title: "n = 8 contexts, outcomes of each block together: regret", Columns: []string{"D",
		"lower bound √(nD/2)", "regret", "upper bound"}}
	for _, p := range points {
		e, low := estimate(p.regret), float64(8*p.delays.sigma)/2
		t.row(p.x, low, e, p.proved)
		f.check(e.Value >= low-1e-9, "D = %g: regret is at least nm/2, which no algorithm can avoid", p.x)
		f.check(e.Value <= p.proved, "D = %g: regret is below the upper bound", p.x)
	}
	f.draw(t, "additive-lower", chart.Chart{Title: "The instance that attains √(D log|F|)", X: "D", Y: "regret",
		LogX: true, LogY: true}, 1, 2, 3)
}
