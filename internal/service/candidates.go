package service

import (
	"context"
	"net/http"

	"hindsight/internal/ledger"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// CandidatesPage is the JSON of /candidates: what each policy that the model names is worth on the rounds played.
type CandidatesPage struct {
	Epoch   int64 `json:"epoch"`        // the first whose rounds count
	Rounds  int64 `json:"rounds"`       // final ones since
	Unknown int64 `json:"without_loss"` // of them
	// all losses' intervals hold at all times with probability 1 - alpha; so do all gains'
	Alpha float64 `json:"alpha"`
	// what the intervals assume of rounds without a loss; those called worst assume nothing. Empty: there are none
	Assumes    string            `json:"assumes"`
	Candidates []ledger.Estimate `json:"candidates"` // in the order of the model file
	Promote    *PromotionLine    `json:"promote"`    // the model's rule; null: it has none
	Points     []JudgedPoint     `json:"points"`     // over the rounds, since this process started
}

// PromotionLine is the rule by which a candidate is promoted.
type PromotionLine struct {
	Of       string  `json:"of"`        // the candidate
	BetterBy float64 `json:"better_by"` // by what its mean loss is to be below that of what is played
	Alpha    float64 `json:"alpha"`     // chance of a false promotion, ever
	Switches bool    `json:"switches"`  // the mode is switched when it holds
	Share    float64 `json:"share"`     // of the ids that the learner answers after that switch
	Feedback int64   `json:"feedback"`  // at which the rule held first; 0: it has not
}

// JudgedPoint is what was known after some rounds.
type JudgedPoint struct {
	Rounds int64             `json:"rounds"` // final ones
	Losses []ledger.Interval `json:"losses"` // of each candidate
}

// judgedPoints is how many points are kept: they are thinned out when there would be more.
const judgedPoints = 96

// assumesRandom is what is said where rounds are without a loss.
const assumesRandom = "rounds without an outcome are left out, which is right only if outcomes go missing " +
	"independently of their value"

// candidatesPage returns what is known of the candidates, without points.
func candidatesPage(j *loop.Judge) *CandidatesPage {
	p := &CandidatesPage{Alpha: ledger.Alpha, Candidates: []ledger.Estimate{}, Points: []JudgedPoint{}}
	l, rules := j.Ledger(), j.Rules()
	if l == nil {
		return p
	}
	p.Epoch = j.Since()
	if p.Rounds, p.Unknown = l.Rounds(); p.Unknown > 0 {
		p.Assumes = assumesRandom
	}
	p.Candidates = j.Estimates()
	if r := rules.Promote; r.On() {
		p.Promote = &PromotionLine{r.Of.String(), r.BetterBy, r.Alpha, r.Switch, r.Share, l.Fired()}
	}
	return p
}

// judged keeps what was known of candidates over time, for the page.
type judged struct {
	epoch  int64
	every  int64 // rounds from one point to the next, at least
	points []JudgedPoint
}

// note adds what a page knows, and gives it the points.
func (c *judged) note(p *CandidatesPage) {
	if p.Epoch != c.epoch {
		*c = judged{epoch: p.Epoch, every: 1}
	}
	last := int64(0)
	if n := len(c.points); n > 0 {
		last = c.points[n-1].Rounds
	}
	if len(p.Candidates) > 0 && p.Rounds >= last+c.every {
		point := JudgedPoint{Rounds: p.Rounds}
		for i := range p.Candidates {
			point.Losses = append(point.Losses, p.Candidates[i].Value)
		}
		if len(c.points) == judgedPoints {
			c.every = 2 * max(c.every, last/judgedPoints)
			kept := make([]JudgedPoint, 0, judgedPoints) // a page may alias the old ones
			for i := 1; i < judgedPoints; i += 2 {
				kept = append(kept, c.points[i])
			}
			c.points = kept
		}
		c.points = append(c.points, point)
	}
	if c.points != nil {
		p.Points = c.points[:len(c.points):len(c.points)]
	}
}

// watchRule reports once that the rule of promotion holds, and does what the model says about it.
func (j *Joiner) watchRule(ctx context.Context) error {
	judge := j.Heart().Judge()
	fired := judge.Fired()
	if fired == 0 || j.promoted == judge.Since() {
		return nil
	}
	j.promoted = judge.Since()
	rules := judge.Rules()
	r := rules.Promote
	to, switches := r.To(rules.Mode)
	j.cfg.Logger.Warn("a candidate is better than the played actions", "candidate", r.Of.String(), "better_by",
		r.BetterBy, "alpha", r.Alpha, "feedback", fired, "switches", r.Switch && switches)
	if !r.Switch || !switches {
		return nil
	}
	_, err := j.Switch(ctx, to, codec.PromotionCause(fired))
	return err
}

// showCandidates publishes what is known of the candidates.
func (j *Joiner) showCandidates() *CandidatesPage {
	judge := j.Heart().Judge()
	page := candidatesPage(judge)
	j.judged.note(page)
	rule := page.Promote
	j.m.Candidates(page.Candidates, rule != nil, rule != nil && rule.Feedback > 0)
	return page
}

// Candidates answers GET /candidates.
func (c *Control) Candidates(w http.ResponseWriter, _ *http.Request) {
	if page := c.Judged(); page != nil {
		answer(w, http.StatusOK, nil, page)
		return
	}
	answer(w, http.StatusServiceUnavailable, errElsewhere, nil)
}

// Judged returns what is known of the candidates; nil: the joiner is not at work in this process.
func (c *Control) Judged() *CandidatesPage {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joiner == nil {
		return nil
	}
	return c.judged
}
