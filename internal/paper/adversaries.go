package paper

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

func logOf(n int) float64 { return math.Log(float64(n)) }

// specs are the delay adversaries, one of each kind, within a horizon.
func specs(o Options) []string {
	return size(o,
		[]string{"none", "constant:50", "exp:50", "lognormal:20,1.5", "pareto:1.5,10", "burst:100", "head:1000,900",
			"starve-best:500",
			"loss:10,200", "never:0.1", "never-bad:0.3", "reorder:50"},
		[]string{"none", "constant:50", "exp:50", "lognormal:20,1.5", "pareto:1.5,10", "burst:100", "head:500,400",
			"starve-best:200",
			"loss:10,100", "never:0.1", "never-bad:0.3", "reorder:50"})
}

// lossy reports whether silence depends on losses, so that skipping is not missing at
// random and the certificate says so: bad outcomes are lost, or late beyond the window.
func lossy(c *cell) bool {
	return strings.HasPrefix(c.delays, "never-bad:") || strings.HasPrefix(c.delays, "loss:") && c.skipped() > 0
}

// adversariesClaim tries every delay adversary.
var adversariesClaim = Claim{
	Name:   "adversaries",
	Source: "thm:DAFA-REGRET under assum:fifo, kept by release in order and a window of 200 rounds",
	Says: "The bound holds for contexts and delays of an adversary if feedback comes in FIFO order. Here delays may " +
		"look at all that was played and lost, and contexts are sorted by their best action. (The window is ours: " +
		"the rounds that it skips are charged 1 each.)",
	plan: func(o Options) plan {
		rounds := size(o, 20000, 3000)
		var all []*cell
		for _, spec := range some(o, specs(o)) {
			for _, p := range presets {
				all = append(all, &cell{label: p.name, rounds: rounds, env: sorted(rounds, 4, 4), delays: spec,
					window: 200, tune: p.tune(rounds)})
			}
		}
		return played(o, all, concludeAdversaries)
	},
}

func concludeAdversaries(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds, window 200", all[0].rounds),
		Columns: []string{"delays", "D/T arrived", "released", "skipped", "uniform play", "default", "measured drift",
			"ratio", "paper", "measured drift", "ratio"}}
	pic := chart.Chart{Title: "DA-FA under every delay: regret and its certificate by measured drift", X: "delays",
		Y: "regret", LogY: true}
	worst, least, most, unchecked := math.Inf(1), math.Inf(1), 0.0, map[string]bool{}
	for i := 0; i < len(all); i += len(presets) {
		raw, released := all[i].delay()
		row := []any{all[i].delays, raw, released, all[i].skipped(), estimate(all[i].uniform())}
		dearer := mean(all[i+1].regret) / mean(all[i].regret)
		least, most = math.Min(least, dearer), math.Max(most, dearer)
		for _, c := range all[i : i+len(presets)] {
			r, b := estimate(c.regret), mean(c.bound)
			row = append(row, r, b, b/r.Value)
			f.learns(c.delays+", "+c.label, c)
			if lossy(c) {
				unchecked[c.delays] = true
			} else {
				worst = math.Min(worst, b/r.Value)
				f.check(within(c.regret, c.bound), "%s, %s: mean regret is below the certificate by measured drift",
					c.delays, c.label)
			}
		}
		t.row(row...)
	}
	f.draw(t, "adversaries", pic, 5, 6, 8, 9)
	f.Checked = "mean regret is below the certificate by measured drift and below half of that of uniform play, " +
		"within two standard errors of the paired difference"
	f.Seen = fmt.Sprintf("the smallest certificate was %.3g times the regret. With the constants of the proof regret "+
		"was %.1f to %.1f times the default's. %s: here rounds are skipped because their loss was 1, so missing at "+
		"random is violated; where that refutes the class the bound is void (∞), and no check is made.",
		worst, least, most, strings.Join(slices.Sorted(maps.Keys(unchecked)), " and "))
}

