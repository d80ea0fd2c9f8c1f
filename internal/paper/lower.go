package paper

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/chart"
)

// unstableClaim plays the oracle of the lower bound.
var unstableClaim = Claim{
	Name:   "unstable",
	Source: "thm:lower-bound (realizability and a good oracle do not suffice)",
	Says: "Whatever the algorithm, an oracle of regret 0 but without stability costs Ω(T) at constant delay 1. " +
		"Played here by greedy, which regrets nothing without delay; beside it DA-FA with Hedge-Vovk, which is " +
		"stable, on the same rounds and class.",
	plan: func(o Options) plan {
		var all []*cell
		for _, rounds := range size(o, []int{500, 1000, 2000, 4000}, []int{250, 500, 1000}) {
			for _, d := range []int{0, 1} {
				for _, env := range []string{"unstable", "unstable-hedge"} {
					spec := map[string]string{"unstable": "greedy", "unstable-hedge": "dafa"}[env]
					all = append(all, &cell{label: fmt.Sprintf("%s, delay %d", env, d), x: float64(rounds),
						rounds: rounds,
						env:    builtin(env, rounds), delays: fmt.Sprintf("constant:%d", d), tune: plays(spec)})
				}
			}
		}
		return played(o, all, concludeUnstable)
	},
}

func concludeUnstable(f *Finding, all []*cell) {
	t := Table{Title: "regret", Columns: []string{"T", "unstable oracle, delay 0", "Hedge-Vovk, delay 0",
		"unstable oracle, delay 1", "Hedge-Vovk, delay 1"}}
	pic := chart.Chart{Title: "An oracle of regret 0 without stability", X: "T", Y: "regret", LogX: true, LogY: true}
	for i := 0; i < len(all); i += 4 {
		row := []any{all[i].rounds}
		for _, c := range all[i : i+4] {
			row = append(row, estimate(c.regret))
		}
		late := all[i+2]
		half := float64(late.rounds) / 2
		coin := math.Sqrt(float64(late.rounds)/4) / math.Sqrt(float64(len(late.regret)))
		f.check(mean(all[i].regret) == 0, "T = %d: the unstable oracle regrets nothing without delay", late.rounds)
		f.check(math.Abs(mean(late.regret)-half) <= 4*coin, "T = %d: with delay 1 it regrets T/2, within 4 standard "+
			"errors of fair coins", late.rounds)
		f.check(within(all[i+3].regret, scaled(late.regret, .5)),
			"T = %d: Hedge-Vovk with delay 1 regrets less than half of that", late.rounds)
		t.row(row...)
	}
	for i, s := range f.draw(t, "unstable", pic, 1, 2, 3, 4).Series[2:] {
		kind, predicted := "at least", 1.0
		if i == 1 {
			kind, predicted = "at most", .5
		}
		if fit, ok := fitSlope("regret over T, "+s.Name, kind, predicted, s.X, s.Y); ok {
			f.Fits = append(f.Fits, fit)
		}
	}
	f.Checked = "0 without delay, T/2 with delay 1, and Hedge-Vovk less than half of that"
	last := all[len(all)-4:]
	f.Seen = fmt.Sprintf("one round of delay made of regret 0 a fair coin a round: %.0f of T = %d. It added %.1f to "+
		"Hedge-Vovk's %.1f.",
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
var hypercubeClaim = Claim{
	Name:   "hypercube",
	Source: "lem:fa-full-info-lb and appendix-lb-f (lower bound for function classes)",
	Says: "Over 2ⁿ functions that differ in one best action a context, at ε = √(n/(100T)), no algorithm is much " +
		"better than playing uniformly; ε = ½ is learned, with the regret that is proved.",
	plan: func(o Options) plan {
		rounds := size(o, 20000, 4000)
		var all []*cell
		for _, n := range size(o, []int{4, 16, 64}, []int{4, 12}) {
			for _, eps := range []float64{0, .5} {
				all = append(all, &cell{label: "DA-FA", x: float64(n), rounds: rounds,
					env: builtin(fmt.Sprintf("hypercube:%d,%g", n, eps), rounds), delays: "none"})
			}
		}
		return played(o, all, concludeHypercube)
	},
}

func concludeHypercube(f *Finding, all []*cell) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds", all[0].rounds),
		Columns: []string{"n = log₂|F|", "ε", "uniform play", "DA-FA", "DA-FA / uniform", "DA-FA / √(nT)"}}
	pic := chart.Chart{Title: "DA-FA on the hypercube: share of uniform play's regret", X: "n = log₂|F|",
		Y: "regret / uniform's", LogX: true, Series: []chart.Series{{Name: "ε = √(n/(100T))"}, {Name: "ε = ½"}}}
	hard, easy := 0.0, 0.0
	for i, c := range all {
		eps, line := math.Sqrt(c.x/(100*float64(c.rounds))), &pic.Series[i%2]
		if i%2 == 1 {
			eps = .5
		}
		u, d := mean(c.uniform()), estimate(c.regret)
		t.row(int(c.x), eps, u, d, d.Value/u, d.Value/math.Sqrt(c.x*float64(c.rounds)))
		line.X, line.Y, line.Err = append(line.X, c.x), append(line.Y, d.Value/u), append(line.Err, 2*se(d)/u)
		if i%2 == 0 {
			hard = math.Max(hard, 1-d.Value/u)
			f.check(d.Value >= .8*u, "n = %d at the paper's ε: DA-FA saves less than a fifth of uniform's regret",
				int(c.x))
			continue
		}
		easy = math.Max(easy, 1-d.Value/u)
		what := fmt.Sprintf("n = %d at ε = ½", int(c.x))
		proved := presets[0].bound(c.rounds, 2, c.x*math.Ln2, 0)
		f.check(within(c.regret, slices.Repeat([]float64{proved}, len(c.regret))),
			"%s: DA-FA's regret is below the bound that is proved, %.0f", what, proved)
		f.learns(what, c)
	}
	f.Checked = "at the paper's ε less than a fifth of uniform's regret is saved, at ε = ½ more than half, and what " +
		"is left is below the bound that is proved"
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"hypercube", pic})
	f.Seen = fmt.Sprintf("at the paper's ε DA-FA saved at most %.1f %% of uniform's regret, at ε = ½ up to %.0f %%.",
		100*hard, 100*easy)
}

