package model

import (
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
)

// Model is a model file, every default filled in. Two models are equal, in the
// sense of reflect.DeepEqual, exactly when their canonical forms are.
type Model struct {
	Name        string
	Version     int64
	Actions     []string // nil: any
	MaxActions  int
	Features    []Feature // nil: auto; sorted by name
	MaxFeatures int       // expanded columns, the constant left out
	Reward      bool      // outcomes are rewards on Range; otherwise losses
	Range       loop.Range
	Learner     Learner
	Explore     Explore
	Oracle      Oracle
	Window      loop.Window
	Impute      bool
	DefaultLoss float64 // in [0,1]; 1 unless Impute
	Outcomes    loop.Aggregate
	Activation  bool
	Arrival     bool
	Early       bool
	Certificate Certificate
	Warm        Warm
	Baseline    loop.Baseline
	Masked      []string // actions that are not played for now; nil: none
	Guard       loop.GuardRules
	Mode        codec.Mode
}

// Warm says from what the learner starts.
type Warm struct {
	Refit   bool  // from all feedback that is kept
	Keep    bool  // with the learner at work, as it is
	Through int64 // from the state after this feedback; 0: no
}

// Feature is one feature of a model that lists them.
type Feature struct {
	Name    string
	Kind    loop.FeatureKind
	Bounded bool // numbers only: Lo and Hi replace running standardisation
	Lo, Hi  float64
}

// Default returns the model of an empty file: any context that lists its actions.
func Default() *Model {
	m := &Model{
		Name:        "hindsight",
		Version:     1,
		MaxActions:  1000,
		MaxFeatures: 256,
		Range:       loop.Range{Min: 0, Max: 1},
		Learner:     Learner{Kind: DAFA},
		Explore:     Explore{Name: Balanced},
		Window:      loop.Window{Nanos: 10 * 60 * 1e9},
		DefaultLoss: 1,
		Certificate: defaultCertificate,
	}
	m.DefaultOracle()
	m.DefaultOrder()
	return m
}

// Rules returns what the model says about events.
func (m *Model) Rules() *loop.Rules {
	r := &loop.Rules{
		Actions:     append([]string(nil), m.Actions...),
		MaxActions:  m.MaxActions,
		Range:       m.Range,
		Reward:      m.Reward,
		Window:      m.Window,
		Impute:      m.Impute,
		DefaultLoss: m.DefaultLoss,
		Outcomes:    m.Outcomes,
		Activation:  m.Activation,
		Arrival:     m.Arrival,
		Early:       m.Early,
		Mode:        m.Mode,
		Baseline:    m.Baseline,
		Masked:      append([]string(nil), m.Masked...),
		Guard:       m.Guard,
	}
	for _, f := range m.Features {
		r.Features = append(r.Features, loop.FeatureRule(f))
	}
	return r
}

// Files returns the names of the files that the model uses, as written in it:
// relative to the folder of the model file.
func (m *Model) Files() []string {
	if m.Learner.Kind == EXP4DALE {
		return []string{m.Learner.EXP4.Policies}
	}
	if m.Oracle.Kind == Hedge && m.UsesOracle() {
		return []string{m.Oracle.Class}
	}
	return nil
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
	text := func(f Feature) bool { return f.Kind == loop.TextFeature }
	if m.Features == nil || slices.ContainsFunc(m.Features, text) {
		return m.MaxFeatures + 1
	}
	return min(len(m.Features), m.MaxFeatures) + 1
}

// Clone returns a deep copy.
func (m *Model) Clone() *Model {
	c := *m
	c.Actions = append([]string(nil), m.Actions...)
	c.Features = append([]Feature(nil), m.Features...)
	c.Masked = append([]string(nil), m.Masked...)
	return &c
}
