package layout

import (
	"cmp"
	"fmt"
	"io"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// WriteRun writes the figures of one run for people, at most 80 columns wide.
func WriteRun(w io.Writer, r *replay.Result) error {
	var t table
	t.row("in short", brief(r))
	t.row("run", words.Items("%s, learner %s, delays %s, window %s, order %d, seed %d", r.Environment, r.Learner, r.Delays.Spec, windowText(r), r.Order, r.Seed))
	t.row("rounds", words.Count(r.Rounds)+" at "+words.Digits(r.RoundsPerSecond)+" a second")
	loss := "not known: no outcome"
	if r.MeanLoss != nil {
		loss = words.Digits(r.Rewards.Shown(*r.MeanLoss))
	}
	if r.UniformLoss != nil {
		loss += "  (uniform " + words.Digits(*r.UniformLoss) + ", best " + words.Digits(*r.BestLoss) + ")"
	}
	t.row("mean "+r.Rewards.Of(), loss)
	if r.Matched != nil {
		t.row("matched", words.Share(*r.Matched, r.Rounds)+
			" rounds drew the action of the log; the mean "+r.Rewards.Of()+" is theirs, and "+ofMatched(r))
	}
	if r.Regret == nil {
		t.row("regret", "not known: the truth is not")
	} else {
		t.row("regret", words.Digits(*r.Regret)+"  of at most "+words.Count(r.Rounds+r.Pending))
	}
	f := r.Fates
	t.row("rounds that were", words.Items("observed %s, imputed %s, skipped %s, withdrawn %s", words.Share(f.Observed, r.Rounds), words.Share(f.Imputed, r.Rounds), words.Share(f.Skipped, r.Rounds), words.Share(f.Withdrawn, r.Rounds)))
	if r.Pending > 0 {
		t.row("rounds that wait", words.Count(r.Pending)+" still: behind one without an outcome whose window no later decision ends")
	}
	t.row("outcomes that were", words.Items("late %s, duplicate %s, orphan %s, mismatch %s, malformed %s", words.Count(f.Late), words.Count(f.Duplicate), words.Count(f.Orphan), words.Count(f.Mismatch), words.Count(f.Malformed)))
	if r.LateLosses.Differ {
		t.row("warning", r.LateLosses.Warning(r.Rewards))
	} else if text := r.LateLosses.Line(r.Rewards); text != "" {
		t.row("late losses", text)
	}
	if d := r.Delays.Recorded; d != nil {
		t.row("delays in the log", d.Line()+fmt.Sprintf(", %s overtaken (its own decision counts)", words.Share(d.Overtaken, r.Rounds)))
	}
	t.row("delays as arrived", r.Delays.Raw.Line())
	t.row("delays as released", r.Delays.Released.Line())
	t.row("FIFO tax", fmt.Sprintf("%s in D; %s overtaken by a later one", words.Count(r.Delays.FIFOTax), words.Share(r.Delays.Overtaken, r.Rounds+r.Pending)))
	addCertificate(&t, r)
	return t.write(w, 80)
}

// windowText is the window, and where nothing gives one why it is this.
func windowText(r *replay.Result) string {
	if r.DefaultWindow {
		return r.Window + " (none is given, and the data has no times)"
	}
	return r.Window
}

// brief says what was played, what was lost, and what was possible.
func brief(r *replay.Result) string {
	text := words.Count(r.Rounds) + " rounds were played"
	if r.Delays.Invented {
		text += ", with delays that are invented and not those of the data"
	}
	text += "; "
	if r.MeanLoss == nil {
		return text + "no outcome came, so what they lost is not known"
	}
	text += "their mean " + r.Rewards.Of() + " is " + words.Digits(r.Rewards.Shown(*r.MeanLoss))
	if r.Matched != nil {
		text += ", where the action of the log was drawn"
	}
	if r.UniformLoss == nil {
		return text + "; what was possible is not known"
	}
	return text + "; that of uniform play " + words.Digits(*r.UniformLoss) + ", of the best policy " + words.Digits(*r.BestLoss)
}

// ofMatched is what must be said of a mean over matched rounds.
func ofMatched(r *replay.Result) string {
	if r.Replay == nil {
		return "no unbiased estimate of its policy: the log has no propensities"
	}
	return fmt.Sprintf("by propensities the %s of its policies is %s (SNIPS; IPS %s), effective sample size %s",
		r.Rewards.Of(), shown(r, &r.Replay.SNIPS),
		shown(r, &r.Replay.IPS), words.Figure(float64(r.Replay.ESS), 3))
}

// shown writes an estimate of a loss with its error, as what the log has.
func shown(r *replay.Result, e *ope.Estimate) string {
	return words.WithError(r.Rewards.Shown(float64(e.Value)), r.Rewards.Length(float64(e.SE)))
}

// replayed is what must be said of such means in a table of runs.
func replayed(r *replay.Result) string {
	if r.Replay == nil {
		return "The mean " + r.Rewards.Of() + " is that of matched rounds, and " + ofMatched(r)
	}
	return fmt.Sprintf("Each matched round weighs 1/propensity, and mean "+r.Rewards.Of()+" is the weighted one (SNIPS), which estimates that of the learner's policies; of one run ± its standard error (--accept %v)", r.Replay.Accept)
}

// WriteRunsIn writes many runs for people, one line for all orders of the same
// learner and delays, at most width columns wide: what does not fit beside goes on
// below, and speeds are left out. What varies over the orders is given as mean ±
// standard error of the mean.
func WriteRunsIn(w io.Writer, runs []replay.Result, width int) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "no runs")
		return err
	}
	t := table{right: true}
	fourth := "regret"
	if runs[0].Matched != nil {
		fourth = "matched"
	}
	t.row("learner", "delays", "mean "+runs[0].Rewards.Of(), fourth, "skipped", "D/T in→out", "bound", "rounds/s")
	for _, g := range replay.Groups(runs) {
		first := g[0]
		t.row(first.Learner, first.Delays.Spec,
			meanWorth(g),
			regretOrMatched(g),
			words.Percent(average(g, func(r *replay.Result) float64 { return float64(r.Fates.Skipped) / float64(max(r.Rounds, 1)) })),
			words.Figure(average(g, func(r *replay.Result) float64 { return r.Delays.Raw.Mean }), 3)+
				"→"+words.Figure(average(g, func(r *replay.Result) float64 { return r.Delays.Released.Mean }), 3),
			bound(g),
			words.Digits(average(g, func(r *replay.Result) float64 { return r.RoundsPerSecond })))
	}
	if text := replay.InventedDelays(runs); text != "" {
		if _, err := io.WriteString(w, wrap(text, width, 0)+"\n"); err != nil {
			return err
		}
	}
	if err := t.writeIn(w, width); err != nil {
		return err
	}
	out := wrap(legend(runs), width, 0) + "\n"
	for _, g := range replay.Groups(runs) {
		for _, say := range []func(*replay.Result) string{lateWarning, changeWarning} {
			if text := warning(g, say); text != "" {
				out += "\n" + wrap(text, width, 0) + "\n"
			}
		}
	}
	_, err := io.WriteString(w, out)
	return err
}

