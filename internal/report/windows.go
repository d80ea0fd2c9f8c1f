package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// Windows makes the report of what each window costs. first is a run, of the first window
// with the first of so many seeds.
func Windows(first *replay.Result, seeds int, prices []replay.WindowPrice, p *Parameters) *Page {
	b := &builder{Results: &Results{Parameters: p}}
	page := &Page{Title: "What a window costs", Foot: b.foot(),
		Subtitle: fmt.Sprintf("%s · learner %s · delays %s · %s rounds · %d seeds", first.Environment, first.Learner,
			first.Delays.Spec, words.Count(first.Rounds), seeds)}
	if text := replay.InventedDelays([]replay.Result{*first}); text != "" {
		page.Subtitle += " · " + text
	}
	for i := range prices {
		if w := &prices[i]; w.Recommended {
			page.flag(good, "choose a window of %s: of those within two standard errors of the cheapest it skips "+
				"fewest rounds, %s.", w.Window, words.Percent(w.Skipped))
			switch {
			case w.Void != "":
				page.flag(warn, "the bound of that window is void: %s.", w.Void)
			case w.Vacuous:
				page.flag(warn, "the bound of that window is vacuous: it is at least as large as the number of rounds.")
			}
			if i == len(prices)-1 && len(prices) > 1 {
				page.flag(warn, "it is the longest one tried; a longer one may be better.")
			}
		}
	}
	s := section{ID: "windows", Title: "Windows"}
	s.say("A round waits for its outcome until the window ends. With a long window, one late outcome delays all " +
		"later rounds; a short window skips rounds whose outcome would have come. Each window was played with the " +
		"same seeds.")
	s.add(fromChart("windows", "Figures per round. Bands are two standard errors over seeds.",
		WindowChart(prices, first)), windowTable(prices, first.Rewards))
	page.Sections = []section{s, b.parameters()}
	return page
}

// windowTable has a row a window.
func windowTable(prices []replay.WindowPrice, shown *words.Rewards) *table {
	t := &table{Caption: "Cost of each window", Columns: []column{{Name: "window", Text: true},
		{Name: "skipped", Means: "of the rounds that waited for an outcome; of a log those that drew its action"},
		{Name: "late", Means: "outcomes that came after the window, of the same rounds"},
		{Name: "D/T", Means: "mean delay in rounds as feedback was released"},
		{Name: "σ_max", Means: "maximum number of rounds open at once"},
		{Name: "bound", Means: "on regret, by measured drift; each skipped round is charged 1"},
		{Name: "mean " + shown.Of()}, {Name: "regret"}, {Name: shown.Beyond() + " the cheapest",
			Means: "paired by seed"}}}
	for i := range prices {
		w := &prices[i]
		t.row(windowCells(w, shown, mean.String, words.Digits)...)
		if w.Recommended {
			t.mark(good)
		}
	}
	return t
}

// windowCells are what is told of a window, means and figures as they are written.
func windowCells(w *replay.WindowPrice, shown *words.Rewards, mean func(mean) string,
	digits func(float64) string) []string {
	bound := mean(meanOfEstimate(w.Bound))
	switch {
	case w.Void != "":
		bound = voidBound
	case w.Vacuous:
		bound = vacuousBound
	}
	return []string{w.Window, words.Percent(w.Skipped), words.Percent(w.Late), digits(w.Released),
		words.Count(w.SigmaMax), bound, mean(meanOfEstimate(w.MeanLoss).shown(shown)), mean(meanOfEstimate(w.Regret)),
		mean(meanOfEstimate(w.Worse).length(shown))}
}

