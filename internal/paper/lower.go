package paper

import (
	"fmt"
	"math"

	"hindsight/internal/chart"
)

// unstableClaim plays the oracle of the lower bound.
func unstableClaim() Claim {
	return Claim{
		Name:   "unstable",
		Source: "thm:lower-bound (realizability and a good oracle do not suffice)",
		Says:   "Whatever the algorithm, an oracle of regret 0 but without stability costs Ω(T) at constant delay 1. Played here by greedy, which regrets nothing without delay; beside it DA-FA with Hedge-Vovk, which is stable, on the same rounds and class.",
		plan: func(o Options) plan {
			var all []*cell
			for _, rounds := range size(o, []int{500, 1000, 2000, 4000}, []int{250, 500, 1000}) {
				for _, d := range []int{0, 1} {
					for _, env := range []string{"unstable", "unstable-hedge"} {
						spec := map[string]string{"unstable": "greedy", "unstable-hedge": "dafa"}[env]
						all = append(all, &cell{label: fmt.Sprintf("%s, delay %d", env, d), x: float64(rounds), rounds: rounds,
							env: builtin(env, rounds), delays: fmt.Sprintf("constant:%d", d), tune: plays(spec)})
					}
				}
			}
			return plan{jobs(o, all), func(f *Finding) {
				gather(all)
				concludeUnstable(f, all)
			}}
		},
	}
}

func concludeUnstable(f *Finding, all []*cell) {
	t := Table{Title: "regret", Columns: []string{"T", "unstable oracle, delay 0", "Hedge-Vovk, delay 0", "unstable oracle, delay 1", "Hedge-Vovk, delay 1"}}
	pic := chart.Chart{Title: "An oracle of regret 0 without stability", X: "T", Y: "regret", LogX: true, LogY: true}
	names := []string{"unstable oracle, delay 0", "Hedge-Vovk, delay 0", "unstable oracle, delay 1", "Hedge-Vovk, delay 1"}
	pic.Series = make([]chart.Series, len(names))
	for i := 0; i < len(all); i += len(names) {
		row := []any{all[i].rounds}
		for k, c := range all[i : i+len(names)] {
			e := estimate(c.regret)
			row = append(row, e)
			s := &pic.Series[k]
			s.Name = names[k]
			s.X, s.Y, s.Err = append(s.X, c.x), append(s.Y, e.Value), append(s.Err, 2*se(e))
		}
		late := all[i+2]
		half := float64(late.rounds) / 2
		coin := math.Sqrt(float64(late.rounds)/4) / math.Sqrt(float64(len(late.regret)))
		f.check(mean(all[i].regret) == 0, "T = %d: the unstable oracle regrets nothing without delay", late.rounds)
		f.check(math.Abs(mean(late.regret)-half) <= 4*coin, "T = %d: with delay 1 it regrets T/2, within 4 standard errors of fair coins", late.rounds)
		f.check(within(all[i+3].regret, scaled(late.regret, .5)), "T = %d: Hedge-Vovk with delay 1 regrets less than half of that", late.rounds)
		t.row(row...)
	}
	for i, s := range pic.Series[2:] {
		kind, predicted := "at least", 1.0
		if i == 1 {
			kind, predicted = "at most", .5
		}
		if fit, ok := fitSlope("regret over T, "+s.Name, kind, predicted, s.X, s.Y); ok {
			f.Fits = append(f.Fits, fit)
		}
	}
	f.Checked = "0 without delay, T/2 with delay 1, and Hedge-Vovk less than half of that"
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, Picture{"unstable", pic})
	last := all[len(all)-len(names):]
	f.Seen = fmt.Sprintf("one round of delay made of regret 0 a fair coin a round: %.0f of T = %d. It added %.1f to Hedge-Vovk's %.1f.",
		mean(last[2].regret), last[2].rounds, mean(minus(last[3].regret, last[1].regret)), mean(last[1].regret))
}

func scaled(v []float64, by float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = by * v[i]
	}
	return out
}

// hypercubeClaim plays the instance of the lower bound for function classes.
func hypercubeClaim() Claim {
	return Claim{
		Name:   "hypercube",
		Source: "lem:fa-full-info-lb and appendix-lb-f (lower bound for function classes)",
		Says:   "Over 2ⁿ functions that differ in one best action a context, at ε = √(n/(100T)), no algorithm is much better than playing uniformly; a larger ε is learned.",
		plan: func(o Options) plan {
			rounds := size(o, 20000, 4000)
			var all []*cell
			for _, n := range size(o, []int{8, 32, 128}, []int{8, 32}) {
				for _, eps := range []float64{0, .158} {
					for _, spec := range []string{"uniform", "dafa"} {
						all = append(all, &cell{label: spec, x: float64(n), rounds: rounds,
							env: builtin(fmt.Sprintf("hypercube:%d,%g", n, eps), rounds), delays: "none", tune: plays(spec)})
					}
				}
			}
			return plan{jobs(o, all), func(f *Finding) {
				gather(all)
				concludeHypercube(f, all)
			}}
		},
	}
}

func concludeHypercube(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds", all[0].rounds),
		Columns: []string{"n = log₂|F|", "ε", "uniform", "DA-FA", "DA-FA / uniform", "DA-FA / √(nT)"}}
	pic := chart.Chart{Title: "DA-FA on the hypercube: share of uniform play's regret", X: "n = log₂|F|", Y: "regret / uniform's", LogX: true,
		Series: []chart.Series{{Name: "ε = √(n/(100T))"}, {Name: "ε = .158"}}}
	hard, easy := 0.0, 0.0
	for i := 0; i < len(all); i += 4 {
		for k, eps := range []float64{math.Sqrt(all[i].x / (100 * float64(all[i].rounds))), .158} {
			uniform, dafa := all[i+2*k], all[i+2*k+1]
			u, d := estimate(uniform.regret), estimate(dafa.regret)
			t.row(int(uniform.x), eps, u, d, d.Value/u.Value, d.Value/math.Sqrt(uniform.x*float64(uniform.rounds)))
			line := &pic.Series[k]
			line.X, line.Y, line.Err = append(line.X, uniform.x), append(line.Y, d.Value/u.Value), append(line.Err, 2*se(d)/u.Value)
			if k == 0 {
				hard = math.Max(hard, 1-d.Value/u.Value)
				f.check(d.Value >= .8*u.Value, "n = %d at the paper's ε: DA-FA saves less than a fifth of uniform's regret", int(uniform.x))
			} else {
				easy = math.Max(easy, 1-d.Value/u.Value)
				f.check(within(dafa.regret, uniform.regret), "n = %d at ε = .158: DA-FA regrets less than uniform play", int(uniform.x))
			}
		}
	}
	f.Checked = "at the paper's ε less than a fifth of uniform's regret is saved, at ε = .158 something is"
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, Picture{"hypercube", pic})
	f.Seen = fmt.Sprintf("at the paper's ε DA-FA saved at most %.1f %% of uniform's regret, at ε = .158 up to %.0f %%.", 100*hard, 100*easy)
}
