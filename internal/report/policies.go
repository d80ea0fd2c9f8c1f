package report

import (
	"fmt"
	"math"
	"strings"

	"hindsight/internal/ope"
	"hindsight/internal/words"
)

// ranking returns the estimate that a policy is ranked by: DR, which is right if either
// propensities or the reward model are.
func ranking(p *ope.Evaluation) *ope.Estimate {
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
		if len(p.Estimates) > 0 && p.Reward == b.Policies[0].Reward && (best == nil ||
			sign*float64(ranking(p).Value) > sign*float64(ranking(best).Value)) {
			best = p
		}
	}
	return best
}

// specOf returns the specification of a policy, of which its name may tell the formula, too.
func specOf(p *ope.Evaluation) string { return strings.TrimSuffix(p.Policy, ", "+p.Reward) }

// logging returns the policy that made the log, by the reward of another; nil if it was not judged.
func (r *Results) logging(of *ope.Evaluation) *ope.Evaluation {
	for _, p := range r.Policies {
		if specOf(p) == "logging" && p.Reward == of.Reward {
			return p
		}
	}
	return nil
}

func (b *builder) saysPolicies() string {
	best := b.best()
	if best == nil {
		return ""
	}
	logging := b.logging(best)
	if logging == nil {
		return ""
	}
	e, l := ranking(best), ranking(logging)
	if best == logging {
		return fmt.Sprintf("No judged policy does better than the policy that made the log, whose mean %s is %s.",
			b.Estimators.Of, mean{l.Value, l.SE}.String())
	}
	text := fmt.Sprintf("By %s, %s would have had a mean %s of %s; the policy that made the log had %s",
		strings.ToUpper(e.Name), best.Policy, b.Estimators.Of,
		mean{e.Value, e.SE}.String(), mean{l.Value, l.SE}.String())
	if b.withinNoise() {
		return text + ". The difference is within twice its standard error, so this log does not show that it is " +
			"better."
	}
	return text + ". The difference is more than twice its standard error."
}

// withinNoise reports whether the best policy is another than the one that made the log, and
// its estimate no further off than twice the standard error of the difference.
func (b *builder) withinNoise() bool {
	best := b.best()
	if best == nil {
		return false
	}
	logging := b.logging(best)
	if logging == nil || best == logging {
		return false
	}
	e, l := ranking(best), ranking(logging)
	return math.Abs(float64(e.Value-l.Value)) <= 2*math.Hypot(float64(e.SE), float64(l.SE))
}

// health is the part on propensities.
func (b *builder) health() section {
	s := section{ID: "propensities", Title: "Propensity health"}
	d := b.Data
	if len(b.Policies) == 0 && d != nil && d.Truth {
		s.say("The data has the %s of every action of every round, so no weights are needed: a learner is judged by "+
			"what it played.", b.rewards().Of())
		return s
	}
	if len(b.Policies) == 0 && (d == nil || d.Propensities == nil) {
		s.say("The data has no propensities, so there are no weights. Learners are judged on the rounds in which " +
			"they drew the recorded action.")
		return s
	}
	if d != nil && d.Propensities != nil {
		p := d.Propensities
		if p.Min == p.Max {
			s.say("The log played every action with probability %s.", words.Digits(p.Min))
		} else {
			s.say("The log played its actions with probabilities from %s to %s, median %s. The smaller a propensity, "+
				"the larger the weight of a single round.", words.Digits(p.Min),
				words.Digits(p.Max), words.Digits(p.Median))
		}
	}
	t := &table{Caption: "Weights of each policy", Columns: []column{{Name: "policy", Text: true},
		{Name: "matched rows", Means: "rows whose action the policy plays with positive probability"},
		{Name: "ESS", Means: "effective sample size (Σw)²/Σw²: so many rows of equal weight are as informative"},
		{Name: "ESS share", Means: "of all rows"},
		{Name: "largest weight", Means: "w = probability under the policy / logged propensity"},
		{Name: "mean weight", Means: "should be 1; otherwise propensities are wrong or support is missing"},
		{Name: "overlap", Means: "mean of min(w, 1): 1 for the policy of the log, 0 if they share no action"},
		{Name: "support", Means: "share of the policy's choices that occur in the log"}}}
	if text := b.dropped(); text != "" {
		s.say("%s", text)
	}
	for i, p := range b.Policies {
		t.row(p.Policy, words.Count(int64(p.Matched)), words.Digits(float64(p.ESS)),
			percent(float64(b.Standings[i].ESS)), words.Digits(float64(p.MaxWeight)),
			mean{p.MeanWeight, p.MeanWeightSE}.String(), words.Digits(p.Overlap), words.Percent(p.Support))
		if len(p.Flags) > 0 {
			t.mark(bad)
		}
	}
	s.add(t)
	if len(b.Policies) > 0 {
		s.add(note("A warning at the top of this page explains each policy in red. The estimates of the next part " +
			"rest on the effective sample size."))
	}
	return s
}