// addNamed adds the next of the names of a chart to its k-th series.
func addNamed(c *chart.Chart, k int, name string, e replay.Estimate) {
	if k == len(c.Series) {
		c.Series = append(c.Series, chart.Series{Name: name})
	}
	s := &c.Series[k]
	addPoint(s, float64(len(c.Names)-1), e)
}

// orderClaim compares FIFO, FIFO with a window, and order of arrival.
var orderClaim = Claim{
	Name:   "order",
	Source: "assum:fifo; left open by the paper: feedback that is not FIFO",
	Says: "Is the FIFO assumption needed? Regret when feedback is held back to FIFO, with a window, and learned as " +
		"it arrives.",
	plan: func(o Options) plan {
		rounds := size(o, 20000, 3000)
		var all []*cell
		for _, spec := range some(o, specs(o)) {
			env := logistic(rounds, 5, 100, 0)
			arrival := func(m *model.Model) { m.Arrival = true }
			all = append(all, &cell{label: "FIFO", rounds: rounds, env: env, delays: spec},
				&cell{label: "window 200", rounds: rounds, env: env, delays: spec, window: 200},
				&cell{label: "arrival", rounds: rounds, env: env, delays: spec, tune: arrival})
		}
		return played(o, all, concludeOrder)
	},
}

func concludeOrder(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds, default preset", all[0].rounds),
		Columns: []string{"delays", "D/T arrived", "D/T FIFO", "D/T window", "FIFO", "window 200", "arrival",
			"FIFO − arrival"}}
	pic := chart.Chart{Title: "What FIFO order costs: regret by the order of learning", X: "delays", Y: "regret",
		LogY: true}
	dearer, shorter, longer := 0, 0, 0
	for i := 0; i < len(all); i += 3 {
		fifo, window, arrival := all[i], all[i+1], all[i+2]
		switch saved := estimate(minus(fifo.regret, window.regret)); {
		case saved.Value > 2*se(saved):
			shorter++
		case saved.Value < -2*se(saved):
			longer++
		}
		f.learns(arrival.delays+", in the order of arrival", arrival)
		raw, held := fifo.delay()
		_, windowed := window.delay()
		tax := estimate(minus(fifo.regret, arrival.regret))
		if tax.Value > 2*se(tax) {
			dearer++
		}
		t.row(fifo.delays, raw, held, windowed, estimate(fifo.regret), estimate(window.regret),
			estimate(arrival.regret), tax)
	}
	f.Checked = learnsSomething + ", in the order of arrival"
	f.draw(t, "order", pic, 4, 5, 6)
	f.Seen = fmt.Sprintf("an observation, not a theorem: holding feedback back to FIFO cost regret beyond two "+
		"standard errors under %d of %d delays. A window of 200 rounds made regret less than FIFO's under %d of them "+
		"and more under %d, where it throws late outcomes away.", dearer, len(all)/3, shorter, longer)
}

// dmaxClaim looks for the factor √d_max that separates the upper from the lower bound.
var dmaxClaim = Claim{
	Name:   "dmax",
	Source: "thm:Vovk-regret against appendix-lb-f; left open by the paper",
	Says: "Is the factor √d_max between the upper bound √(d_max D log|F|) and the lower bound √(D log|F|) seen? At " +
		"constant delay d and fixed T the first grows like d, the second like √d.",
	plan: func(o Options) plan {
		rounds := size(o, 20000, 4000)
		var all []*cell
		for _, env := range []string{"sigmoid", "close:0.3", "needle:.4,.2,.6"} {
			delays := size(o, []int{0, 25, 50, 100, 200, 400, 800, 1600, 3200}, []int{0, 50, 100, 200, 400, 800})
			for _, d := range some(o, delays) {
				c := &cell{label: env, x: float64(d), rounds: rounds, env: builtin(env, rounds),
					delays: fmt.Sprintf("constant:%d", d)}
				start := *c // the rounds in which nothing can be known yet, played by the same learner
				start.rounds = max(d, 1)
				start.env = func(seed uint64) *replay.Rounds {
					all := c.env(seed)
					head := replay.Head(all, start.rounds)
					head.Class = all.Class
					return head
				}
				all = append(all, c, &start)
			}
		}
		return played(o, all, concludeDMax)
	},
}

