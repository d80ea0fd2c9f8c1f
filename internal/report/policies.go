package report

import (
	"fmt"
	"math"
	"strings"

	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// judge returns the estimate that a policy is ranked by: DR, which is right if either
// propensities or the reward model are.
func judge(p *ope.Evaluation) *ope.Estimate {
	if e := p.Estimates.Get("dr"); e != nil {
		return e
	}
	none := ope.Normal("dr", nan, nan)
	return &none
}

// best returns the policy that the log says most of, nil if there is none.
func (b *builder) best() *ope.Evaluation {
	var best *ope.Evaluation
	sign := 1.0
	if b.Estimators != nil && b.Estimators.Of == "loss" {
		sign = -1
	}
	for _, p := range b.Policies {
		if len(p.Estimates) > 0 && (best == nil || sign*float64(judge(p).Value) > sign*float64(judge(best).Value)) {
			best = p
		}
	}
	return best
}

// logging returns the policy that made the log, nil if it was not judged.
func (b *builder) logging() *ope.Evaluation {
	for _, p := range b.Policies {
		if p.Policy == "logging" {
			return p
		}
	}
	return nil
}

func (b *builder) saysPolicies() string {
	best, logging := b.best(), b.logging()
	if best == nil || logging == nil {
		return ""
	}
	e, l := judge(best), judge(logging)
	if best == logging {
		return fmt.Sprintf("No policy that was judged does better than the one that made the log, whose mean %s is %s.", b.Estimators.Of, plusMinus(float64(l.Value), float64(l.SE)))
	}
	text := fmt.Sprintf("By %s, %s would have had a mean %s of %s, where the policy that made the log had %s", strings.ToUpper(e.Name), best.Policy, b.Estimators.Of,
		plusMinus(float64(e.Value), float64(e.SE)), plusMinus(float64(l.Value), float64(l.SE)))
	if apart := math.Hypot(float64(e.SE), float64(l.SE)); math.Abs(float64(e.Value-l.Value)) <= 2*apart {
		return text + "; the difference is within twice its standard error, so this log does not show that it is better."
	}
	return text + "; the difference is more than twice its standard error."
}

// health is the part on propensities.
func (b *builder) health() Section {
	s := Section{ID: "propensities", Title: "Propensity health"}
	d := b.Data
	if len(b.Policies) == 0 && (d == nil || d.Propensities == nil) {
		s.say("The data does not say with which probabilities its actions were played, so there is nothing to weigh with. Learners are judged by what they meet, not by estimates.")
		return s
	}
	if d != nil && d.Propensities != nil {
		p := d.Propensities
		if p.Min == p.Max {
			s.say("The log played every action with probability %s.", replay.Digits(p.Min))
		} else {
			s.say("The log played its actions with probabilities from %s to %s, half of them at most %s. The smaller one is, the more a single round weighs; a zero would mean that nothing is known.", replay.Digits(p.Min), replay.Digits(p.Max), replay.Digits(p.Median))
		}
	}
	t := &Table{Caption: "Weights of each policy", Columns: []Column{{Name: "policy", Text: true},
		{Name: "rows that count", Means: "rows whose action the policy plays at all"},
		{Name: "ESS", Means: "effective sample size (Σw)²/Σw²: as many rows of weight 1 would say as much"},
		{Name: "ESS share", Means: "of all rows"},
		{Name: "largest weight", Means: "w = probability under the policy / probability in the log"},
		{Name: "mean weight", Means: "should be 1; if not, propensities are wrong or support is missing"},
		{Name: "overlap", Means: "mean of min(w, 1): 1 is the log itself, 0 is nothing in common"},
		{Name: "support", Means: "share of the policy's choices that the log played at all"}}}
	for _, p := range b.Policies {
		t.row(p.Policy, replay.Count(int64(p.Matched)), replay.Digits(float64(p.ESS)), replay.Percent(float64(p.ESS)/float64(max(p.Rows, 1))), replay.Digits(p.MaxWeight),
			plusMinus(p.MeanWeight, float64(p.MeanWeightSE)), replay.Digits(p.Overlap), replay.Percent(p.Support))
		if len(p.Flags) > 0 {
			t.mark(Bad)
		}
	}
	s.add(t)
	if len(b.Policies) > 0 {
		s.add(Note("Policies in red have flags at the top of this page. The effective sample size is what the estimates of the next part rest on."))
	}
	return s
}

// policies is the part on estimates.
func (b *builder) policies() Section {
	s := Section{ID: "policies", Title: "Policies and estimators"}
	if len(b.Policies) == 0 {
		s.say("No policy was judged: that needs a log with propensities (--propensity-column, Open Bandit, VW), and --policy to name more than those that are always judged.")
		return s
	}
	o := b.Estimators
	s.say("What the log says each policy would have had as its mean %s a row, by %d estimators. Where they agree, believe them; where they do not, look at the weights: IPS is honest and noisy, DM is quiet and can be wrong, DR and its kin use both.", o.Of, len(b.Policies[0].Estimates))
	t := &Table{Caption: "Mean " + o.Of + " with its standard error", Columns: []Column{{Name: "policy", Text: true}}}
	c := &Chart{ID: "estimates", Title: "Estimates with 95 % intervals", Kind: Points, Y: Axis{Label: "mean " + o.Of}}
	c.Says = "Normal intervals, value ± 1.96 standard errors; those of the bootstrap and of empirical Bernstein are in the JSON and the CSV. Press a policy to hide it."
	for _, e := range b.Policies[0].Estimates {
		t.Columns = append(t.Columns, Column{Name: e.Name})
		c.Names = append(c.Names, e.Name)
	}
	lift := b.logging() != nil
	if lift {
		t.Columns = append(t.Columns, Column{Name: "DR less logging", Means: "what the policy's DR estimate is above that of the policy that made the log"})
	}
	view := View{}
	for i, p := range b.Policies {
		row := []string{p.Policy}
		one := Series{Name: p.Policy, Off: i >= 6}
		for _, e := range p.Estimates {
			row = append(row, replay.WithError(float64(e.Value), float64(e.SE)))
			one.Y, one.Low, one.High = append(one.Y, e.Value), append(one.Low, e.Low), append(one.High, e.High)
		}
		if lift {
			row = append(row, signed(float64(judge(p).Value-judge(b.logging()).Value)))
		}
		t.row(row...)
		if len(p.Flags) > 0 {
			t.Rows[i][0].Level = Bad
		}
		view.Series = append(view.Series, one)
	}
	c.Views = []View{view}
	s.add(c, t, Note(b.settings()))
	return s
}

// settings say on what estimates depend.
func (b *builder) settings() string {
	o := b.Estimators
	text := fmt.Sprintf("%s rows with an outcome, %d actions", replay.Count(int64(o.Rows)), o.Actions)
	if o.WithoutOutcome > 0 {
		text += fmt.Sprintf(" (%s rows without one are left out)", replay.Count(int64(o.WithoutOutcome)))
	}
	return text + ". Clipped IPS, Switch-DR, DRos and the reward model: " + o.Method() + "."
}

// policyCourse is the chart of policies over time.
func (b *builder) policyCourse() *Chart {
	if len(b.Policies) == 0 || b.Policies[0].Course == nil {
		return nil
	}
	c := &Chart{ID: "policy-course", Title: "Value of policies over time", Kind: Lines, X: Axis{Label: "rows"}, Y: Axis{Label: "mean " + b.Estimators.Of}}
	c.Says = "The weighted mean (SNIPS) of each policy, with 95 % bands. A policy whose line never settles rests on a few heavy rows."
	for _, n := range b.Policies[0].Course.Rows {
		c.At = append(c.At, float64(n))
	}
	soFar, each := View{Name: "from the start"}, View{Name: "in each stretch"}
	for i, p := range b.Policies {
		x := p.Course
		soFar.Series = append(soFar.Series, band(Series{Name: p.Policy, Off: i >= 6, Aside: p.Policy == "logging"}, x.SoFar, x.SoFarSE))
		each.Series = append(each.Series, band(Series{Name: p.Policy, Off: i >= 3, Aside: p.Policy == "logging"}, x.Value, x.SE))
	}
	c.Views = []View{soFar, each}
	return c
}

// band sets a line with its 95 % band.
func band(s Series, y, se []ope.Figure) Series {
	s.Y = y
	for i := range y {
		e := se[i]
		if math.IsNaN(float64(e)) {
			e = 0
		}
		s.Low, s.High = append(s.Low, y[i]-1.96*e), append(s.High, y[i]+1.96*e)
	}
	return s
}