// WindowPrices makes the page of what each window costs for a terminal.
func WindowPrices(first *replay.Result, seeds int, prices []replay.WindowPrice) *Page {
	beyond := first.Rewards.Beyond()
	t := headed(2, "window", "", "skipped", "late", "D/T", "σ_max", "bound", "mean "+first.Rewards.Of(), "regret",
		beyond+" best")
	t.Caption = replay.InventedDelays([]replay.Result{*first})
	for i := range prices {
		mark := ""
		if prices[i].Recommended {
			mark = "◀ take"
		}
		short := func(x float64) string { return words.Figure(x, 3) }
		t.row(slices.Insert(windowCells(&prices[i], first.Rewards, mean.text, short), 1, mark)...)
	}
	of := ""
	if first.Matched != nil {
		of = "Skipped, late: of the rounds that drew the log's action; the others come back at once. "
	}
	what := "loss beyond"
	switch {
	case first.Regret != nil:
		what = "regret beyond"
	case first.Rewards != nil:
		what = "reward short of"
	}
	legend := fmt.Sprintf("%s, learner %s, delays %s, %s rounds, %d seeds, ± the standard error. %sD/T: mean delay "+
		"in rounds as feedback is released. Bound: on regret by measured drift, 1 charged for each skipped round; it "+
		"holds if outcomes are missing at random, and is void where the class is refuted. %s best: %s the cheapest "+
		"window's, paired by seed. Take: of the windows within two standard errors of the cheapest, the one that "+
		"skips least.", first.Environment, first.Learner, first.Delays.Spec, words.Count(first.Rounds), seeds, of,
		strings.ToUpper(beyond[:1])+beyond[1:], what)
	return brief(t, note(legend))
}

// WindowFile returns the same figures as a CSV file.
func WindowFile(prices []replay.WindowPrice) *csvFile {
	f := &csvFile{Name: "window.csv", Columns: []string{"window", "skipped", "late", "d_released", "sigma_max", "bound",
		"vacuous", "void", "mean_loss", "mean_loss_se", "regret", "regret_se", "worse", "worse_se", "recommended"}}
	for i := range prices {
		p := &prices[i]
		row := []string{p.Window, full(p.Skipped), full(p.Late), full(p.Released), numeral(p.SigmaMax),
			known(meanOfEstimate(p.Bound).Value), strconv.FormatBool(p.Vacuous), p.Void}
		for _, e := range []*replay.Estimate{p.MeanLoss, p.Regret, p.Worse} {
			m := meanOfEstimate(e)
			row = append(row, known(m.Value), known(m.SE))
		}
		f.row(row, []string{strconv.FormatBool(p.Recommended)})
	}
	return f
}

// WindowChart draws what a window costs a round: the loss above that of the best policy where the truth is known, the
// whole loss where it is not, beside the bound and the share of rounds skipped. first is one of the runs. Rewards may
// be negative, and then have no logarithm.
func WindowChart(prices []replay.WindowPrice, first *replay.Result) *chart.Chart {
	c := &chart.Chart{Title: "What a window costs", X: "window (rounds)", Y: "per round", LogX: true,
		LogY: first.Rewards == nil || first.Rewards.Min >= 0}
	n := float64(max(first.Rounds, 1))
	c.Series = []chart.Series{{Name: "mean " + first.Rewards.Of()}, {Name: "bound by measured drift"},
		{Name: "share of rounds skipped"}}
	loss, bound, skipped := &c.Series[0], &c.Series[1], &c.Series[2]
	add := func(s *chart.Series, x float64, m mean, by float64) {
		half := 2 * float64(m.SE)
		if math.IsNaN(half) {
			half = 0
		}
		if m.known() {
			s.X, s.Y, s.Err = append(s.X, x), append(s.Y, float64(m.Value)/by), append(s.Err, half/by)
		}
	}
	for i := range prices {
		p := &prices[i]
		w, _ := model.ParseWindow(p.Window) // as PriceWindows wrote it
		x := float64(w.Rounds)
		if w.Nanos > 0 {
			c.X, x = "window (minutes)", float64(w.Nanos)/60e9
		}
		if p.Regret != nil {
			loss.Name = "regret"
			add(loss, x, meanOfEstimate(p.Regret), n)
		} else {
			add(loss, x, meanOfEstimate(p.MeanLoss).shown(first.Rewards), 1)
		}
		if !p.Vacuous {
			add(bound, x, meanOfEstimate(p.Bound), n)
		}
		skipped.X, skipped.Y = append(skipped.X, x), append(skipped.Y, p.Skipped)
		if p.Recommended {
			c.Mark = &x
		}
	}
	return c
}
