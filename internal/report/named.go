package report

import (
	"slices"

	"hindsight/internal/ledger"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// named has a row a learner and delays, with the means of the outcomes that the model names and what was spent of its
// budgets; nil of models with one loss.
func named(groups [][]*replay.Result) *table {
	t := &table{Caption: "Named outcomes and budgets: means over rounds", Columns: []column{{Name: "learner",
		Text: true}, {Name: "delays", Text: true}}}
	at := func(name, means string) int {
		if i := slices.IndexFunc(t.Columns[2:], func(c column) bool { return c.Name == name }); i >= 0 {
			return i + 2
		}
		t.Columns = append(t.Columns, column{Name: name, Means: means})
		return len(t.Columns) - 1
	}
	for _, g := range groups {
		row := map[int]string{}
		over := func(of func(r *replay.Result) ope.Figure) mean {
			values := make([]float64, len(g))
			for i, r := range g {
				values[i] = float64(of(r))
			}
			return meanOf(values)
		}
		for k := range g[0].Outcomes {
			row[at(g[0].Outcomes[k].Name, "")] = over(func(r *replay.Result) ope.Figure {
				return r.Outcomes[k].Mean
			}).text()
		}
		for k := range g[0].Budgets {
			b := &g[0].Budgets[k]
			row[at(b.Name+" / budget", "mean cost / budget: at most 1; of a minimum, at least 1")] = over(
				func(r *replay.Result) ope.Figure { return r.Budgets[k].Share }).text()
			row[at("most over", "largest overspending at any time, in budgets of one round")] = words.Digits(
				float64(over(
					func(r *replay.Result) ope.Figure { return r.Budgets[k].Worst }).Value))
			row[at("λ "+b.Name, "mean price of one budget, as a loss")] = words.Digits(float64(over(
				func(r *replay.Result) ope.Figure { return r.Budgets[k].Price }).Value))
		}
		if len(row) == 0 {
			continue
		}
		cells := make([]string, len(t.Columns))
		cells[0], cells[1] = g[0].Learner, g[0].Delays.Spec
		for i, text := range row {
			cells[i] = text
		}
		t.row(cells...)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	for i := range t.Rows { // of other models
		for len(t.Rows[i]) < len(t.Columns) {
			t.Rows[i] = append(t.Rows[i], tableCell{})
		}
	}
	return t
}

// judgedOutcomes has a row a policy, with what the log says of each outcome and budget: SNIPS with its 95 % interval;
// nil of one loss.
func judgedOutcomes(policies []*ope.Evaluation) *table {
	if len(policies) == 0 || len(policies[0].Outcomes) == 0 {
		return nil
	}
	t := headed(2, "policy", "")
	t.Caption = "Named outcomes and budgets of policies: SNIPS, and its 95 % interval"
	for _, o := range policies[0].Outcomes {
		t.Columns = append(t.Columns, column{Name: o.Name})
	}
	for _, p := range policies {
		row := []string{clip(p.Policy), ""}
		for _, o := range p.Outcomes {
			e := o.Estimates.Get("snips")
			row = append(row, words.Digits(float64(e.Value))+" ["+interval(e.Low, e.High)+"]")
		}
		t.row(row...)
	}
	return t
}

// candidates has a row for each candidate of a learner and delays, in the first of its runs.
func candidates(groups [][]*replay.Result) *table {
	t := &table{Caption: "Candidates, judged on the played rounds: 95 % intervals that hold at all rounds at once. " +
		"Gain is the mean loss of the played actions minus that of the candidate",
		Columns: []column{{Name: "learner", Text: true}, {Name: "delays", Text: true}, {Name: "candidate", Text: true},
			{Name: "mean loss"}, {Name: "gain"}, {Name: "with missing outcomes at their worst"}, {Name: ""}}}
	for _, g := range groups {
		for i := range g[0].Candidates {
			e, says := &g[0].Candidates[i], ""
			if e.Beaten {
				says = "beaten"
			}
			t.row(g[0].Learner, g[0].Delays.Spec, e.Policy, judgedMean(e.Value), judgedMean(e.Gain),
				judgedMean(e.Worst), says)
		}
	}
	return t
}

// candidateCourse is the loss of each candidate over time, in the first run that has some.
func (b *builder) candidateCourse() *pageChart {
	c := &pageChart{ID: "candidates", Title: "Candidates over time", Kind: lines, Y: axis{Label: "mean loss a round"},
		Says: "What was known of each candidate by then. Bands are 95 % intervals that hold at all rounds at once."}
	for _, g := range b.groups {
		if course := g[0].Course; course != nil && course.Candidates != nil {
			c.Says += " Of " + called(g) + "."
			c.along(course)
			one := view{}
			for i, x := range course.Candidates {
				one.Series = append(one.Series, series{Name: x.Policy, Y: x.Mean, Low: x.Low, High: x.High,
					Off: i >= 6})
			}
			c.Views = []view{one}
			return c
		}
	}
	return nil
}

func judgedMean(i ledger.Interval) string {
	return words.Figure(i.Mean, 3) + " (" + words.Figure(i.Low, 3) + " to " + words.Figure(i.High, 3) + ")"
}

// outcomes is the part on the outcomes and budgets that models name.
func (b *builder) outcomes() section {
	s := section{ID: "outcomes", Title: "Outcomes, budgets and prices"}
	t := named(b.groups)
	if t == nil {
		return s
	}
	s.add(b.curve(), b.spent(), b.prices(), t, b.ends())
	return s
}

// ends says what became of named outcomes.
func (b *builder) ends() *table {
	t := &table{Caption: "Fates of named outcomes", Columns: []column{{Name: "learner, delays", Text: true},
		{Name: "outcome", Text: true}, {Name: "observed"}, {Name: "imputed"}, {Name: "skipped"}, {Name: "withdrawn"},
		{Name: "late"}}}
	for _, g := range b.groups {
		for i := range g[0].Outcomes {
			o := &g[0].Outcomes[i]
			t.row(called(g), o.Name, words.Count(o.Observed), words.Count(o.Imputed), words.Count(o.Skipped),
				words.Count(o.Withdrawn), words.Count(o.Late))
		}
	}
	return t
}

// curve is what is earned by what a budget allows: a line for each formula and kind of delays.
func (b *builder) curve() *pageChart {
	c := &pageChart{ID: "curve", Title: "What a budget buys", Kind: lines, X: axis{Scale: logScale},
		Says: "By the size of the budget; the next chart shows what was spent."}
	lines, names := map[string]map[float64]mean{}, []string(nil)
	for i, g := range b.groups {
		if len(g[0].Budgets) == 0 {
			continue
		}
		name, limit := g[0].Formula+", delays "+g[0].Delays.Spec, g[0].Budgets[0].Limit
		if lines[name] == nil {
			lines[name], names = map[float64]mean{}, append(names, name)
		}
		c.X.Label, c.Y.Label = g[0].Budgets[0].Name+" allowed a round", "mean "+g[0].Rewards.Of()
		lines[name][limit] = b.Summary[i].Loss.shown(g[0].Rewards)
		c.At = append(c.At, limit)
	}
	slices.Sort(c.At)
	if c.At = slices.Compact(c.At); len(c.At) < 2 {
		return nil
	}
	one := view{}
	for _, name := range names {
		var y, errors []ope.Figure
		for _, x := range c.At {
			m, ok := lines[name][x]
			if !ok {
				m = mean{ope.Figure(nan), ope.Figure(nan)}
			}
			y, errors = append(y, m.Value), append(errors, m.SE)
		}
		one.Series = append(one.Series, band(series{Name: name}, y, errors))
	}
	c.Views = []view{one}
	return c
}

// spent is what was spent over time, in budgets.
func (b *builder) spent() *pageChart {
	return b.overTime(&pageChart{ID: "spent", Title: "Spent so far, in budgets", Y: axis{Label: "mean cost / budget",
		Zero: true},
		Says: "From the first round on. A cost stays at or below 1; an outcome with a minimum stays at or above 1."},
		func(c *replay.Course, budget *replay.Spend) []ope.Figure {
			var y []ope.Figure
			for _, v := range c.Spent[budget.Name].SoFar {
				y = append(y, v/ope.Figure(budget.Limit))
			}
			return y
		})
}

// prices is λ over time.
func (b *builder) prices() *pageChart {
	return b.overTime(&pageChart{ID: "prices", Title: "Prices", Y: axis{Label: "λ", Zero: true},
		Says: "What the learner charges for one budget, as a loss: the mean of each interval."},
		func(c *replay.Course, budget *replay.Spend) []ope.Figure { return c.Prices[budget.Name].Mean })
}

func (b *builder) overTime(c *pageChart, y func(c *replay.Course, budget *replay.Spend) []ope.Figure) *pageChart {
	c.Kind = lines
	one := view{}
	for _, g := range b.groups {
		r := g[0]
		for i := range r.Budgets {
			if r.Course == nil || r.Course.Spent[r.Budgets[i].Name] == nil {
				continue
			}
			if len(one.Series) == 0 {
				c.along(r.Course)
			}
			one.Series = append(one.Series, series{Name: r.Budgets[i].Name + ", " + b.label(g), Y: y(r.Course,
				&r.Budgets[i]), Off: len(one.Series) >= 6})
		}
	}
	c.Views = []view{one}
	return c
}
