package report

import (
	"fmt"
	"strings"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Run makes the page of one run for a terminal: a line a figure.
func Run(r *replay.Result) *Page {
	t := headed(2, "", "")
	t.row("in short", inShort(r))
	t.row("run", words.Items("%s, learner %s, delays %s, window %s, order %d, seed %d", r.Environment, r.Learner,
		r.Delays.Spec, windowText(r), r.Order, r.Seed))
	t.row("rounds", words.Count(r.Rounds)+" at "+words.Digits(r.RoundsPerSecond)+" a second")
	loss := "not known: no outcome"
	if r.MeanLoss != nil {
		loss = words.Digits(r.Rewards.Shown(*r.MeanLoss))
	}
	if r.UniformLoss != nil {
		loss += "  (uniform " + words.Digits(r.Rewards.Shown(*r.UniformLoss)) + ", best " +
			words.Digits(r.Rewards.Shown(*r.BestLoss)) + ")"
	}
	t.row("mean "+r.Rewards.Of(), loss)
	if r.Matched != nil {
		t.row("matched", words.Share(*r.Matched, r.Rounds)+" rounds drew the action of the log; the mean "+
			r.Rewards.Of()+" is theirs, and "+ofMatched(r))
	}
	if r.Regret == nil {
		t.row("regret", "not known: only the "+r.Rewards.Of()+" of the drawn action is")
	} else {
		t.row("regret", words.Digits(*r.Regret)+"  of at most "+words.Count(r.Rounds+r.Pending))
	}
	f := &r.Fates
	t.row("rounds that were", words.Items("observed %s, imputed %s, skipped %s, withdrawn %s",
		words.Share(f.Observed, r.Rounds), words.Share(f.Imputed, r.Rounds), words.Share(f.Skipped, r.Rounds),
		words.Share(f.Withdrawn, r.Rounds)))
	if r.Pending > 0 {
		t.row("rounds that wait", words.Count(r.Pending)+
			" at the end: no later decision ends the window of an earlier round without an outcome")
	}
	t.row("outcomes that were", words.Items("late %s, duplicate %s, orphan %s, mismatch %s, malformed %s",
		words.Count(f.Late), words.Count(f.Duplicate), words.Count(f.Orphan), words.Count(f.Mismatch),
		words.Count(f.Malformed)))
	if text := r.LateLosses.Warning(r.Rewards); text != "" {
		t.row("warning", text)
	} else if text := r.LateLosses.Line(r.Rewards); text != "" {
		t.row("late losses", text)
	}
	if d := r.Delays.Recorded; d != nil {
		t.row("delays in the log", delayLine(&d.Stats)+fmt.Sprintf(", %s overtaken (its own decision counts)",
			words.Share(d.Overtaken, r.Rounds)))
	}
	t.row("delays as arrived", delayLine(&r.Delays.Raw))
	t.row("delays as released", delayLine(&r.Delays.Released))
	t.row("FIFO tax", fmt.Sprintf("%s in D; %s overtaken by a later one", words.Count(r.Delays.FIFOTax),
		words.Share(r.Delays.Overtaken, r.Rounds+r.Pending)))
	t.certificate(r)
	return brief(t, named([][]*replay.Result{{r}}))
}

// inShort says what was played, what was lost, and what was possible.
func inShort(r *replay.Result) string {
	text := words.Count(r.Rounds) + " rounds were played"
	if r.Delays.Invented {
		text += ", with artificial delays"
	}
	text += "; "
	if r.MeanLoss == nil {
		return text + "no outcome came, so their loss is not known"
	}
	text += "their mean " + r.Rewards.Of() + " is " + words.Digits(r.Rewards.Shown(*r.MeanLoss))
	if r.Matched != nil {
		text += ", where the action of the log was drawn"
	}
	if r.UniformLoss == nil {
		return text + "; the best possible is not known"
	}
	return text + "; uniform play has " + words.Digits(r.Rewards.Shown(*r.UniformLoss)) +
		", the best policy " + words.Digits(r.Rewards.Shown(*r.BestLoss))
}

// windowText is the window, and where nothing gives one why it is this.
func windowText(r *replay.Result) string {
	if r.DefaultWindow {
		return r.Window + " (default: none is given, and the data has no times)"
	}
	return r.Window
}

// ofMatched is what must be said of a mean over matched rounds.
func ofMatched(r *replay.Result) string {
	if r.Replay == nil {
		return "a biased estimate of its policy, because the log has no propensities"
	}
	shown := func(e *ope.Estimate) string { return mean{e.Value, e.SE}.shown(r.Rewards).text() }
	return fmt.Sprintf("by propensities the %s of its policies is %s (SNIPS; IPS %s), effective sample size %s",
		r.Rewards.Of(), shown(&r.Replay.SNIPS), shown(&r.Replay.IPS), words.Figure(float64(r.Replay.ESS), 3))
}

func delayLine(s *delay.Stats) string {
	return words.Items("D %s, d_max %s, σ_max %s, mean %s, p50 %s, p90 %s, p99 %s", words.Count(s.D),
		words.Count(s.DMax), words.Count(s.SigmaMax), words.Digits(s.Mean), words.Count(s.P50), words.Count(s.P90),
		words.Count(s.P99))
}

// certificate adds the rows of a run's certificate: the bounds, the sharpest kind first, with T and beside them the
// truth and what exploring cost; the assumptions with their states; and what does not hold.
func (t *table) certificate(r *replay.Result) {
	c := &r.Certificate
	title := "certificate"
	row := func(text string) {
		t.row(title, text)
		title = ""
	}
	if p := c.PlausibleSet; p != nil {
		how := fmt.Sprintf(" with probability %v, at all times at once", 1-p.Alpha)
		row(boundText("plausible set", &p.Bound, c.T, how) + fmt.Sprintf("; %d of %d functions survive", p.Surviving,
			p.Functions))
		if x := p.MissingAtRandom; x != nil && p.Value != nil && *x < *p.Value {
			row("and " + words.Digits(*x) + " if outcomes are missing independently of their loss")
		}
	}
	for _, b := range c.Bounds() {
		how := ""
		switch b.Kind {
		case certify.KindPlausibleSet:
			continue
		case certify.KindRealisedLoss:
			how = fmt.Sprintf(" with probability %v, at all times at once, as if the best %s nothing",
				1-c.RealisedLoss.Alpha, r.Rewards.Lost())
		}
		row(boundText(b.Name(), b.Bound, c.T, how))
	}
	if r.Rewards != nil && title == "" {
		row(r.Rewards.Regret())
	}
	if r.Regret != nil && title == "" {
		row("the true regret is " + words.Digits(*r.Regret))
	}
	if c.ExplorationCost != nil {
		row("exploring cost " + words.Digits(*c.ExplorationCost) + " so far by the model's own estimates")
	}
	for _, n := range c.Notes {
		row(n)
	}
	title = "assumptions"
	var plain []string
	for _, a := range c.Assumptions {
		if a.State == certify.Enforced || a.State == certify.Holds || a.State == certify.NotNeeded {
			plain = append(plain, strings.ReplaceAll(a.Name+" "+a.State, " ", words.NoBreak))
		}
	}
	if plain != nil {
		row(strings.Join(plain, ", "))
	}
	for _, a := range c.Assumptions {
		if a.State != certify.Enforced && a.State != certify.Holds && a.State != certify.NotNeeded {
			row(a.Name + " " + a.State + ": " + a.Detail)
		}
	}
}

// boundText says a bound and how it holds, or what voids it; beside it T, of which a vacuous one says nothing.
func boundText(name string, b *certify.Bound, rounds int64, how string) string {
	if b.Void != "" {
		return name + ": void, " + b.Void
	}
	text := "∞"
	if b.Value != nil {
		text = words.Digits(*b.Value)
	}
	if b.Vacuous {
		text += " (vacuous: not below T = " + words.Count(rounds) + ")"
	} else {
		text += " of T = " + words.Count(rounds)
	}
	return name + ": regret ≤ " + text + how
}
