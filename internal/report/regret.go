package report

import (
	"fmt"
	"strings"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/words"
)

// regret is the part on what was lost against no delay and against what is guaranteed.
func (b *builder) regret() section {
	s := section{ID: "regret", Title: "Regret, and what is guaranteed"}
	k := b.delayed()
	if k < 0 {
		s.say("No learner was played, so there is no regret; --learner names one.")
		return s
	}
	g := b.groups[k]
	rewards := b.rewards()
	if g[0].Regret == nil {
		s.say("The regret is not known, because the log does not say what the best action of each round would have "+
			"%s. The bounds hold all the same, under the assumptions listed below.", did(rewards))
	} else {
		s.say("Regret is the loss above that of the best action of each round, summed. The regret of a learner that " +
			"learns grows ever more slowly. A bound is informative if it is below the number of rounds.")
	}
	if rewards != nil {
		s.say("Here %s.", rewards.Regret())
	}
	if text := b.saysDelay(k); text != "" {
		s.say("%s", called(g)+": "+b.Summary[k].Loss.shown(b.rewards()).String()+" a round. "+text)
	}
	s.add(b.regretCourse(g))
	t := &table{Caption: "Bounds on regret", Columns: []column{{Name: "learner, delays", Text: true}, {Name: "regret"},
		{Name: "bound", Text: true}, {Name: "value"}, {Name: "rounds"}, {Name: "holds", Text: true}}}
	for _, g := range b.groups {
		r := g[0]
		regret := "–"
		if r.Regret != nil {
			regret = words.Digits(*r.Regret)
		}
		bounds := r.Certificate.Bounds()
		if len(bounds) == 0 {
			t.row(called(g), regret, "none", "–", words.Count(r.Rounds), "this learner has no certificate")
		}
		name := called(g)
		for _, x := range bounds {
			holds := x.Holds
			if x.Void != "" {
				holds = "no longer: " + x.Void
			}
			t.row(name, regret, x.Name(), "∞", words.Count(r.Certificate.T), holds)
			value := &t.Rows[len(t.Rows)-1][3]
			if x.Value != nil {
				value.Text = words.Digits(*x.Value)
			}
			switch {
			case x.Void != "":
				value.Text, value.Level = "void", bad
			case x.Vacuous:
				value.Text, value.Level = value.Text+" (vacuous)", warn
			}
			name, regret = "", ""
		}
	}
	s.add(t, b.assumptions(g[0]))
	for _, n := range g[0].Certificate.Notes {
		s.add(note(strings.ToUpper(n[:1]) + n[1:] + "."))
	}
	return s
}

// assumptions is what the bounds of a run stand on.
func (b *builder) assumptions(r *replay.Result) *table {
	t := &table{Caption: "Assumptions of the bounds (" + r.Learner + ", delays " + r.Delays.Spec + ")",
		Columns: []column{{Name: "assumption", Text: true}, {Name: "state", Text: true}, {Name: "why", Text: true}}}
	for _, a := range r.Certificate.Assumptions {
		t.row(a.Name, a.State, a.Detail)
		switch a.State {
		case "refuted", "void":
			t.mark(bad)
		case "enforced", "holds":
			t.Rows[len(t.Rows)-1][1].Level = good
		}
	}
	return t
}

