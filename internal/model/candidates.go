package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
)

// maxCandidates bounds what a feedback costs.
const maxCandidates = 16

const candidateExample = "candidates: [baseline, uniform, {always: red}]"

// candidate is one policy that is judged.
type candidate struct {
	at    *loop.Candidate
	where string
}

func (c candidate) read(p *parser, n *yaml.Node) {
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 &&
		slices.Contains([]string{"model", "learner", "table"}, n.Content[0].Value) {
		p.errorf(n, "%s: a candidate is a rule that needs no state of its own; judge a %s on the log instead: "+
			"replayer backtest --data LOG --policy %[2]s:%s", c.where, n.Content[0].Value, n.Content[1].Value)
		return
	}
	p.wordOrAction(n, c.where, "baseline | uniform | learner | {always: ACTION}", candidateExample,
		loop.CandidateKinds(),
		int(loop.AlwaysCandidate), func(kind int, action string) {
			*c.at = loop.Candidate{Kind: loop.CandidateKind(kind), Action: action}
		})
}

func (c candidate) canonical() string {
	if c.at.Kind == loop.AlwaysCandidate {
		return "{always: " + strconv.Quote(c.at.Action) + "}"
	}
	return c.at.String()
}

// candidates are the policies that are judged, in the order of the file.
type candidates struct{ at *[]loop.Candidate }

func (c candidates) read(p *parser, n *yaml.Node) {
	if *c.at = nil; isWord(n, "none") {
		return
	}
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxCandidates {
		p.expected(n, "candidates", fmt.Sprintf("none or a list of 1 to %d policies", maxCandidates), candidateExample)
		return
	}
	for _, item := range n.Content {
		var one loop.Candidate
		candidate{&one, "candidates"}.read(p, item)
		if slices.Contains(*c.at, one) {
			p.errorf(item, "candidates: %s is there twice", one)
		}
		*c.at = append(*c.at, one)
	}
}

func (c candidates) canonical() string {
	var s strings.Builder
	for i := range *c.at {
		s.WriteString("\n  - " + candidate{at: &(*c.at)[i]}.canonical())
	}
	return s.String()
}

// promotion is the rule by which a candidate is said to be better than what is played.
type promotion struct{ at *loop.Promotion }

// defaultPromotion is what a rule has that the file does not say.
var defaultPromotion = loop.Promotion{BetterBy: 0.01, Alpha: 0.05, Share: 1}

func (r promotion) fields() []field {
	return []field{
		{key: "of", into: candidate{&r.at.Of, "promote.of"}},
		{key: "better_by", into: &r.at.BetterBy, example: "better_by: 0.01"},
		{key: "alpha", into: &r.at.Alpha, example: "alpha: 0.05"},
		{key: "only", into: either(&r.at.Switch, "tell", "switch")},
		{key: "share", into: &r.at.Share, example: "share: 0.5", omit: r.at.Share == 1},
	}
}

func (r promotion) read(p *parser, n *yaml.Node) {
	const example = "promote: {of: baseline, better_by: 0.01, alpha: 0.05, only: tell}"
	if isWord(n, "none") {
		return
	}
	*r.at = defaultPromotion
	p.rule(n, "promote", "none, or of, better_by, alpha, only and share", example, r)
}

func (r promotion) canonical() string { return braces(r.fields()) }

func (r promotion) problem() string {
	switch {
	case !(r.at.Share >= 0.5 && r.at.Share <= 1):
		return fmt.Sprintf("share: expected a share in [0.5, 1], found %v", r.at.Share)
	case r.at.Share < 1 && (r.at.Of.Kind != loop.LearnerCandidate || !r.at.Switch):
		return "share is what the learner answers after a switch: it needs of: learner and only: switch"
	}
	return levelProblem("better_by", r.at.BetterBy, r.at.Alpha)
}

// mayHoldOut reports whether a share of the rounds may be held out.
func mayHoldOut(share float64) bool { return share >= 0 && share <= 0.5 }

// candidateProblems are those of the candidates and of the rule of promotion.
func (m *Model) candidateProblems(add adder) {
	for _, c := range m.Candidates {
		if c.Kind == loop.AlwaysCandidate && m.Actions != nil && !slices.Contains(m.Actions, c.Action) {
			add("candidates", "always plays %q, which is not in actions; name one of them", c.Action)
		}
	}
	if len(m.Candidates) > 0 && (m.Arrival || m.Early) {
		add("candidates", "they are judged in the order of decisions, since outcomes that come early may be of "+
			"certain losses; use order: fifo")
	}
	if !mayHoldOut(m.HoldOut) {
		add("hold_out", "expected a share in [0, 0.5], found %v", m.HoldOut)
	}
	if (m.HoldOut > 0 || m.Promote.Share > 0 && m.Promote.Share < 1) && m.Guard.LoseAtMost > 0 {
		add("hold_out", "it does not go with guard: {lose_at_most: …}, which plays the baseline by itself, nor does a "+
			"share in promote; keep one of them")
	}
	if m.Promote == (loop.Promotion{}) {
		return
	}
	if bad := (promotion{&m.Promote}).problem(); bad != "" {
		add("promote", "%s", bad)
	}
	if k := m.Promote.Of.Kind; m.Promote.Switch && k != loop.BaselineCandidate && k != loop.LearnerCandidate {
		add("promote", "%s is in no mode: only baseline and learner can take over; use only: tell, or make it the "+
			"baseline", m.Promote.Of)
	}
	if !slices.Contains(m.Candidates, m.Promote.Of) {
		add("promote", "%s is not in candidates; add it there", m.Promote.Of)
	}
}