// percent writes a share that may not be known.
func percent(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return words.Percent(x)
}

// dropped says how events count of which others were dropped, "" where none were.
func (b *builder) dropped() string {
	o := b.Estimators
	if o == nil || !(float64(o.Events) > float64(o.Rows)) {
		return ""
	}
	return fmt.Sprintf("The log was thinned out (pdrop): its %s with an outcome stand for %s. Estimates, weights and "+
		"overlap count each row as often as it stands for; ESS and standard errors count the rows that are in the log.",
		number(int64(o.Rows), "row"), number(int64(math.Round(float64(o.Events))), "event"))
}

// estimators says of each estimator how people write it and what it is; a number or auto behind the name is λ.
var estimators = []struct{ name, written, is string }{
	{"ips", "IPS", "mean of reward × weight: unbiased, noisy"},
	{"snips", "SNIPS", "IPS divided by the mean weight: less noisy"},
	{"dm", "DM", "a reward model alone: as biased as the model"},
	{"dr", "DR", "the reward model, corrected by weighted residuals: unbiased if propensities or model are right"},
	{"sndr", "SNDR", "DR with residuals divided by the mean weight"},
	{"cips", "clipped IPS", "IPS with weights cut at λ: biased if a weight is larger"},
	{"switchdr", "Switch-DR", "DR without the correction where a weight is above λ: there as biased as the model"},
	{"dros", "DRos", "DR with weights shrunk by λ: biased if the model is"},
}

// estimatorColumn is the head of the column of an estimator that JSON calls by name.
func estimatorColumn(name string) column {
	for _, e := range estimators {
		lambda, is := strings.CutPrefix(name, e.name)
		switch {
		case !is:
		case lambda == "":
			return column{Name: e.written, Means: e.is}
		case strings.Trim(lambda, "0123456789.") == "" || lambda == "inf":
			return column{Name: e.written + ", λ\u00a0" + lambda, Means: e.is + " (" + name + " in JSON)"}
		case lambda == "_auto":
			return column{Name: e.written + ", λ\u00a0auto", Means: e.is + " (" + name + " in JSON)"}
		}
	}
	return column{Name: name}
}

// playsTable says in words what policies play.
func (b *builder) playsTable() *table {
	t := &table{Caption: "What each policy plays", Columns: []column{{Name: "policy", Text: true},
		{Name: "plays", Text: true}}}
	for _, s := range b.Standings {
		t.row(s.Policy, s.Plays)
	}
	return t
}

// intervals are those of the estimate that policies are ranked by.
func (b *builder) intervals() *table {
	t := &table{Caption: "Gain over the log by DR, and 95 % intervals of DR", Columns: []column{{Name: "policy",
		Text: true}, {Name: "DR"}, {Name: "gain", Means: "DR minus DR of the policy that made the log"},
		{Name: "normal", Means: "value ± 1.96 standard errors"},
		{Name: "bootstrap", Means: "percentiles over resampled rows"}, {Name: "empirical Bernstein",
			Means: "valid for any number of rows, and wide; – if rows stand for different numbers of events"},
		{Name: "any time", Means: "valid at all rows at once, and on the log of a policy that learned from it"},
		{Name: "any time, worst", Means: "the same, whatever outcomes the rows without one would have had"}}}
	for i, p := range b.Policies {
		e, lift := ranking(p), "–"
		if x := float64(b.Standings[i].Lift); !math.IsNaN(x) {
			lift = signed(x)
		}
		t.row(p.Policy, mean{e.Value, ope.Figure(nan)}.String(), lift, interval(e.Low, e.High),
			interval(e.Bootstrap.Low, e.Bootstrap.High), interval(e.Bernstein.Low, e.Bernstein.High),
			interval(p.AnyTime.Low, p.AnyTime.High), interval(p.AnyTime.Worst.Low, p.AnyTime.Worst.High))
	}
	return t
}

func interval(low, high ope.Figure) string {
	if math.IsNaN(float64(low)) || math.IsNaN(float64(high)) {
		return "–"
	}
	return typographic(words.Digits(float64(low)) + " to " + words.Digits(float64(high)))
}