// regretCourse is the chart of regret beside that without delay and the bounds.
func (b *builder) regretCourse(g []*replay.Result) *pageChart {
	r := g[0]
	if r.Course == nil {
		return nil
	}
	c := &pageChart{ID: "regret", Title: "Regret so far", Kind: lines,
		Y: axis{Label: regretLabel(b.rewards()), Zero: true}}
	c.along(r.Course)
	c.Says = fmt.Sprintf("Of %s in the row order of the file. A bound charges 1 for each round that is not yet "+
		"released, so it drops at the end. Bounds far above the regret are hidden: press one to show it.", r.Learner)
	if r.Regret == nil {
		c.Title = "Bounds on the regret so far"
	}
	one := view{Name: "regret"}
	for _, g := range b.groups {
		if g[0].Course != nil && g[0].Course.Regret != nil {
			one.Series = append(one.Series, series{Name: b.label(g), Y: g[0].Course.Regret, Off: len(one.Series) >= 6})
		}
	}
	top := 0.0
	for _, s := range one.Series {
		top = max(top, float64(s.Y[len(s.Y)-1]))
	}
	for _, x := range r.Certificate.Bounds() {
		if y := r.Course.Bounds[x.Kind]; y != nil {
			far := top > 0 && !(float64(y[len(y)-1]) < 20*top)
			one.Series = append(one.Series, series{Name: "bound: " + x.Name(), Y: y, Aside: true, Off: far})
		}
	}
	if r.Course.Regret != nil {
		all := series{Name: "number of rounds", Aside: true, Off: true}
		for _, n := range r.Course.Rounds {
			all.Y = append(all.Y, ope.Figure(n))
		}
		one.Series = append(one.Series, all)
	}
	c.Views = []view{one}
	return c
}

// sweep is the part on value over delay.
func (b *builder) sweep() section {
	s := section{ID: "sweep", Title: "Value over delay"}
	if len(b.Sweep) == 0 {
		if len(b.groups) == 0 {
			s.say("No learner was played; --learner names one.")
		} else {
			s.say("No sweep was made: replayer backtest makes one with the delays of --sweep, unless that is none.")
		}
		return s
	}
	first, shown, verb := b.Sweep[0], b.rewards(), "lose"
	if shown != nil {
		verb = "earn"
	}
	s.say("What each learner would %s if every outcome came after the same number of rounds: %s rounds, the same %d "+
		"row orders for each delay, and a window long enough that no round is skipped.", verb,
		words.Count(first.Rounds), first.Orders)
	c := &pageChart{ID: "sweep", Title: "Mean " + shown.Of() + " by delay", Kind: lines,
		X: axis{Label: "delay (later rounds)", Scale: logScale, Zero: true},
		Y: axis{Label: "mean " + shown.Of() + " a round"}}
	c.Says = "A flat line shows a learner that delays do not hurt. Bands are 95 % intervals over row orders."
	t := &table{Caption: "Cost of delay", Columns: []column{{Name: "learner", Text: true},
		{Name: "delay", Means: "later rounds"}, {Name: "mean " + shown.Of()},
		{Name: shown.Beyond() + " the least delay", Means: "difference from the first row, paired by row order"},
		{Name: "regret"}}}
	one := view{Name: "mean " + shown.Of()}
	var learners []string
	lines := map[string]*[2][]ope.Figure{} // means and their errors
	for i := range b.Sweep {
		p := &b.Sweep[i]
		t.row(p.Learner, words.Count(p.Delay), meanOfEstimate(p.MeanLoss).shown(shown).String(),
			worse(meanOfEstimate(p.Worse).length(shown)), meanOfEstimate(p.Regret).String())
		l := lines[p.Learner]
		if l == nil {
			l = new([2][]ope.Figure)
			lines[p.Learner] = l
			learners = append(learners, p.Learner)
		}
		if len(learners) == 1 {
			c.At = append(c.At, max(float64(p.Delay), .5)) // a logarithm has no 0
		}
		m := meanOfEstimate(p.MeanLoss).shown(shown)
		l[0], l[1] = append(l[0], m.Value), append(l[1], m.SE)
	}
	for _, name := range learners {
		one.Series = append(one.Series, band(series{Name: name}, lines[name][0], lines[name][1]))
	}
	c.Views = []view{one}
	s.add(c, t)
	return s
}

// worse writes what a delay costs: no gain that is within noise.
func worse(m mean) string {
	if m.Value < 0 && m.chance() {
		return "within noise, ±\u00a0" + words.Short(float64(m.SE))
	}
	return m.String()
}

// regretLabel is that of the axis of regret.
func regretLabel(r *words.Rewards) string {
	if r == nil {
		return "loss above the best"
	}
	return "missed reward / range"
}