// block is a cell on blocks:d,N.
type block struct {
	*cell
	n, d int
}

// ratios returns regret over √((d+1)·T·ln N/2), by seed.
func (b *block) ratios() []float64 {
	return scaled(b.regret, 1/math.Sqrt(float64((b.d+1)*b.rounds)*logOf(b.n)/2))
}

// blocksClaim plays the losses of the lower bound for policy classes.
var blocksClaim = Claim{
	Name:   "blocks",
	Source: "thm:lower-bound-full-feedback (lower bound for policy classes)",
	Says: "For every algorithm there are losses in blocks of d + 1 rounds that cost it Ω(√(D log N)): on random ones " +
		"regret is no less than a constant times √((d+1)·T·ln N/2), flat in d. To learn does not help here, only to " +
		"know the future would.",
	plan: func(o Options) plan {
		rounds := size(o, 16384, 4096)
		var blocks []block
		var all []*cell
		for _, n := range size(o, []int{4, 256}, []int{4, 32}) {
			for _, spec := range []string{"adaptive", "known D"} {
				for _, d := range size(o, []int{0, 3, 15, 63, 255}, []int{0, 3, 15, 63}) {
					c := &cell{label: spec, x: float64(d + 1), rounds: rounds,
						env: builtin(fmt.Sprintf("blocks:%d,%d", d, n), rounds), tune: plays("exp4dale")}
					if spec == "known D" {
						c.tune = plays(fmt.Sprintf("exp4dale:%d", rounds*d/2))
					}
					blocks, all = append(blocks, block{c, n, d}), append(all, c)
				}
			}
		}
		return played(o, all, func(f *Finding, _ []*cell) { concludeBlocks(f, blocks) })
	},
}

// least is the share of √((d+1)·T·ln N/2) below which the lower bound is refuted.
const least = 0.25

func concludeBlocks(f *Finding, blocks []block) {
	t := Table{Title: fmt.Sprintf("regret after %d rounds", blocks[0].rounds),
		Columns: []string{"N", "learner", "d", "regret", "over √((d+1)T ln N/2)"}}
	pic := chart.Chart{Title: "EXP4-DALE on blocks: regret over √((d+1)·T·ln N/2)", X: "d + 1", Y: "ratio", LogX: true}
	var seen []string
	for len(blocks) > 0 {
		n := 1
		for n < len(blocks) && blocks[n].d > 0 {
			n++
		}
		line := chart.Series{Name: fmt.Sprintf("N = %d, %s", blocks[0].n, blocks[0].label)}
		mean := make([]float64, len(blocks[0].regret)) // over d, by seed
		for _, b := range blocks[:n] {
			ratios := b.ratios()
			e := estimate(ratios)
			t.row(b.n, b.label, b.d, estimate(b.regret), e)
			addPoint(&line, b.x, e)
			for k := range mean {
				mean[k] += ratios[k] / float64(n)
			}
		}
		if fit, ok := fitSlope("the ratio over d + 1, "+line.Name, "about", 0, line.X, line.Y); ok {
			f.Fits = append(f.Fits, fit)
		}
		f.check(within(slices.Repeat([]float64{least}, len(mean)), mean), "%s: regret is at least %v times √((d+1)T "+
			"ln N/2), mean over d", line.Name, least)
		seen = append(seen, fmt.Sprintf("%.2f for %s", estimate(mean).Value, line.Name))
		pic.Series, blocks = append(pic.Series, line), blocks[n:]
	}
	f.Checked = fmt.Sprintf("regret is at least %v times the rate, within two standard errors", least)
	f.Tables, f.Charts = append(f.Tables, t), append(f.Charts, picture{"blocks", pic})
	f.Seen = "the mean ratio was " + strings.Join(seen, ", ") + "."
}