// policies is the part on estimates.
func (b *builder) policies() section {
	s := section{ID: "policies", Title: "Policies and estimators"}
	if len(b.Policies) == 0 && b.Data != nil && b.Data.Truth {
		s.say("No estimate is needed, because the %s of every action is known: the next part compares what learners "+
			"%s.", b.rewards().Of(), did(b.rewards()))
		return s
	}
	if len(b.Policies) == 0 {
		s.say("No policy was judged: that needs a log with propensities (its own, or those of --propensity-column); " +
			"--policy then names policies.")
		return s
	}
	o := b.Estimators
	s.say("The mean %s a row that each policy would have had, by %d estimators. Read DR first: policies are ranked by "+
		"it. If the others agree with DR, believe it; if they do not, look at the weights. IPS is unbiased and noisy; "+
		"DM can be wrong without showing it; DR, SNDR, Switch-DR and DRos combine the two.", o.Of,
		len(b.Policies[0].Estimates))
	t := &table{Caption: "Mean " + o.Of + " ± standard error. * may be biased, so has no error; ** its bias exceeds " +
		"three standard errors", Columns: []column{{Name: "policy", Text: true}}}
	c := &pageChart{ID: "estimates", Title: "Estimates with 95 % intervals", Kind: points,
		Y: axis{Label: "mean " + o.Of}}
	c.Says = "Normal intervals: value ± 1.96 standard errors. An estimate that may be biased has none. Other " +
		"intervals of DR are below; --json and --csv have those of all estimators. Press a policy to hide it."
	for _, e := range b.Policies[0].Estimates {
		column := estimatorColumn(e.Name)
		t.Columns = append(t.Columns, column)
		short, _, _ := strings.Cut(column.Name, ",")
		c.Names = append(c.Names, short)
	}
	shown := view{}
	for i, p := range b.Policies {
		row := []string{p.Policy}
		one := series{Name: p.Policy, Off: i >= 6, Aside: specOf(p) == "logging"} // as in the course
		for _, e := range p.Estimates {
			row = append(row, mean{e.Value, e.SE}.String()+e.Mark())
			one.Y, one.Low, one.High = append(one.Y, e.Value), append(one.Low, e.Low), append(one.High, e.High)
		}
		t.row(row...)
		if len(p.Flags) > 0 {
			t.Rows[i][0].Level = bad
		}
		shown.Series = append(shown.Series, one)
	}
	c.Views = []view{shown}
	s.add(b.playsTable(), c, t, judgedOutcomes(b.Policies), b.intervals(), note(saysInterval(o.Interval)),
		note(b.settings()))
	if b.logging(b.Policies[0]) == nil {
		s.add(note("To see what policies gain over the one that made the log, judge it, too: --policy logging."))
	}
	return s
}

// settings say on what estimates depend.
func (b *builder) settings() string {
	o := b.Estimators
	text := fmt.Sprintf("%s with an outcome, %s", number(int64(o.Rows), "row"), number(int64(o.Actions), "action"))
	if o.WithoutOutcome > 0 {
		text += fmt.Sprintf(" (%s rows without one are left out)", words.Count(int64(o.WithoutOutcome)))
	}
	return text + ". Clipped IPS, Switch-DR, DRos and the reward model: " + o.Method() +
		". In --json and --csv, bias is the difference of a possibly biased estimate from DR (of clipped IPS from IPS)."
}

// policyCourse is the chart of policies over time.
func (b *builder) policyCourse() *pageChart {
	if len(b.Policies) == 0 || b.Policies[0].Course == nil {
		return nil
	}
	c := &pageChart{ID: "policy-course", Title: "Value of policies over time", Kind: lines, X: axis{Label: "rows"},
		Y: axis{Label: "mean " + b.Estimators.Of}}
	c.Says = "The weighted mean (SNIPS) of each policy, with 95 % bands. If a line never settles, its estimate rests " +
		"on a few rows with large weights."
	for _, n := range b.Policies[0].Course.Rows {
		c.At = append(c.At, float64(n))
	}
	soFar, each := view{Name: "from the start"}, view{Name: "in each interval"}
	for i, p := range b.Policies {
		x := p.Course
		soFar.Series = append(soFar.Series, band(series{Name: p.Policy, Off: i >= 6, Aside: specOf(p) == "logging"},
			x.SoFar, x.SoFarSE))
		each.Series = append(each.Series, band(series{Name: p.Policy, Off: i >= 3, Aside: specOf(p) == "logging"},
			x.Value, x.SE))
	}
	c.Views = []view{soFar, each}
	return c
}

// band sets a line with its 95 % band.
func band(s series, y, se []ope.Figure) series {
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
