package model

import (
	"slices"

	"hindsight/internal/loop"
)

// DefaultOrder sets the order of a model that does not name arrival: early where it is allowed
// and nothing watches the learner against a baseline, else fifo.
func (m *Model) DefaultOrder() {
	m.Early = !m.Arrival && m.earlyProblem() == "" && !m.Guard.On()
}

// earlyProblem says why rounds decided early must wait for their turn, "" if they need not.
func (m *Model) earlyProblem() string {
	switch {
	case !m.usesOracle() || !slices.Contains([]string{Auto, Linear, Shared, Hybrid}, m.Oracle.Kind):
		return "early is for oracles over features, which are auto, linear, shared and hybrid; use order: fifo"
	case m.Impute:
		return "early learns outcomes before silence, which missing: impute makes a loss; use order: fifo, or missing: skip"
	case m.Outcomes != loop.First:
		return "early releases at the first outcome, and outcomes: " + aggregates()[m.Outcomes] +
			" waits for the window's end; use order: fifo"
	}
	return ""
}

func (m *Model) earlyProblems(add func(key, format string, args ...any)) {
	if problem := m.earlyProblem(); m.Early && problem != "" {
		add("order", "%s", problem)
	}
}
