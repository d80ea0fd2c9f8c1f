package watch

import (
	"strconv"

	"hindsight/internal/ledger"
)

// mostCandidates is how many a model has at most.
const mostCandidates = 16

// candidateMetrics are what is known of each candidate, by its place in the model file, and of the rule.
type candidateMetrics struct {
	ends     [6][]*gauge
	promoted *gauge
}

func newCandidates(o *owner) (c candidateMetrics) {
	by := label{name: "candidate"}
	for i := range mostCandidates {
		by.values = append(by.values, strconv.Itoa(i+1))
	}
	for i, m := range [...][2]string{
		{"hindsight_candidate_loss", "Estimated mean loss of each candidate, by its place in the model file, on " +
			"final rounds."},
		{"hindsight_candidate_loss_low", "Lower end of that: the intervals of all candidates hold at all times with " +
			"probability 95 %."},
		{"hindsight_candidate_loss_high", "Upper end of that."},
		{"hindsight_candidate_gain", "Estimate of what is played less the candidate's mean loss: positive where the " +
			"candidate is better."},
		{"hindsight_candidate_gain_low", "Lower end of that, as of the losses."},
		{"hindsight_candidate_gain_high", "Upper end of that."},
	} {
		c.ends[i] = o.laterBy(m[0], m[1], "", by)
	}
	c.promoted = o.later("hindsight_promotion", "1 if the rule promote has held, else 0; not there without a rule.", "")
	return c
}

// Candidates shows what is known of candidates, and whether a rule is there and has held.
func (j *JoinerMetrics) Candidates(all []ledger.Estimate, rule, held bool) {
	c, gone := &j.candidates, []*gauge(nil)
	hide := func(g *gauge) {
		if g.prom != nil {
			gone = append(gone, g)
		}
	}
	for i := range mostCandidates {
		for k, g := range c.ends {
			if i >= len(all) || all[i].Rounds == 0 {
				hide(g[i])
				continue
			}
			v, d := all[i].Value, all[i].Gain
			g[i].Set([...]float64{v.Mean, v.Low, v.High, d.Mean, d.Low, d.High}[k])
		}
	}
	if rule {
		c.promoted.Set(truth(held))
	} else {
		hide(c.promoted)
	}
	if len(gone) > 0 {
		j.drop(gone...)
	}
}
