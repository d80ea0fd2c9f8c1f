package paper

import (
	"fmt"
	"math"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/model"
	"hindsight/internal/replay"
)

func logOf(n int) float64 { return math.Log(float64(n)) }

// specs are the delay adversaries, one of each kind, within a horizon.
func specs(o Options) []string {
	return size(o,
		[]string{"none", "constant:50", "exp:50", "lognormal:20,1.5", "pareto:1.5,10", "burst:100", "head:1000,900", "starve-best:500",
			"loss:10,200", "never:0.1", "never-bad:0.3", "reorder:50"},
		[]string{"none", "constant:50", "exp:50", "lognormal:20,1.5", "pareto:1.5,10", "burst:100", "head:500,400", "starve-best:200",
			"loss:10,100", "never:0.1", "never-bad:0.3", "reorder:50"})
}

// lossy reports whether an adversary's silence depends on losses, so that skipping is
// not missing at random and the certificate says so.
func lossy(spec string) bool { return spec == "never-bad:0.3" }

// adversariesClaim tries every delay adversary.
func adversariesClaim() Claim {
	return Claim{
		Name:   "adversaries",
		Source: "thm:DAFA-REGRET under assum:fifo, kept by release in order and a window of 200 rounds",
		Says:   "The bound holds for any delays that an adversary fixes, if feedback comes in FIFO order.",
		plan: func(o Options) plan {
			rounds := size(o, 20000, 3000)
			var all []*cell
			for _, spec := range specs(o) {
				for _, p := range presets {
					all = append(all, &cell{label: p.name, rounds: rounds, env: sigmoid(rounds, 5, 100), delays: spec, window: 200, tune: p.tune(rounds)})
				}
			}
			return plan{jobs(o, all), func(f *Finding) {
				gather(all)
				concludeAdversaries(f, all)
			}}
		},
	}
}

func concludeAdversaries(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds, window 200", all[0].rounds),
		Columns: []string{"delays", "D/T arrived", "released", "skipped", "default", "measured drift", "ratio", "paper", "measured drift", "ratio"}}
	worst := math.Inf(1)
	for i := 0; i < len(all); i += len(presets) {
		raw, released := all[i].delay()
		row := []any{all[i].delays, raw, released, all[i].skipped()}
		for _, c := range all[i : i+len(presets)] {
			r, b := estimate(c.regret), mean(c.bound)
			row = append(row, r, b, b/r.Value)
			if !lossy(c.delays) {
				worst = math.Min(worst, b/r.Value)
				f.check(within(c.regret, c.bound), "%s, %s: mean regret is below the certificate by measured drift", c.delays, c.label)
			}
		}
		t.row(row...)
	}
	f.Tables = append(f.Tables, t)
	f.Checked = "mean regret is below the certificate by measured drift, within two standard errors of the paired difference"
	f.Seen = fmt.Sprintf("the smallest certificate was %.3g times the regret. The constants of the proof regret several times more than the default. never-bad hides losses of 1 only: missing at random is violated, and no check is made.", worst)
}

// orderClaim compares FIFO, FIFO with a window, and order of arrival.
func orderClaim() Claim {
	return Claim{
		Name:   "order",
		Source: "assum:fifo; left open by the paper: feedback that is not FIFO",
		Says:   "Is the FIFO assumption needed? Regret when feedback is held back to FIFO, with a window, and learned as it arrives.",
		plan: func(o Options) plan {
			rounds := size(o, 20000, 3000)
			var all []*cell
			for _, spec := range specs(o) {
				env := sigmoid(rounds, 5, 100)
				arrival := func(m *model.Model) { m.Arrival = true }
				all = append(all,
					&cell{label: "FIFO", rounds: rounds, env: env, delays: spec},
					&cell{label: "window 200", rounds: rounds, env: env, delays: spec, window: 200},
					&cell{label: "arrival", rounds: rounds, env: env, delays: spec, tune: arrival})
			}
			return plan{jobs(o, all), func(f *Finding) {
				gather(all)
				concludeOrder(f, all)
			}}
		},
	}
}

