package model

import (
	"errors"
	"fmt"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

var errNoFile = errors.New("the file is not there")

// Build returns the learner that the model names, knowing nothing yet. files
// holds the content of [Model.Files] by name. Parameters left to the program are
// resolved as by Resolve(0, 0) on a copy.
func (m *Model) Build(files map[string][]byte) (learner.Learner, error) {
	switch m.Learner.Kind {
	case Uniform:
		return learner.NewUniform(), nil
	case Fixed:
		return learner.NewFixed(m.Learner.Action), nil
	case EXP4DALE:
		l, err := m.Learner.EXP4.build(m, files)
		if err != nil {
			return nil, fmt.Errorf("model %s: learner: %w", m.Name, err)
		}
		return l, nil
	}
	c := m.resolved()
	if m.Named != nil {
		return c.buildNamed(files)
	}
	reg, err := c.Oracle.kind().build(c, files)
	if err != nil {
		return nil, fmt.Errorf("model %s: oracle: %w", m.Name, err)
	}
	l, err := m.BuildOn(reg)
	if err != nil {
		return nil, err
	}
	return c.hurry(l, files)
}

// BuildOn returns the learner that the model names, one that uses an oracle, over reg.
func (m *Model) BuildOn(reg oracle.Regressor) (learner.Learner, error) {
	switch m.Learner.Kind {
	case greedy:
		return learner.NewGreedy(reg), nil
	case eGreedy:
		return learner.NewEpsilonGreedy(reg, m.Learner.Epsilon)
	}
	if m.Explore.Name == Paper {
		return m.watch(learner.NewDAFA(reg, learner.Paper{T: m.Explore.Horizon}))
	}
	s, err := learner.NewSchedule(m.Explore.String(), reg)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	return m.watch(learner.NewDAFA(reg, s))
}

// Epoch returns the model of an epoch record at work, with a fresh learner: what
// every process makes of the feedback log alone.
func Epoch(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
	m, err := ParseLogged(fmt.Sprintf("epoch %d", rec.Epoch), rec.LoggedModel())
	if err != nil {
		return loop.Epoch{}, err
	}
	if m.Arrival && rec.Partitions > 1 {
		m.Certificate = certificate{} // the order of decisions of several partitions is not known
	}
	l, err := m.Build(files)
	if err != nil {
		return loop.Epoch{}, err
	}
	if d, ok := l.(*learner.DAFA); ok {
		d.BeginAfter(rec.Through)
	}
	rules := m.Rules()
	if rec.ByRule() {
		rules.HoldOut = max(rules.HoldOut, 1-rules.Promote.Share)
	}
	if c, ok := l.(interface{ Oracle() oracle.Regressor }); ok && rules.Actions == nil {
		rules.Actions = knownActions(c.Oracle())
	}
	if e, ok := l.(*learner.EXP4); ok && rules.Actions == nil {
		rules.Actions = e.Policies().(namedPolicies).Actions()
	}
	return loop.Epoch{Number: rec.Epoch, Rules: rules, Learner: l, Since: rec.Continues}, nil
}
