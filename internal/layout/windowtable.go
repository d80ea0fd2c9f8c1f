package layout

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// WriteWindows writes the price of each window for people, at most 100 columns wide.
func WriteWindows(w io.Writer, first *replay.Result, seeds int, prices []replay.WindowPrice) error {
	if text := replay.InventedDelays([]replay.Result{*first}); text != "" {
		if _, err := io.WriteString(w, text+"\n"); err != nil {
			return err
		}
	}
	t, beyond := table{right: true}, first.Rewards.Beyond()
	t.row("window", "", "skipped", "late", "D/T", "σ_max", "bound", "mean "+first.Rewards.Of(), "regret",
		beyond+" best")
	for i := range prices {
		p := &prices[i]
		mark := ""
		if p.Recommended {
			mark = "◀ take"
		}
		bound := p.BoundText(estimateText(p.Bound))
		t.row(p.Window, mark, words.Percent(p.Skipped), words.Percent(p.Late), words.Figure(p.Released, 3),
			words.Count(p.SigmaMax),
			bound, estimateText(p.MeanLoss.Shown(first.Rewards)), estimateText(p.Regret), estimateText(p.Worse.Length(first.Rewards)))
	}
	if err := t.write(w, 100); err != nil {
		return err
	}
	what := "loss beyond"
	switch {
	case first.Regret != nil:
		what = "regret beyond"
	case first.Rewards != nil:
		what = "reward short of"
	}
	legend := fmt.Sprintf("%s, learner %s, delays %s, %s rounds, %d seeds, ± the standard error. D/T: mean delay in "+
		"rounds as feedback is released. "+
		"Bound: on regret by measured drift, 1 charged for each skipped round; it holds if outcomes are missing at random, "+
		"and is void where the class is refuted. "+
		"%s best: %s the cheapest window's, paired by seed. Take: of the windows within two standard errors of the "+
		"cheapest, the one that skips least.",
		first.Environment, first.Learner, first.Delays.Spec, words.Count(first.Rounds), seeds,
		strings.ToUpper(beyond[:1])+beyond[1:], what)
	_, err := io.WriteString(w, "\n"+wrap(legend, 100, 0)+"\n")
	return err
}

func estimateText(e *replay.Estimate) string {
	switch {
	case e == nil:
		return "–"
	case e.SE == nil:
		return words.Digits(e.Value)
	}
	return words.Digits(e.Value) + " ± " + words.Short(*e.SE)
}

// WindowColumns are the columns of [WriteWindowCSV].
var WindowColumns = []string{"window", "skipped", "late", "d_released", "sigma_max", "bound", "vacuous", "void",
	"mean_loss", "mean_loss_se", "regret", "regret_se", "worse", "worse_se", "recommended"}

// WriteWindowCSV writes the same figures as their JSON.
func WriteWindowCSV(w io.Writer, prices []replay.WindowPrice) error {
	c := csv.NewWriter(w)
	rows := [][]string{WindowColumns}
	for i := range prices {
		p := &prices[i]
		row := []string{p.Window, full(p.Skipped), full(p.Late), full(p.Released), strconv.FormatInt(p.SigmaMax, 10)}
		row = append(row, cells(p.Bound)[0], strconv.FormatBool(p.Vacuous), p.Void)
		for _, e := range []*replay.Estimate{p.MeanLoss, p.Regret, p.Worse} {
			row = append(row, cells(e)...)
		}
		rows = append(rows, append(row, strconv.FormatBool(p.Recommended)))
	}
	return c.WriteAll(rows)
}

// cells returns value and standard error, empty where not known.
func cells(e *replay.Estimate) []string {
	switch {
	case e == nil:
		return []string{"", ""}
	case e.SE == nil:
		return []string{full(e.Value), ""}
	}
	return []string{full(e.Value), full(*e.SE)}
}

func full(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// WindowChart draws what a window costs a round: the loss above that of the best policy
// where the truth is known, the whole loss where it is not, beside the bound and the
// share of rounds skipped. first is one of the runs. Rewards may be negative, and then have no
// logarithm.
func WindowChart(prices []replay.WindowPrice, first *replay.Result) *chart.Chart {
	c := &chart.Chart{Title: "What a window costs", X: "window (rounds)", Y: "a round", LogX: true,
		LogY: first.Rewards == nil || first.Rewards.Min >= 0}
	n := float64(max(first.Rounds, 1))
	var loss, bound, skipped windowLine
	name := "mean " + first.Rewards.Of()
	for i := range prices {
		p := &prices[i]
		window, _ := model.ParseWindow(p.Window)
		x := float64(window.Rounds)
		if window.Nanos > 0 {
			c.X, x = "window (minutes)", float64(window.Nanos)/60e9
		}
		if p.Regret != nil {
			name = "regret"
			loss.add(x, p.Regret, n)
		} else {
			loss.add(x, p.MeanLoss.Shown(first.Rewards), 1)
		}
		if !p.Vacuous {
			bound.add(x, p.Bound, n)
		}
		skipped.add(x, &replay.Estimate{Value: p.Skipped}, 1)
		if p.Recommended {
			c.Mark = &x
		}
	}
	c.Series = []chart.Series{loss.series(name), bound.series("bound by measured drift"),
		skipped.series("share of rounds skipped")}
	c.Series[2].Err = nil
	return c
}

// windowLine is a line over windows.
type windowLine struct{ x, y, err []float64 }

func (l *windowLine) add(x float64, e *replay.Estimate, by float64) {
	if e == nil {
		return
	}
	half := 0.0
	if e.SE != nil {
		half = 2 * *e.SE
	}
	l.x, l.y, l.err = append(l.x, x), append(l.y, e.Value/by), append(l.err, half/by)
}

func (l *windowLine) series(name string) chart.Series {
	return chart.Series{Name: name, X: l.x, Y: l.y, Err: l.err}
}
