package report

import (
	"fmt"
	"math"
	"slices"

	"hindsight/internal/judge"
	"hindsight/internal/ope"
	"hindsight/internal/words"
)

// briefWeights and briefEstimates are what a screen has room for: the sample size that weights leave and their mean,
// and two estimators.
var (
	briefWeights   = []string{"ESS", "mean w"}
	briefEstimates = []string{"snips", "dr", chosenColumn}
)

// Judged makes the page of what a log says of policies for a terminal: the weights, the estimates, and the flags in
// words. A screen gets what fits it.
func Judged(e *judge.Evaluations, screen bool) *Page {
	if len(e.Policies) == 0 {
		return &Page{}
	}
	weights := headed(2, "policy", "", "matched", "ESS", "max w", "mean w", "overlap")
	estimates, biased := headed(2, "policy", ""), false
	for _, v := range e.Policies[0].Estimates {
		estimates.Columns = append(estimates.Columns, column{Name: v.Name})
	}
	estimates.Columns = append(estimates.Columns, column{Name: chosenColumn})
	for _, p := range e.Policies {
		mean := words.Figure(float64(p.MeanWeight), 3)
		if p.MeanWeightSE > words.RoundedAway {
			mean += "±" + words.Figure(float64(p.MeanWeightSE), 2)
		}
		weights.row(clip(p.Policy), "", words.Count(int64(p.Matched)), words.Figure(float64(p.ESS), 3),
			words.Figure(float64(p.MaxWeight), 3), mean, words.Figure(p.Overlap, 2))
		row := []string{clip(p.Policy), ""}
		for _, v := range p.Estimates {
			row = append(row, words.WithError(v.Value, v.SE)+v.Mark())
			biased = biased || v.Bias != nil
		}
		estimates.row(append(row, chosenInterval(p, e.Settings.Interval))...)
	}
	var page *Page
	if screen {
		page = brief(weights.beside(briefWeights, estimates, briefEstimates))
	} else {
		page = brief(weights, estimates)
	}
	page.Sections[0].add(judgedOutcomes(e.Policies))
	page.Sections[0].add(note(judgedLegend(e, screen, biased && !screen)), note(saysInterval(e.Settings.Interval)))
	shared := ope.SharedFlags(e.Policies)
	for _, f := range shared {
		page.flag(bad, "all policies: %s.", f)
	}
	for _, p := range e.Policies {
		for _, f := range p.Flags {
			if !slices.Contains(shared, f) {
				page.flag(bad, "%s: %s.", p.Policy, f)
			}
		}
	}
	return page
}

// chosenColumn is the head of the intervals that are right for a log.
const chosenColumn = "95 %"

// chosenInterval writes that of a policy.
func chosenInterval(p *ope.Evaluation, c judge.Choice) string {
	low, high := p.AnyTime.Low, p.AnyTime.High
	switch c.Right {
	case judge.NormalInterval:
		low, high = ranking(p).Low, ranking(p).High
	case judge.WorstInterval:
		low, high = p.AnyTime.Worst.Low, p.AnyTime.Worst.High
	}
	if math.IsNaN(float64(low)) || math.IsNaN(float64(high)) {
		return "–"
	}
	return words.Figure(float64(low), 3) + " to " + words.Figure(float64(high), 3)
}

// saysInterval says which interval is right, and why.
func saysInterval(c judge.Choice) string {
	name := map[string]string{judge.NormalInterval: "normal", judge.AnyTimeInterval: "valid at any time",
		judge.WorstInterval: "valid at any time, missing outcomes at their worst"}[c.Right]
	return fmt.Sprintf("The 95 %% interval that is right here: %s, since %s.", name, c.Why)
}

// beside returns the columns of these names, and those of a table of the same rows, behind the first two.
func (t *table) beside(names []string, other *table, others []string) *table {
	out := &table{Columns: t.Columns[:2:2], Rows: make([][]tableCell, len(t.Rows))}
	for i := range t.Rows {
		out.Rows[i] = t.Rows[i][:2:2]
	}
	for _, from := range []struct {
		*table
		names []string
	}{{t, names}, {other, others}} {
		for k, c := range from.Columns {
			if slices.Contains(from.names, c.Name) {
				out.Columns = append(out.Columns, c)
				for i := range out.Rows {
					out.Rows[i] = append(out.Rows[i], from.Rows[i][k])
				}
			}
		}
	}
	return out
}

// judgedLegend says what the columns of such tables mean.
func judgedLegend(e *judge.Evaluations, screen, biased bool) string {
	s := &e.Settings
	rows := words.Count(int64(s.Rows)) + " rows"
	if events := float64(s.Events); events > float64(s.Rows) {
		rows += fmt.Sprintf(" that stand for %s events (pdrop)", words.Count(int64(math.Round(events))))
	}
	of := s.Of
	if s.Formula != "" && e.Policies[0].Reward == "" {
		of += " (" + s.Formula + ")"
	}
	text := fmt.Sprintf("Mean %s a row of %s, %d actions, smallest propensity %s; ± the standard error, %s", of, rows,
		s.Actions, words.Figure(s.MinPropensity, 3), s.Method())
	if screen {
		text += ". The mean weight should be 1. Estimates rest on ESS, the effective sample size. --json and " +
			"--report have more estimators and 95 % intervals."
	} else {
		text += ". Read dr first. Weights w = π/p: their mean should be 1; the estimates rest on the effective " +
			"sample size (ESS). 95 % intervals (normal, bootstrap, empirical Bernstein) are in --json."
	}
	if biased {
		text += " * may be biased, so it has no standard error; ** has a bias of more than three standard errors, " +
			"which is in --json."
	}
	return text
}

// clip shortens the name of a policy, which the flags give in full.
func clip(name string) string {
	const most = 40
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
