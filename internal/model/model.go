// Package model reads the model file, the one configuration of a bandit: it parses, checks, writes the
// canonical form, and builds the rules and the learner that the file names.
//
//	keys.go      the table of top-level keys, each read, checked and written by its row
//	fields.go    what a row is: numbers with their ranges, choices, scalars, groups of keys, with their messages
//	parse.go     YAML, errors with their places, and what depends on several keys
//	check.go     values that do not go together
//	oracles.go   the table of kinds of oracles with their keys; what each does is in its file: aggregate.go,
//	             linear.go, shared.go, diagonal.go, hedge.go, ridge.go; features.go has what they share, cost.go
//	             what they cost
//	learner.go   learners and how much they explore; exp4.go, certificate.go
//	class.go     the table of kinds of class files; policyfile.go
//
// A kind of oracle is added by its file and its entry in oracleKinds.
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

// Model is a model file, every default filled in. Two models are equal, in the
// sense of reflect.DeepEqual, exactly when their canonical forms are.
type Model struct {
	Name    string
	Version int64
	rules   // what it says about events; features are sorted by name

	MaxFeatures int // expanded columns, the constant left out
	Learner     Learner
	Explore     Explore
	Oracle      Oracle
	Certificate certificate
	Hurry       *Hurry
	Warm        Warm
	Constants   []learner.Constant // of formulas, sorted by name
	Budgets     []Budget           // sorted by name
}

type rules = loop.Rules

// Warm says from what the learner starts.
type Warm struct {
	Refit   bool  // from all feedback that is kept
	Keep    bool  // with the learner at work, as it is
	Through int64 // from the state after this feedback; 0: no
}

// Default returns the model of an empty file: any context that lists its actions.
func Default() *Model {
	m := &Model{
		Name:        "hindsight",
		Version:     1,
		MaxFeatures: 256,
		Learner:     Learner{Kind: DAFA},
		Explore:     Explore{Name: balanced},
		Certificate: defaultCertificate,
		rules: rules{
			MaxActions:  1000,
			Range:       loop.Range{Min: 0, Max: 1},
			Window:      loop.Window{Nanos: 10 * 60 * 1e9},
			DefaultLoss: 1,
		},
	}
	m.DefaultOracle()
	m.DefaultOrder()
	return m
}

// Rules returns what the model says about events.
func (m *Model) Rules() *loop.Rules {
	r := &m.Clone().rules
	for _, b := range m.Budgets {
		r.Budgets = append(r.Budgets, b.Name)
	}
	r.Provisional = m.provisional()
	return r
}

// Files returns the names of the files that the model uses, as written in it: relative to the folder of the model file.
func (m *Model) Files() (files []string) {
	if f := m.ClassFile(); f != "" {
		files = append(files, f)
	}
	for _, c := range m.Candidates {
		if c.Kind == loop.PolicyCandidate && !slices.Contains(files, c.Action) {
			files = append(files, c.Action)
		}
	}
	return files
}

// ClassFile returns the name of the file that the learner is made from; "" if there is none.
func (m *Model) ClassFile() string {
	if m.Learner.Kind == EXP4DALE {
		return m.Learner.EXP4.Policies
	}
	if m.Oracle.Kind == Hedge && m.UsesOracle() {
		return m.Oracle.Class
	}
	return ""
}

// UsesOracle reports whether the learner regresses at all.
func (m *Model) UsesOracle() bool {
	return m.Learner.Kind != Uniform && m.Learner.Kind != Fixed && m.Learner.Kind != EXP4DALE
}

// mostActions is the largest K that the model allows.
func (m *Model) mostActions() int {
	if m.Actions != nil {
		return len(m.Actions)
	}
	return m.MaxActions
}

// columns is d, the constant included, as far as the model tells it: of the
// features that it lists if each is one column, else of the most that it allows.
func (m *Model) columns() int {
	text := func(f loop.FeatureRule) bool { return f.Kind == loop.TextFeature }
	if m.Features == nil || slices.ContainsFunc(m.Features, text) {
		return m.MaxFeatures + 1
	}
	return min(len(m.Features), m.MaxFeatures) + 1
}

// Clone returns a deep copy.
func (m *Model) Clone() *Model {
	c := *m
	c.Actions, c.Features, c.Masked = slices.Clone(m.Actions), slices.Clone(m.Features), slices.Clone(m.Masked)
	if m.Hurry != nil {
		h := *m.Hurry
		c.Hurry = &h
	}
	c.Candidates, c.Slots = slices.Clone(m.Candidates), slices.Clone(m.Slots)
	c.Named, c.Constants, c.Budgets = slices.Clone(m.Named), slices.Clone(m.Constants), slices.Clone(m.Budgets)
	return &c
}

var errNoFile = errors.New("the file is not there")

// Build returns the learner that the model names, knowing nothing yet. files holds the content of [Model.Files] by
// name. Parameters left to the program are resolved as by Resolve(0, 0) on a copy.
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
	rules, err := m.Judging(files)
	if err != nil {
		return loop.Epoch{}, err
	}
	if rec.Shares() {
		rules.HoldOut = max(rules.HoldOut, 1-rules.Promote.Share)
	}
	if rules.Actions == nil {
		rules.Actions = knownActions(l)
	}
	return loop.Epoch{Number: rec.Epoch, Rules: rules, Learner: l, Since: rec.Continues}, nil
}
