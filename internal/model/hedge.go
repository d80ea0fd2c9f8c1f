package model

import (
	"fmt"
	"slices"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// PaperEta is the paper's learning rate of Hedge-Vovk, which explore: {paper: T} stands for (docs/algorithms.md, 2.1).
const PaperEta = oracle.PaperEta

type hedge struct{ fixed }

// defaultEta is the learning rate of a file that gives none.
func (m *Model) defaultEta() float64 {
	switch {
	case m.Explore.Name == Paper:
		return PaperEta
	case m.Oracle.Vovk:
		return oracle.VovkEta
	}
	return 0.5
}

func (hedge) check(m *Model, add adder) {
	o := m.Oracle
	if o.Class == "" {
		add("oracle", "hedge needs a class file; for example: oracle: {kind: hedge, class: shop.class.jsonl}")
	} else if err := checkText(o.Class); err != nil {
		add("oracle.class", "the file name %v", err)
	}
	if o.Eta > 0.5 && !o.Unproved {
		add("oracle.eta", "above 1/2 no regret bound is proved, found %v; use eta: 0.5, or add unproved: true", o.Eta)
	}
	if o.Outstanding && (m.Learner.Kind != DAFA || o.Vovk || o.Eta != oracle.DefaultEta) {
		add("oracle.eta", "outstanding is for learner: dafa with substitution: mean; for example: oracle: {kind: "+
			"hedge, class: FILE, eta: outstanding}")
	}
	if o.Vovk && (!o.Unproved || o.Eta > oracle.VovkEta) {
		add("oracle.substitution", "vovk: it needs unproved: true, because its stability is not proved, and an eta "+
			"of at most 2, found %v; for example: oracle: {kind: hedge, class: FILE, substitution: vovk, unproved: "+
			"true}", o.Eta)
	}
	if m.Explore.Name == Paper && m.Learner.Kind == DAFA && o.Eta != PaperEta {
		add("oracle.eta", "explore: {paper: T} stands for eta = 1/18, found %v; leave eta out", o.Eta)
	}
}

func (hedge) cost(m *Model) []string {
	return []string{named, "one weight a function of " + m.Oracle.Class}
}

func (hedge) build(m *Model, files map[string][]byte) (oracle.Regressor, error) {
	o := m.Oracle
	b, ok := files[o.Class]
	if !ok {
		return nil, fmt.Errorf("class %q: %w", o.Class, errNoFile)
	}
	c, err := ParseClass(o.Class, b)
	if err != nil {
		return nil, err
	}
	if c.Kind != SharedClass {
		if err := knows("class "+o.Class, c.Actions, m.Actions); err != nil {
			return nil, err
		}
	}
	class, err := c.Class()
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", o.Class, err)
	}
	prior := c.Priors()
	if slices.Min(prior) == slices.Max(prior) {
		prior = nil // uniform: log|F| without rounding
	}
	return oracle.NewHedge(class, oracle.HedgeOptions{Eta: o.Eta, Prior: prior, Unproved: o.Unproved, Vovk: o.Vovk,
		Outstanding: o.Outstanding})
}

// knownActions returns the only actions of which a learner knows anything, nil if it
// takes any: a context that lists another is refused rather than guessed at.
func knownActions(l learner.Learner) []string {
	var from any
	switch l := l.(type) {
	case *learner.EXP4:
		from = l.Policies()
	case interface{ Oracle() oracle.Regressor }:
		if h, ok := l.Oracle().(*oracle.Hedge); ok {
			from = h.Class()
		}
	}
	if known, ok := from.(interface{ Actions() []string }); ok {
		return known.Actions()
	}
	return nil
}
