package report

import (
	"cmp"
	"fmt"
	"math"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// value is the part on what learners lose, over time.
func (b *builder) value() section {
	s := section{ID: "value", Title: "Value over time"}
	if len(b.groups) == 0 {
		s.say("No learner was played; --learner names one. The policies that were judged are below.")
		s.add(b.policyCourse())
		return s
	}
	s.add(b.lossCourse(), b.runTable())
	if r := b.Runs[0]; r.Matched != nil {
		text := "A learner learns only from rounds in which it draws the recorded action; the others are withdrawn. "
		if r.Replay == nil {
			text += "Without propensities its mean over these rounds is a biased estimate: compare learners with care."
		} else {
			text += "Each such round is weighted by 1/propensity, so that the mean estimates what its policies would " +
				"have " + did(r.Rewards) + "."
		}
		s.say("%s", text)
	}
	s.add(b.policyCourse())
	return s
}

// runTable has a line a learner and delays.
func (b *builder) runTable() *table {
	t := &table{Caption: "Learners and delays", Columns: []column{{Name: "learner", Text: true},
		{Name: "delays", Text: true},
		{Name: "mean " + b.rewards().Of(), Means: "a round, ± the standard error over row orders"},
		{Name: "regret", Means: "loss above the best action of each round, summed; – if the best action is not known"},
		{Name: "skipped", Means: "rounds without an outcome in the window, of a log of those matched"},
		{Name: "delay to outcome", Means: "mean number of later rounds decided before the outcome came"},
		{Name: "delay to learning", Means: "the same until the learner has it: an outcome waits for all earlier " +
			"rounds"},
		{Name: "bound", Means: "the smallest bound on regret; vacuous: not below the number of rounds; void: the " +
			"function class is refuted"},
		{Name: "rounds a second", Means: "speed of this replay"}}}
	matched := b.Runs[0].Matched != nil
	if matched {
		t.Columns[3] = column{Name: "matched", Means: "share of rounds in which the learner drew the recorded action"}
	}
	for i := range b.Summary {
		x := &b.Summary[i]
		fourth := x.Regret.String()
		if matched {
			fourth = words.Percent(float64(x.Matched))
		}
		t.row(x.Learner, x.Delays, x.Loss.shown(b.rewards()).String(), fourth, words.Percent(float64(x.Skipped)),
			words.Digits(float64(x.Raw)), words.Digits(float64(x.Released)), x.bound(), words.Digits(float64(x.Speed)))
		if x.Skipped > manySkipped {
			t.Rows[len(t.Rows)-1][4].Level = warn
		}
	}
	most, least := 0, len(b.groups[0])
	for _, g := range b.groups {
		most, least = max(most, len(g)), min(least, len(g))
	}
	switch {
	case least < most: // interrupted
		t.Caption += fmt.Sprintf(": means over %d to %d row orders", least, most)
	case most > 1:
		t.Caption += fmt.Sprintf(": means over %d row orders", most)
	}
	return t
}

// bound writes the sharpest bound.
func (g *group) bound() string {
	return cmp.Or(g.state, words.Digits(float64(g.Bound)))
}

// lossCourse is the chart of losses over time.
func (b *builder) lossCourse() *pageChart {
	first := b.groups[0][0].Course
	if first == nil {
		return nil
	}
	c := &pageChart{ID: "course", Title: "Mean " + b.rewards().Of() + " over time", Kind: lines,
		Y: axis{Label: "mean " + b.rewards().Of() + " a round"}}
	c.along(first)
	better, shown := "Lower", b.rewards()
	if shown != nil {
		better = "Higher"
	}
	c.Says = better + " is better. Bands are 95 % intervals, cut at the limits of the range: over row orders if " +
		"there are several, else from the noise of the run. Dashed lines are for comparison."
	soFar, each := view{Name: "from the start"}, view{Name: "in each interval"}
	for i, g := range b.groups {
		one := series{Name: b.label(g), Off: i >= 6}
		soFar.Series = append(soFar.Series, groupBand(one, g, func(c *replay.Course) ([]ope.Figure, []ope.Figure) {
			return c.Loss.SoFar, c.Loss.SoFarSE
		}))
		one.Off = i >= 2
		each.Series = append(each.Series, groupBand(one, g, func(c *replay.Course) ([]ope.Figure, []ope.Figure) {
			return c.Loss.Mean, c.Loss.SE
		}))
	}
	for _, l := range []struct {
		name string
		of   *replay.CourseLine
		off  bool
	}{{"uniform policy", first.Uniform, false}, {"always the first action", first.First, true},
		{"best action of each round", first.Best, false}, {"what the log played", first.Logged, false}} {
		if l.of != nil {
			soFar.Series = append(soFar.Series, series{Name: l.name, Y: l.of.SoFar, Aside: true, Off: l.off})
			each.Series = append(each.Series, series{Name: l.name, Y: l.of.Mean, Aside: true, Off: l.off})
		}
	}
	for _, v := range []view{soFar, each} {
		for i := range v.Series {
			v.Series[i] = v.Series[i].shown(shown)
		}
	}
	c.Views = []view{soFar, each}
	return c
}

// shown is a line of losses as what the data has.
func (s series) shown(r *words.Rewards) series {
	each := func(from []ope.Figure) (to []ope.Figure) {
		for _, y := range from {
			to = append(to, ope.Figure(r.Shown(float64(y))))
		}
		return to
	}
	if s.Y, s.Low, s.High = each(s.Y), each(s.Low), each(s.High); r != nil {
		s.Low, s.High = s.High, s.Low
	}
	return s
}

// label names a group as shortly as the others allow.
func (b *builder) label(g []*replay.Result) string {
	learners, delays := map[string]bool{}, map[string]bool{}
	for _, g := range b.groups {
		learners[g[0].Learner], delays[g[0].Delays.Spec] = true, true
	}
	switch {
	case len(delays) == 1:
		return g[0].Learner
	case len(learners) == 1:
		return "delays " + g[0].Delays.Spec
	}
	return called(g)
}

// along sets the x axis to that of a course.
func (c *pageChart) along(course *replay.Course) {
	c.X.Label = "rounds"
	if len(course.Times) > 0 && course.Times[0] < course.Times[len(course.Times)-1] && increasing(course.Times) {
		c.X = axis{Label: "time (UTC)", Scale: timeScale}
		for _, ms := range course.Times {
			c.At = append(c.At, float64(ms)/1000)
		}
		return
	}
	for _, n := range course.Rounds {
		c.At = append(c.At, float64(n))
	}
}

func increasing(v []int64) bool {
	for i := 1; i < len(v); i++ {
		if v[i] <= v[i-1] {
			return false
		}
	}
	return true
}

// groupBand sets a line to the mean over row orders with its band; of one order with the band of its own noise.
func groupBand(s series, g []*replay.Result, of func(*replay.Course) (y, se []ope.Figure)) series {
	if g[0].Course == nil {
		return s
	}
	y, se := of(g[0].Course)
	if len(g) == 1 {
		return cut(band(s, y, se))
	}
	mean, apart := make([]ope.Figure, len(y)), make([]ope.Figure, len(y))
	values := make([]float64, len(g))
	for i := range y {
		for k, r := range g {
			values[k] = math.NaN()
			if r.Course != nil {
				if line, _ := of(r.Course); i < len(line) {
					values[k] = float64(line[i])
				}
			}
		}
		e := replay.NewEstimate(values)
		mean[i], apart[i] = ope.Figure(e.Value), ope.Figure(*e.SE)
	}
	return cut(band(s, mean, apart))
}

// cut cuts a band where no loss can be.
func cut(s series) series {
	for i := range s.Low {
		s.Low[i], s.High[i] = max(s.Low[i], 0), min(s.High[i], 1)
	}
	return s
}
