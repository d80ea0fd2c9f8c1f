package report

import (
	"fmt"

	"hindsight/internal/layout"
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
			page.Flags = append(page.Flags, Flag{Good, fmt.Sprintf("take a window of %s: of those within two standard errors "+
				"of the cheapest it skips least, %s of the rounds.", w.Window, words.Percent(w.Skipped))})
			switch {
			case w.Void != "":
				page.Flags = append(page.Flags, Flag{Warn, "the bound of that window is void: " + w.Void + "."})
			case w.Vacuous:
				page.Flags = append(page.Flags, Flag{Warn, "the bound of that window is vacuous: it is at least as large as the " +
					"number of rounds."})
			}
			if i == len(prices)-1 && len(prices) > 1 {
				page.Flags = append(page.Flags, Flag{Warn, "it is the longest that was tried; a longer one may be better."})
			}
		}
	}
	s := Section{ID: "windows", Title: "Windows"}
	s.say("A round waits for its outcome as long as the window says. A long window holds back the rounds behind one " +
		"whose outcome is late; a short one skips rounds whose outcome would have come. Each window was played with the " +
		"same seeds.")
	s.add(FromChart("windows", "A round's share. Bands are two standard errors over seeds.",
		layout.WindowChart(prices, first)), windowTable(prices, first.Rewards))
	page.Sections = []Section{s, b.parameters()}
	return page
}

func windowTable(prices []replay.WindowPrice, shown *words.Rewards) *Table {
	t := &Table{Columns: []Column{{Name: "window", Text: true}, {Name: "skipped"},
		{Name: "late", Means: "outcomes that came after it, a round"},
		{Name: "D/T", Means: "mean delay in rounds as feedback was released"},
		{Name: "σ_max", Means: "the most rounds that were open at once"},
		{Name: "bound", Means: "on regret by measured drift; skipped rounds are charged 1"},
		{Name: "mean " + shown.Of()}, {Name: "regret"}, {Name: shown.Beyond() + " the cheapest", Means: "paired by seed"}}}
	for i := range prices {
		w := &prices[i]
		t.row(w.Window, words.Percent(w.Skipped), words.Percent(w.Late), words.Digits(w.Released),
			words.Count(w.SigmaMax), w.BoundText(estimate(w.Bound)), estimate(w.MeanLoss.Shown(shown)), estimate(w.Regret),
			estimate(w.Worse.Length(shown)))
		if w.Recommended {
			t.mark(Good)
		}
	}
	return t
}
