package model

import (
	"errors"
	"fmt"
	"slices"

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
		l, err := m.exp4(files)
		if err != nil {
			return nil, fmt.Errorf("model %s: learner: %w", m.Name, err)
		}
		return l, nil
	}
	reg, err := m.oracle(files)
	if err != nil {
		return nil, fmt.Errorf("model %s: oracle: %w", m.Name, err)
	}
	return m.BuildOn(reg)
}

// BuildOn returns the learner that the model names, one that uses an oracle, over reg.
func (m *Model) BuildOn(reg oracle.Regressor) (learner.Learner, error) {
	switch m.Learner.Kind {
	case Greedy:
		return learner.NewGreedy(reg), nil
	case EGreedy:
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

func (m *Model) oracle(files map[string][]byte) (oracle.Regressor, error) {
	switch m.Oracle.Kind {
	case Hedge:
		return m.hedge(files)
	case Unstable, Own:
		return nil, fmt.Errorf("%s is the oracle of an environment: it is for backtests only", m.Oracle.Kind)
	}
	c := m.Clone()
	c.Resolve(0, 0)
	switch c.Oracle.Kind {
	case Auto:
		return c.auto()
	case Shared, Hybrid:
		return c.shared()
	}
	o := oracle.LinearOptions{Version: c.Oracle.Version, Beta: c.Oracle.Beta.orByWhatComes(), Lambda: c.Oracle.Lambda.orByWhatComes(), Forget: c.Oracle.Forget,
		MaxFeatures: m.MaxFeatures, Schema: m.schema(), Fourier: int(c.Oracle.Fourier.Value),
		Columns: int(c.Oracle.Columns.Value), Bandwidth: c.Oracle.Bandwidth, Seed: uint64(c.Oracle.Seed)}
	o.MaxActions = m.learnedActions()
	return oracle.NewLinear(o)
}

// learnedActions is how many actions a regression learns over time, 0: as many as fit. A
// model that takes any may meet more than max_actions of one round; one that goes on with
// the learner of another list keeps what that one knew.
func (m *Model) learnedActions() int {
	if m.Warm.Keep {
		return 0
	}
	return len(m.Actions)
}

func (m *Model) hedge(files map[string][]byte) (oracle.Regressor, error) {
	name := m.Oracle.Class
	b, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("class %q: %w", name, errNoFile)
	}
	c, err := ParseClass(name, b)
	if err != nil {
		return nil, err
	}
	for _, a := range m.Actions {
		if c.Kind != SharedClass && !slices.Contains(c.Actions, a) {
			return nil, fmt.Errorf("class %s does not know the action %q of the model; it has %d others", name, a, len(c.Actions))
		}
	}
	class, err := c.Class()
	if err != nil {
		return nil, fmt.Errorf("class %s: %w", name, err)
	}
	prior := c.Priors()
	if slices.Min(prior) == slices.Max(prior) {
		prior = nil // uniform: log|F| without rounding
	}
	return oracle.NewHedge(class, oracle.HedgeOptions{Eta: m.Oracle.Eta, Prior: prior, Unproved: m.Oracle.Unproved, Vovk: m.Oracle.Vovk})
}

// Epoch returns the model of an epoch record at work, with a fresh learner: what
// every process makes of the feedback log alone.
func Epoch(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
	m, err := ParseLogged(fmt.Sprintf("epoch %d", rec.Epoch), rec.Model)
	if err != nil {
		return loop.Epoch{}, err
	}
	if m.Arrival && rec.Partitions > 1 {
		m.Certificate = Certificate{} // the order of decisions of several partitions is not known
	}
	l, err := m.Build(files)
	if err != nil {
		return loop.Epoch{}, err
	}
	if d, ok := l.(*learner.DAFA); ok {
		d.BeginAfter(rec.Through)
	}
	rules := m.Rules()
	if c, ok := l.(interface{ Oracle() oracle.Regressor }); ok && rules.Actions == nil {
		rules.Actions = knownActions(c.Oracle())
	}
	if e, ok := l.(*learner.EXP4); ok && rules.Actions == nil {
		rules.Actions = e.Policies().(namedPolicies).Actions()
	}
	return loop.Epoch{Number: rec.Epoch, Rules: rules, Learner: l, Since: rec.Continues}, nil
}

// knownActions returns the only actions of which an oracle knows anything, nil if it
// takes any: a context that lists another is refused rather than guessed at.
func knownActions(reg oracle.Regressor) []string {
	if h, ok := reg.(*oracle.Hedge); ok {
		if c, ok := h.Class().(interface{ Actions() []string }); ok {
			return c.Actions()
		}
	}
	return nil
}