// builtin returns an environment by its specification, which must be right.
func builtin(spec string, rounds int) func(uint64) *replay.Rounds {
	return func(seed uint64) *replay.Rounds {
		env, err := replay.NewEnvironment(spec, seed, rounds)
		if err != nil {
			panic(err) // a constant of this package
		}
		return env
	}
}

func concludeDMax(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds", all[0].rounds), Columns: []string{"environment", "delay",
		"regret", "added by delay", "regret of the first d rounds", "added beyond it"}}
	pic := chart.Chart{Title: "What constant delay adds to regret", X: "delay", Y: "regret − regret without delay",
		LogX: true, LogY: true}
	var seen []string
	most := map[string]int{}
	for i := 0; i < len(all); {
		base := all[i]
		total, beyond := chart.Series{Name: base.label}, chart.Series{Name: base.label + ", beyond the first d rounds",
			Dashed: true}
		for ; i < len(all) && all[i].label == base.label; i += 2 {
			c, start := all[i], all[i+1]
			added, after := minus(c.regret, base.regret), minus(c.regret, base.regret)
			if c.x > 0 {
				after = minus(after, start.regret)
			}
			t.row(c.label, c.x, estimate(c.regret), estimate(added), estimate(minus(added, after)), estimate(after))
			addSeen(&total, c.x, estimate(added))
			addSeen(&beyond, c.x, estimate(after))
			most[c.label] = len(beyond.X)
			f.learns(fmt.Sprintf("%s, delay %v", c.label, c.x), c)
		}
		pic.Series = append(pic.Series, total, beyond)
		for _, line := range []chart.Series{total, beyond} {
			if fit, ok := fitSlope("added regret over delay, "+line.Name, "lower bound ½, upper bound", 1, line.X,
				line.Y); ok {
				f.Fits = append(f.Fits, fit)
				seen = append(seen, fmt.Sprintf("d^%.2f (%s)", fit.Slope, line.Name))
			}
		}
	}
	f.Checked = learnsSomething
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"dmax", pic})
	f.Seen = "an observation: constant delay added regret like " + strings.Join(seen, ", ") +
		". In the first d rounds nothing can be known: any algorithm pays for them, in proportion to d, so a slope " +
		"of 1 in all that delay added is no sign of the factor. " + beyondSeen(most) +
		" (Below 0 means that the T − d rounds after the blind start cost less than T rounds without delay.)"
}

// beyondSeen says on which environments delay added more than the blind start, by how
// many points beyond noise there were.
func beyondSeen(points map[string]int) string {
	var some []string
	for _, name := range slices.Sorted(maps.Keys(points)) {
		if points[name] > 0 {
			some = append(some, fmt.Sprintf("%s (%d delays)", name, points[name]))
		}
	}
	if some == nil {
		return "Beyond the blind start nothing was added, within two standard errors: the factor was not seen."
	}
	return "Beyond the blind start something was added on " + strings.Join(some, ", ") + ", else nothing but noise."
}

// minus returns a − b, seed by seed.
func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// addPoint adds a point with a bar of two standard errors.
func addPoint(s *chart.Series, x float64, e replay.Estimate) {
	s.X, s.Y, s.Err = append(s.X, x), append(s.Y, e.Value), append(s.Err, 2*se(e))
}

// addSeen adds a point that is more than noise: what is not has no logarithm.
func addSeen(s *chart.Series, x float64, e replay.Estimate) {
	if x > 0 && e.Value > 2*se(e) {
		addPoint(s, x, e)
	}
}
