package report

import (
	"fmt"
	"math"

	"hindsight/internal/delay"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// byDelays returns the first run of each kind of delays: those are what the part on
// delays shows, for they hardly depend on the learner.
func (b *builder) byDelays() (out []*replay.Result) {
	seen := map[string]bool{}
	for _, g := range b.groups {
		if !seen[g[0].Delays.Spec] {
			seen[g[0].Delays.Spec] = true
			out = append(out, g[0])
		}
	}
	return out
}

// delays is the part on when outcomes came.
func (b *builder) delays() section {
	s := section{ID: "delays", Title: "Delays"}
	if len(b.groups) == 0 {
		s.say("No learner was played, so there are no delays to show; --learner names one.")
		return s
	}
	s.say("A delay is the number of later rounds that were decided before an outcome came. Feedback is learned in " +
		"the order of decisions, so an outcome that comes early waits for all earlier rounds. That wait is the FIFO " +
		"tax; the window bounds it.")
	t := &table{Caption: "Delays in rounds", Columns: []column{{Name: "delays", Text: true}, {Name: "until",
		Text: true},
		{Name: "mean"}, {Name: "p50", Means: "median: half of the delays are no longer"}, {Name: "p90"}, {Name: "p99"},
		{Name: "d_max", Means: "the longest"}, {Name: "D", Means: "the sum over all rounds; bounds on regret grow " +
			"with it"},
		{Name: "σ_max", Means: "maximum number of rounds open at once"},
		{Name: "overtaken", Means: "rounds whose outcome came after that of a later round"},
		{Name: "skipped", Means: "rounds without an outcome in the window, of a log of those matched"},
		{Name: "too late", Means: "outcomes after the window, which are not learned"}}}
	for _, r := range b.byDelays() {
		t.delays(r.Delays.Spec, "outcome", &r.Delays.Raw, share(r.Delays.Overtaken, r.Rounds+r.Pending),
			share(r.Fates.Skipped, r.Waited()), share(r.Fates.Late, r.Waited()))
		t.delays("", "learning", &r.Delays.Released, "", "", "")
	}
	if d := b.byDelays()[0].Delays.Recorded; d != nil {
		t.delays("in the log itself", "outcome", &d.Stats, share(d.Overtaken, b.Runs[0].Rounds), "", "")
	}
	if r := b.Runs[0]; r.Matched != nil {
		s.say("If a learner draws another action than the recorded one, the round is withdrawn at once and does not " +
			"wait. So a learner that learns from part of a log meets only part of its delays.")
	}
	s.add(b.delayBars(), b.outstanding(), t)
	return s
}

func (t *table) delays(spec, as string, d *delay.Stats, rest ...string) {
	t.row(append([]string{spec, as, words.Digits(d.Mean), words.Count(d.P50), words.Count(d.P90), words.Count(d.P99),
		words.Count(d.DMax), words.Count(d.D), words.Count(d.SigmaMax)}, rest...)...)
}

func share(n, of int64) string { return words.Percent(float64(n) / float64(max(of, 1))) }

// delayBars is the histogram of delays, a view for each kind.
func (b *builder) delayBars() *pageChart {
	c := &pageChart{ID: "delays", Title: "How late outcomes were", Kind: bars,
		X: axis{Label: "delay (later rounds)"}, Y: axis{Label: "rounds", Zero: true}}
	c.Says = "Each bar covers twice the range of the one before. Rounds that move to the right between the two " +
		"colours waited for earlier rounds."
	all := b.byDelays()
	for _, r := range all {
		if r.Course == nil {
			return nil
		}
		for i, bin := range r.Course.Delays {
			if i == len(c.Names) {
				c.Names = append(c.Names, binName(bin))
			}
		}
	}
	for _, r := range all {
		raw, released := series{Name: "to outcome"}, series{Name: "to learning"}
		for i := range c.Names {
			var bin delay.Bin
			if i < len(r.Course.Delays) {
				bin = r.Course.Delays[i]
			}
			raw.Y, released.Y = append(raw.Y, ope.Figure(bin.Raw)), append(released.Y, ope.Figure(bin.Released))
		}
		c.Views = append(c.Views, view{r.Delays.Spec, []series{raw, released}})
	}
	return c
}

func binName(b delay.Bin) string {
	if b.Low == b.High {
		return words.Count(b.Low)
	}
	if b.High < 100 {
		return fmt.Sprintf("%d–%d", b.Low, b.High)
	}
	return words.Count(b.Low) + "+"
}

// outstanding is the chart of rounds that wait, a view for each kind of delays.
func (b *builder) outstanding() *pageChart {
	c := &pageChart{ID: "outstanding", Title: "Open rounds", Kind: lines,
		Y: axis{Label: "open rounds", Zero: true}}
	c.Says = "How many earlier rounds were open when a round was decided: the mean of each interval. The gap between " +
		"the first two lines is the FIFO tax."
	for i, r := range b.byDelays() {
		if r.Course == nil {
			return nil
		}
		if i == 0 {
			c.along(r.Course)
		}
		most := series{Name: "not yet learned, at most", Aside: true, Off: true}
		for _, n := range r.Course.Most {
			most.Y = append(most.Y, ope.Figure(n))
		}
		one := view{r.Delays.Spec, []series{{Name: "without an outcome", Y: r.Course.Arriving},
			{Name: "not yet learned", Y: r.Course.Waiting}}}
		if held := r.Course.Held; len(held) > 0 && !math.IsNaN(float64(held[0])) { // else only a live joiner knew
			one.Series = append(one.Series, series{Name: "with an outcome, waiting for earlier rounds", Y: held})
		}
		one.Series = append(one.Series, most)
		c.Views = append(c.Views, one)
	}
	return c
}