// warning says of a group what is said of the first of its runs of which something is said;
// "" if nothing is.
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

func lateWarning(r *replay.Result) string {
	if !r.LateLosses.Differ {
		return ""
	}
	return r.LateLosses.Warning(r.Rewards)
}

func changeWarning(r *replay.Result) string { return r.Certificate.Changed() }

// meanWorth returns the mean loss or reward of a group; of a log with propensities the weighted
// one.
func meanWorth(g []*replay.Result) string {
	if len(g) == 1 && g[0].Replay != nil {
		return shown(g[0], &g[0].Replay.SNIPS)
	}
	return spread(g, func(r *replay.Result) *float64 {
		if r.Replay == nil && r.MeanLoss == nil {
			return nil
		}
		v, _ := r.Value()
		v = r.Rewards.Shown(v)
		return &v
	})
}

// regretOrMatched returns the regret of a group, or of a log, of which none is known, how
// many rounds matched.
func regretOrMatched(g []*replay.Result) string {
	if g[0].Matched == nil {
		return spread(g, func(r *replay.Result) *float64 { return r.Regret })
	}
	return words.Percent(average(g, func(r *replay.Result) float64 { return float64(*r.Matched) / float64(max(r.Rounds, 1)) }))
}

// legend says what a table of runs is about, and what its columns mean.
func legend(runs []replay.Result) string {
	first := runs[0]
	orders := 0
	for _, g := range replay.Groups(runs) {
		orders = max(orders, len(g))
	}
	text := fmt.Sprintf("%s, %s rounds, window %s", first.Environment, words.Count(first.Rounds), windowText(&first))
	if first.UniformLoss != nil {
		text += fmt.Sprintf("; mean loss of uniform %s, of the best policy %s", words.Digits(*first.UniformLoss), words.Digits(*first.BestLoss))
	}
	if first.Matched != nil {
		text += ". Matched: rounds that drew the action of the log; the others are withdrawn. " + replayed(&first)
	}
	if d := first.Delays.Recorded; d != nil {
		text += fmt.Sprintf(". In the log itself %s; %s of rounds are overtaken by a later one", d.Line(), words.Percent(float64(d.Overtaken)/float64(max(first.Rounds, 1))))
	}
	if orders > 1 {
		text += fmt.Sprintf(". Means over %d row orders, ± the standard error", orders)
	}
	return text + `. D/T: mean delay in rounds as outcomes arrived → as feedback was released. Bound: on regret, by ` + kindOf(runs) + `; "vacuous" where it is not below T` + withoutWithdrawn(first) + voidText(runs) + "."
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
func withoutWithdrawn(r replay.Result) string {
	if r.Fates.Withdrawn == 0 {
		return ""
	}
	return ", the number of rounds that are not withdrawn"
}

func average(g []*replay.Result, of func(*replay.Result) float64) float64 {
	sum := 0.0
	for _, r := range g {
		sum += of(r)
	}
	return sum / float64(len(g))
}

// spread returns mean ± standard error, or – where a run has no value.
func spread(g []*replay.Result, of func(*replay.Result) *float64) string {
	return estimateText(replay.MeanOf(g, of))
}
