package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Runs makes the page of many runs for a terminal that is so many columns wide: one line for all orders of the same
// learner and delays, what varies over the orders as mean ± standard error of the mean. Where the table is too wide
// learner and delays share a column, and speeds are left out.
func Runs(runs []replay.Result, width int) *Page {
	if len(runs) == 0 {
		return brief(note("no runs"))
	}
	r := Results{Runs: runs}
	r.Summarise()
	p := brief(r.runs(width, false), note(legend(runs)))
	p.Sections[0].add(named(groupsOf(runs)), candidates(groupsOf(runs)))
	for _, g := range groupsOf(runs) {
		for _, say := range []func(r *replay.Result) string{
			func(r *replay.Result) string { return r.LateLosses.Warning(r.Rewards) },
			func(r *replay.Result) string { return strings.Join(r.LateWarnings(), ". And: ") },
			func(r *replay.Result) string { return r.Certificate.Changed() },
		} {
			if text := warning(g, say); text != "" {
				p.Sections[0].add(note(text))
			}
		}
	}
	return p
}

// runs has a row a learner and delays.
func (r *Results) runs(width int, narrow bool) *table {
	shown, fourth := r.Runs[0].Rewards, "regret"
	if r.Runs[0].Matched != nil {
		fourth = "matched"
	}
	t := headed(2, "learner", "delays", "mean "+shown.Of(), fourth, "skipped", "D/T in→out", "bound", "rounds/s")
	if narrow {
		t = headed(2, "learner, delays", "", "mean "+shown.Of(), fourth, "skipped", "D/T in→out", "bound")
	}
	t.Caption = replay.InventedDelays(r.Runs)
	groups := groupsOf(r.Runs)
	for i := range r.Summary {
		g := &r.Summary[i]
		shown := groups[i][0].Rewards
		known := g.Regret.text()
		if fourth == "matched" {
			known = words.Percent(float64(g.Matched))
		}
		bound := g.bound()
		if bound == noBound {
			bound = "–"
		}
		row := []string{g.Learner, g.Delays, g.Loss.shown(shown).text(), known, words.Percent(float64(g.Skipped)),
			inOut(float64(g.Raw), float64(g.Released)), bound, words.Digits(float64(g.Speed))}
		if narrow {
			row[0], row[1], row = g.Learner+", "+g.Delays, "", row[:len(row)-1]
		}
		t.row(row...)
	}
	if !narrow && t.layout().Width() > width {
		return r.runs(width, true)
	}
	return t
}

// inOut writes the mean delay in rounds as outcomes arrived and as feedback was released.
func inOut(raw, released float64) string {
	return words.Figure(raw, 3) + "→" + words.Figure(released, 3)
}

// warning says of a group what is said of the first of its runs of which something is said; "" if nothing is.
func warning(g []*replay.Result, say func(r *replay.Result) string) string {
	n, first := 0, ""
	for _, r := range g {
		if text := say(r); text != "" {
			n, first = n+1, cmp.Or(first, text)
		}
	}
	if n == 0 {
		return ""
	}
	orders := ""
	if len(g) > 1 {
		orders = fmt.Sprintf(" (in %d of %d row orders; the first)", n, len(g))
	}
	return fmt.Sprintf("Warning, %s with delays %s%s: %s.", g[0].Learner, g[0].Delays.Spec, orders, first)
}

// replayed is what must be said of such means in a table of runs.
func replayed(r *replay.Result) string {
	if r.Replay == nil {
		return "The mean " + r.Rewards.Of() + " is that of matched rounds: " + ofMatched(r)
	}
	return fmt.Sprintf("Each matched round is weighted by 1/propensity: mean "+r.Rewards.Of()+" (SNIPS) estimates "+
		"that of the learner's policies; of one run ± its standard error (--accept %v)", r.Replay.Accept)
}

// legend says what a table of runs is about, and what its columns mean.
func legend(runs []replay.Result) string {
	first := &runs[0]
	shown, orders := first.Rewards, 0
	for _, g := range groupsOf(runs) {
		orders = max(orders, len(g))
	}
	text := fmt.Sprintf("%s, %s rounds, window %s", first.Environment, words.Count(first.Rounds), windowText(first))
	if first.UniformLoss != nil && sameReward(runs) {
		text += fmt.Sprintf("; mean %s of uniform %s, of the best policy %s", shown.Of(),
			words.Digits(shown.Shown(*first.UniformLoss)), words.Digits(shown.Shown(*first.BestLoss)))
	}
	if first.Matched != nil {
		text += ". Matched: rounds that drew the action of the log; the others are withdrawn. " + replayed(first) +
			". Skipped: of the matched rounds"
	}
	if d := first.Delays.Recorded; d != nil {
		text += fmt.Sprintf(". In the log itself %s; %s of rounds are overtaken by a later one", delayLine(&d.Stats),
			words.Percent(float64(d.Overtaken)/float64(max(first.Rounds, 1))))
	}
	if orders > 1 {
		text += fmt.Sprintf(". Means over %d row orders, ± the standard error", orders)
	}
	return text + `. D/T: mean delay in rounds as outcomes arrived → as feedback was released. Bound: on regret, by ` +
		kindOf(runs) + `; "vacuous" where it is not below T` + withoutWithdrawn(first) + voidText(runs) + "."
}

// sameReward reports whether all runs are worth the same: formulas may differ.
func sameReward(runs []replay.Result) bool {
	return !slices.ContainsFunc(runs, func(r replay.Result) bool { return r.Formula != runs[0].Formula })
}

// voidText says why bounds in a table are void, "" if none is.
func voidText(runs []replay.Result) string {
	for i := range runs {
		if b, ok := runs[i].Certificate.Sharpest(); ok && b.Void != "" {
			return `; "void": ` + b.Void
		}
	}
	return ""
}

// withoutWithdrawn says which rounds bounds are of.
func withoutWithdrawn(r *replay.Result) string {
	if r.Fates.Withdrawn == 0 {
		return ""
	}
	return ", the number of rounds that are not withdrawn"
}

// kindOf names the kinds of the bounds of runs.
func kindOf(runs []replay.Result) string {
	var kinds []string
	for i := range runs {
		if b, ok := runs[i].Certificate.Sharpest(); ok && !slices.Contains(kinds, b.Name()) {
			kinds = append(kinds, b.Name())
		}
	}
	return cmp.Or(strings.Join(kinds, " or "), "none")
}
