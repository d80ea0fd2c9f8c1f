package model

import (
	"slices"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// Kinds of learners, as in the key learner.
const (
	DAFA    = "dafa"
	Greedy  = "greedy"
	Uniform = "uniform"
	EGreedy = "egreedy"
	Fixed   = "fixed"

	EXP4DALE = "exp4dale"
)

// Kinds of oracles, as in the key kind of oracle.
const (
	Linear = "linear"
	Auto   = "auto"
	Hedge  = "hedge"
	Shared = "shared"
	Hybrid = "hybrid"
)

// Kinds of oracles that environments of the replayer bring, in Go code: no model file may
// name them, for no live system could build them.
const (
	Unstable = "unstable" // the oracle of the lower bound: it depends on the order
	Own      = "own"      // one that does not
)

// Names of the key explore that are not numbers.
const (
	Cautious   = "cautious"
	Guaranteed = "guaranteed"
	Balanced   = "balanced"
	Theory     = "theory"
	Paper      = "paper"
)

// PaperEta is the paper's learning rate of Hedge-Vovk, which explore: {paper: T}
// stands for (ALGORITHMS.md, 2.1).
const PaperEta = oracle.PaperEta

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

// Learner names a learner with its parameters.
type Learner struct {
	Kind    string  // DAFA, Greedy, Uniform, EGreedy, Fixed or EXP4DALE
	Epsilon float64 // of EGreedy: the share of uniform draws, in [0,1]
	Action  string  // of Fixed: the action that is always played
	EXP4    EXP4    // of EXP4DALE
}

// Explore says how much DA-FA explores.
type Explore struct {
	Name    string  // a name of the key explore; "" means Factor
	Factor  float64 // > 0: stands in γ where the named ones have theirs
	Horizon int64   // of Paper: T ≥ 1
}

// Oracle names a regression oracle with its parameters.
type Oracle struct {
	Kind      string  // Linear, Auto, Hedge, Shared or Hybrid
	Version   int     // of all but Hedge: of what is computed, 1…oracle.Newest
	Beta      Number  // of all but Hedge: the optimism, in [0,1]
	Lambda    Number  // of Linear, Shared and Hybrid: the ridge, > 0
	Forget    float64 // of Linear: ρ in [0.5,1), how much the past counts after one more example of its action; 0: it does not fade
	Hashed    int64   // of Shared and Hybrid: columns that features and products are hashed into
	Fourier   Number  // of Auto and Linear: random features, 0: none
	Columns   Number  // of Auto, and with random features of Linear: how many columns to expect, the constant included; 0: not known
	Bandwidth float64 // of the random features of Linear, in units of √d, > 0
	Seed      int64   // of the random features, ≥ 0
	Steered   bool    // of Auto: the share is steered
	Eta       float64 // of Hedge: the learning rate, in (0, 1/2] unless Unproved
	Class     string  // of Hedge: a class file, relative to the model file
	Unproved  bool    // of Hedge: accept what has no proof
	Vovk      bool    // of Hedge: Vovk's substitution instead of the mean
}

// Number is a parameter that may be left to the program.
type Number struct {
	Auto  bool
	Value float64 // 0 if Auto
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
	if m.Oracle.Kind == Hedge && m.usesOracle() {
		return []string{m.Oracle.Class}
	}
	return nil
}

// UsesOracle reports whether the learner regresses at all.
func (m *Model) UsesOracle() bool { return m.usesOracle() }

func (m *Model) usesOracle() bool {
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

// Resolve decides the parameters left to the program, once and for good, from
// what is known about the data: columns is d with the constant, actions is K; 0
// means unknown. λ is max(1, d/20), or 1 if d is unknown; β is ½ if K·d² ≤ 1e5,
// else 0, where what the model lists, or else its limits, stand for the unknown; random
// features count in d. [Model.resolveAuto] has the rules of the aggregate.
//
// Since version 2 of the oracle β, λ and the random features follow what comes, the same in
// a backtest and live; they are decided there only where a model gives a value.
func (m *Model) Resolve(columns, actions int) {
	if m.follows() {
		m.resolveNothing()
		return
	}
	switch m.Oracle.Kind {
	case Linear:
		m.resolveLinear(columns, actions)
	case Auto:
		m.resolveAuto(columns, actions)
	case Shared, Hybrid:
		m.resolveShared(actions)
	}
}

// Clone returns a deep copy.
func (m *Model) Clone() *Model {
	c := *m
	c.Actions = append([]string(nil), m.Actions...)
	c.Features = append([]Feature(nil), m.Features...)
	c.Masked = append([]string(nil), m.Masked...)
	return &c
}
