package model

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"hindsight/internal/loop"
	"hindsight/pkg/learner"
)

// maxCandidates bounds what a feedback costs.
const maxCandidates = 16

const candidateExample = "[baseline, uniform, {always: red}]"

// candidate is one policy that is judged.
func candidate(at *loop.Candidate) parameter {
	words := loop.CandidateKinds()
	p := wordOrAction("baseline | uniform | learner | {always: ACTION} | {policies: FILE}", candidateExample,
		words[:loop.PolicyCandidate], int(loop.AlwaysCandidate),
		func(kind int, action string) { *at = loop.Candidate{Kind: loop.CandidateKind(kind), Action: action} },
		func() string { return worded(words[at.Kind], at.Action) })
	set := p.set
	p.set = func(name, arg string, has bool) error {
		if has && name == "policies" {
			*at = loop.Candidate{Kind: loop.PolicyCandidate, Action: arg}
			if err := checkText(arg); err != nil {
				return fmt.Errorf("the name of the file %w", err)
			}
			return nil
		}
		if has && slices.Contains([]string{"model", "learner", "table"}, name) {
			return fmt.Errorf("a candidate is a rule that needs no state of its own; judge a %s on the log instead: "+
				"replayer backtest --data LOG --policy %[1]s:%s", name, arg)
		}
		return set(name, arg, has)
	}
	return p
}

// candidates are the policies that are judged, in the order of the file.
func candidates(at *[]loop.Candidate) list[loop.Candidate] {
	return list[loop.Candidate]{at, "none", fmt.Sprintf("1 to %d policies", maxCandidates), candidateExample,
		maxCandidates,
		func(p *parser, n *yaml.Node, where string, into *loop.Candidate) bool {
			candidate(into).read(p, n, where)
			return true
		}, func(c *loop.Candidate) string { return candidate(c).canonical() }}
}

// promotion is the rule by which a candidate is said to be better than what is played.
func promotion(at *loop.Promotion) group {
	return group{words: []string{"none"}, set: func(word string) {
		if *at = (loop.Promotion{BetterBy: .01, Alpha: .05, Share: 1}); word != "" {
			*at = loop.Promotion{}
		}
	}, rows: func() []field {
		return []field{
			{key: "of", into: candidate(&at.Of), example: "baseline"},
			{key: "better_by", into: &at.BetterBy, what: worst, hi: 1, ends: "[)", example: "0.01"},
			alphaField(&at.Alpha, "0.05"),
			{key: "only", into: either(&at.Switch, "tell", "switch")},
			{key: "share", into: &at.Share, what: "a share", lo: .5, hi: 1, example: "0.5", omit: at.Share == 1},
		}
	}}
}

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
	if (m.HoldOut > 0 || m.Promote.Share > 0 && m.Promote.Share < 1) && m.Guard.LoseAtMost > 0 {
		add("hold_out", "it does not go with guard: {lose_at_most: …}, which plays the baseline by itself, nor does a "+
			"share in promote; keep one of them")
	}
	if m.Promote == (loop.Promotion{}) {
		return
	}
	k := m.Promote.Of.Kind
	if m.Promote.Share < 1 && (k != loop.LearnerCandidate || !m.Promote.Switch) {
		add("promote.share", "it is what the learner answers after a switch: it needs of: learner and only: switch")
	}
	if m.Promote.Switch && k != loop.BaselineCandidate && k != loop.LearnerCandidate {
		add("promote", "%s is in no mode: only baseline and learner can take over; use only: tell, or make it the "+
			"baseline", m.Promote.Of)
	}
	if !slices.Contains(m.Candidates, m.Promote.Of) {
		add("promote", "%s is not in candidates; add it there", m.Promote.Of)
	}
}

// Rejudged returns the next version of the model, which goes on with its learner and judges other candidates. Both
// texts are JSON, as the model file may have it. promote "null": the rule stays.
func (m *Model) Rejudged(candidates, promote []byte) (*Model, error) {
	c := m.Clone()
	c.Version, c.Warm = m.Version+1, Warm{Keep: true}
	c.Candidates, c.Early = nil, false // a list makes order: fifo the default
	lines := fmt.Appendf(nil, "candidates: %s\n", candidates)
	if string(promote) != "null" {
		c.Promote = loop.Promotion{}
		lines = fmt.Appendf(lines, "promote: %s\n", promote)
	}
	return ParseLogged("candidates", append(c.Canonical(), lines...))
}

// Judging returns what the model says about events, with each policy of the files that it names as candidates. files
// are those of [Model.Files].
func (m *Model) Judging(files map[string][]byte) (*loop.Rules, error) {
	r := m.Rules()
	all := r.Candidates
	r.Candidates = nil
	for _, c := range all {
		file, n := c.Action, 1
		if c.Kind == loop.PolicyCandidate {
			policies, err := m.judged(file, files)
			if err != nil {
				return nil, fmt.Errorf("model %s: candidates: %w", m.Name, err)
			}
			n = policies.Size()
			r.Policies = append(r.Policies, loop.FilePolicies{Policies: policies, From: len(r.Candidates),
				Sum: sha256.Sum256(files[file])})
		}
		if len(r.Candidates)+n > maxCandidates {
			return nil, fmt.Errorf("model %s: candidates: with %s there are more than %d; judge fewer at once",
				m.Name, c, maxCandidates)
		}
		for k := range n {
			if n > 1 {
				c.Action = file + "#" + strconv.Itoa(k+1)
			}
			r.Candidates = append(r.Candidates, c)
		}
	}
	if r.Promote.On() && !slices.Contains(r.Candidates, r.Promote.Of) {
		return nil, fmt.Errorf("model %s: promote: %s has several policies; put the one to promote into a file of "+
			"its own",
			m.Name, r.Promote.Of.Action)
	}
	return r, nil
}

// judged returns the policies of a file that are judged.
func (m *Model) judged(file string, files map[string][]byte) (namedPolicies, error) {
	policies, _, err := parsePolicyClass(file, files)
	if err != nil {
		return nil, err
	}
	if _, lists := policies.(*learner.DecisionLists); !lists {
		if m.Actions == nil {
			return nil, fmt.Errorf("the functions of %s know some actions only: list actions in the model", file)
		}
		return policies, knows(file, policies.Actions(), m.Actions)
	}
	for _, a := range policies.Actions() {
		if m.Actions != nil && !slices.Contains(m.Actions, a) {
			return nil, fmt.Errorf("%s plays %q, which is not in actions", file, a)
		}
	}
	return policies, nil
}