func concludeOrder(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds, default preset", all[0].rounds),
		Columns: []string{"delays", "D/T arrived", "D/T FIFO", "D/T window", "FIFO", "window 200", "arrival", "FIFO − arrival"}}
	dearer := 0
	for i := 0; i < len(all); i += 3 {
		fifo, window, arrival := all[i], all[i+1], all[i+2]
		raw, held := fifo.delay()
		_, windowed := window.delay()
		tax := estimate(minus(fifo.regret, arrival.regret))
		if tax.Value > 2*se(tax) {
			dearer++
		}
		t.row(fifo.delays, raw, held, windowed, estimate(fifo.regret), estimate(window.regret), estimate(arrival.regret), tax)
	}
	f.Tables = append(f.Tables, t)
	f.Seen = fmt.Sprintf("an observation, not a theorem: holding feedback back to FIFO cost regret beyond two standard errors under %d of %d delays; a window bounds it.", dearer, len(all)/3)
}

// dmaxClaim looks for the factor √d_max that separates the upper from the lower bound.
func dmaxClaim() Claim {
	return Claim{
		Name:   "dmax",
		Source: "thm:Vovk-regret against appendix-lb-f; left open by the paper",
		Says:   "Is the factor √d_max between the upper bound √(d_max D log|F|) and the lower bound √(D log|F|) seen? At constant delay d and fixed T the first grows like d, the second like √d.",
		plan: func(o Options) plan {
			rounds := size(o, 20000, 4000)
			var all []*cell
			for _, env := range []string{"sigmoid", "close:0.3", "needle:.4,.2,.6"} {
				for _, d := range size(o, []int{0, 25, 50, 100, 200, 400, 800, 1600, 3200}, []int{0, 50, 100, 200, 400, 800}) {
					c := &cell{label: env, x: float64(d), rounds: rounds, env: builtin(env, rounds), delays: fmt.Sprintf("constant:%d", d)}
					start := *c // the rounds in which nothing can be known yet
					start.rounds = max(d, 1)
					start.env = func(seed uint64) replay.Environment { return replay.Head(c.env(seed), start.rounds) }
					all = append(all, c, &start)
				}
			}
			return plan{jobs(o, all), func(f *Finding) {
				gather(all)
				concludeDMax(f, all)
			}}
		},
	}
}

// builtin returns an environment by its specification, which must be right.
func builtin(spec string, rounds int) func(uint64) replay.Environment {
	return func(seed uint64) replay.Environment {
		env, err := replay.NewEnvironment(spec, seed, rounds)
		if err != nil {
			panic(err) // a constant of this package
		}
		return env
	}
}

func concludeDMax(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds", all[0].rounds), Columns: []string{"environment", "delay", "regret", "added by delay", "of it in the first d rounds", "beyond them"}}
	pic := chart.Chart{Title: "What constant delay adds to regret", X: "delay", Y: "regret − regret without delay", LogX: true, LogY: true}
	var seen []string
	for i := 0; i < len(all); {
		base := all[i]
		total, beyond := chart.Series{Name: base.label}, chart.Series{Name: base.label + ", beyond the first d rounds", Dashed: true}
		for ; i < len(all) && all[i].label == base.label; i += 2 {
			c, start := all[i], all[i+1]
			added, after := minus(c.regret, base.regret), minus(c.regret, base.regret)
			if c.x > 0 {
				after = minus(after, start.regret)
			}
			t.row(c.label, c.x, estimate(c.regret), estimate(added), estimate(minus(added, after)), estimate(after))
			addSeen(&total, c.x, estimate(added))
			addSeen(&beyond, c.x, estimate(after))
		}
		pic.Series = append(pic.Series, total, beyond)
		for _, line := range []chart.Series{total, beyond} {
			if fit, ok := fitSlope("added regret over delay, "+line.Name, "lower bound ½, upper bound", 1, line.X, line.Y); ok {
				f.Fits = append(f.Fits, fit)
				seen = append(seen, fmt.Sprintf("d^%.2f (%s)", fit.Slope, line.Name))
			}
		}
	}
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, Picture{"dmax", pic})
	f.Seen = "an observation: constant delay added regret like " + strings.Join(seen, ", ") + ". In the first d rounds nothing can be known, which costs up to d by itself; where nothing is listed beyond them, no more was seen than noise."
}

// minus returns a − b, seed by seed.
func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// addSeen adds a point that is more than noise: what is not has no logarithm.
func addSeen(s *chart.Series, x float64, e replay.Estimate) {
	if x > 0 && e.Value > 2*se(e) {
		s.X, s.Y, s.Err = append(s.X, x), append(s.Y, e.Value), append(s.Err, 2*se(e))
	}
}
