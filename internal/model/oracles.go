package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hindsight/pkg/oracle"
)

// Kinds of oracles, as model files name them.
const (
	Auto     = "auto"     // an aggregate of several regressions, the default
	Linear   = "linear"   // ridge regression
	Fourier  = "fourier"  // ridge regression with random features, as flags name it
	Shared   = "shared"   // one regression for all actions, over their features
	Hybrid   = "hybrid"   // shared, with an intercept an action
	Diagonal = "diagonal" // the Kalman filter with a diagonal covariance, for texts and vectors
	Ridge    = "ridge"    // ridge regression over columns that are fixed beforehand, with a theorem
	Hedge    = "hedge"    // an aggregate of the functions of a finite class
)

// Oracle names a regression oracle with its parameters.
type Oracle struct {
	Kind    string // Linear, Auto, Hedge, Shared, Hybrid, Diagonal or Ridge
	Version int    // of all but Hedge and Ridge: of what is computed, 1…oracle.Newest
	Beta    Number // of all but Hedge and Ridge: the optimism, in [0,1]
	Lambda  Number // of Linear, Shared, Hybrid, Diagonal and Ridge: the ridge, > 0
	// of Linear: ρ in [0.5,1), how much the past counts after one more example of its action; 0: it does not fade
	Forget  float64
	Hashed  int64  // of Shared and Hybrid: columns that features and products are hashed into
	Fourier Number // of Auto and Linear: random features, 0: none
	// of Auto, and with random features of Linear: how many columns to expect, the constant included; 0: not known
	Columns   Number
	Bandwidth float64 // of the random features of Linear, in units of √d, > 0
	Seed      int64   // of the random features, ≥ 0
	Steered   bool    // of Auto: the share is steered
	Eta       float64 // of Hedge: the learning rate, in (0, 1/2] unless Unproved
	Class     string  // of Hedge: a class file, relative to the model file
	Unproved  bool    // of Hedge: accept what has no proof
	Vovk      bool    // of Hedge: Vovk's substitution instead of the mean
	// of Hedge: the learning rate starts at Eta = 1/2 and follows what is outstanding
	Outstanding bool
	Certified   bool // of Ridge, which must have it
}

// Number is a parameter that may be left to the program.
type Number struct {
	Auto  bool
	Value float64 // 0 if Auto
}

// decide sets a parameter that was left to the program.
func (n *Number) decide(v float64) {
	if n.Auto {
		*n = Number{Value: v}
	}
}

// orByWhatComes returns the value of a parameter, or what leaves it to the oracle.
func (n Number) orByWhatComes() float64 {
	if n.Auto {
		return oracle.ByWhatComes
	}
	return n.Value
}

// oracleKind is a kind of oracle: one file, and one entry in oracleKinds.
type oracleKind struct {
	defaults Oracle // with the name of the kind
	keys     string // of a model file, in the order of the canonical form; see [Oracle.keys]
	orders   orders
	doings
}

// doings are what kinds of oracles do in ways of their own.
type doings interface {
	check(m *Model, add adder)
	resolve(m *Model, columns, actions int) // see [Model.Resolve]
	// The model of these is resolved. memory is the most bytes, 0 where files decide.
	memory(m *Model) float64
	cost(m *Model) []string // why it is the oracle, its state, what a decision and an update cost
	build(m *Model, files map[string][]byte) (oracle.Regressor, error)
}

// orders says in which orders other than fifo an oracle may learn.
type orders struct{ early, arrival bool }

// oracleKinds returns the kinds that a model file may name, in the order of messages.
func oracleKinds() []oracleKind {
	const newest = oracle.Newest
	auto, early, arrival := Number{Auto: true}, orders{early: true}, orders{arrival: true}
	return []oracleKind{
		{Oracle{Kind: Auto, Version: newest, Beta: auto, Columns: auto, Fourier: auto, Seed: 1},
			"version beta columns fourier seed share", early, aggregate{}},
		{Oracle{Kind: Linear, Version: newest, Beta: auto, Lambda: auto},
			"version beta lambda forget fourier columns bandwidth seed", early, linear{}},
		{Oracle{Kind: Hedge}, "eta class unproved substitution", arrival, hedge{}},
		{Oracle{Kind: Shared, Version: newest, Beta: auto, Lambda: auto, Hashed: oracle.DefaultHashed},
			"version beta lambda hashed", early, shared{}},
		{Oracle{Kind: Hybrid, Version: newest, Beta: auto, Lambda: auto, Hashed: oracle.DefaultHashed},
			"version beta lambda hashed", early, shared{}},
		{Oracle{Kind: Diagonal, Version: newest, Beta: auto, Lambda: auto}, "version beta lambda", early, diagonal{}},
		{Oracle{Kind: Ridge, Lambda: auto}, "certified lambda", arrival, certified{}},
	}
}

// oracleOf returns the oracle of a kind with its defaults.
func oracleOf(kind string) Oracle { return (&Oracle{Kind: kind}).kind().defaults }

// overFeatures are the oracles over features of which nothing else is to be checked.
type overFeatures struct{}

func (overFeatures) check(m *Model, add adder) { m.checkFeatures(add) }

// fixed are the oracles that leave nothing to the program, and whose size is that of files unless they say so.
type fixed struct{}

func (fixed) resolve(*Model, int, int) {}
func (fixed) memory(*Model) float64    { return 0 }

// kindNames returns the names of the kinds, or of those only that may learn early.
func kindNames(early bool) (names []string) {
	for _, k := range oracleKinds() {
		if !early || k.orders.early {
			names = append(names, k.defaults.Kind)
		}
	}
	return names
}

// kind returns the kind of the oracle.
func (o *Oracle) kind() oracleKind {
	for _, k := range oracleKinds() {
		if k.defaults.Kind == o.Kind {
			return k
		}
	}
	return oracleKind{Oracle{Kind: o.Kind}, "beta lambda", orders{arrival: o.Kind == Own}, environment{}}
}

// setDefaults sets the oracle to the defaults of its kind, where it has a version to that one.
func (o *Oracle) setDefaults(version int) {
	if *o = oracleOf(o.Kind); o.Version > 0 {
		o.Version = version
	}
}

// ParseOracle reads an oracle as flags write it, with its defaults: auto, linear, fourier,
// which is linear with 128 random features, shared, hybrid or diagonal.
func ParseOracle(s string) (Oracle, error) {
	if s == Fourier {
		o := oracleOf(Linear)
		o.Fourier.Value = oracle.DefaultFourier
		o.expectRandom()
		return o, nil
	}
	o := Oracle{Kind: s}
	if o.setDefaults(oracle.Newest); o.Version > 0 {
		return o, nil
	}
	return Oracle{}, fmt.Errorf("unknown oracle %q: expected auto, linear, fourier, shared, hybrid or diagonal; "+
		"hedge needs a model file with its class", s)
}

func (o *Oracle) read(p *parser, n *yaml.Node, where string) {
	if *o = (Oracle{Kind: n.Value}); n.Kind == yaml.ScalarNode {
		if o.setDefaults(p.version); o.Version > 0 {
			return
		}
	}
	if n.Kind != yaml.MappingNode {
		p.expected(n, where, "a kind and its parameters", "auto")
		return
	}
	o.Kind = Linear
	for _, named := range kindsOf(n) {
		if o.Kind = named.Value; !slices.Contains(kindNames(false), o.Kind) {
			p.wrongKind(named)
			return
		}
	}
	o.setDefaults(p.version)
	if o.Kind == Linear {
		o.expectRandom()
	}
	if p.fields(n, where, o.keys()); o.Kind == Linear && !o.randomised() {
		o.dropRandom(p)
	}
}

func (p *parser) wrongKind(n *yaml.Node) {
	if n.Value == Unstable || n.Value == Own {
		p.errorf(n, "oracle.kind: %s is the oracle of an environment, for backtests only (replayer backtest --env "+
			"unstable); a live system has linear or hedge", n.Value)
		return
	}
	names := kindNames(false)
	p.expected(n, "oracle.kind", strings.Join(names, " | "), Linear, names...)
}

// Limits of parameters of oracles.
const (
	maxHashed      = 8192 // the largest D of a shared oracle: its matrix has D(D+1)/2 numbers
	maxColumns     = 65537
	leastBandwidth = 1e-3
	mostBandwidth  = 1e3
)

// keys returns the keys of the oracle's kind, of all that there are.
func (o *Oracle) keys() []field {
	random := o.Kind != Linear || o.randomised()
	newest := strconv.Itoa(oracle.Newest)
	all := []field{
		{key: "version", into: &o.Version, whole: true, lo: 1, hi: oracle.Newest, example: newest,
			omit: o.Version <= 1},
		autoField(&o.Beta, field{key: "beta", hi: 1, example: "0.5"}),
		autoField(&o.Lambda, field{key: "lambda", lo: 1e-9, hi: 1e9, example: "1"}),
		{key: "forget", into: &o.Forget, lo: .5, hi: 1, ends: "[)", example: "0.998; leave it out to forget nothing",
			omit: o.Forget == 0},
		autoField(&o.Fourier, field{key: "fourier", whole: true, hi: oracle.MaxFourier, example: "128", omit: !random}),
		autoField(&o.Columns, field{key: "columns", whole: true, hi: maxColumns, example: "17, or 0 if not known",
			omit: !random}),
		{key: "bandwidth", into: &o.Bandwidth, lo: leastBandwidth, hi: mostBandwidth, example: "1", omit: !random},
		{key: "seed", into: &o.Seed, whole: true, hi: 1 << 53, example: "1", omit: !random},
		{key: "share", into: either(&o.Steered, "fixed", "steered"), omit: !o.Steered},
		{key: "hashed", into: &o.Hashed, whole: true, lo: 2, hi: maxHashed, example: "256"},
		{key: "eta", into: &o.Eta, hi: 1e6, ends: "(]", word: "outstanding", is: &o.Outstanding, or: oracle.DefaultEta,
			example: "0.5"},
		{key: "class", into: &o.Class, example: "shop.class.jsonl"},
		{key: "unproved", into: &o.Unproved, example: "true"},
		{key: "substitution", into: either(&o.Vovk, "mean", "vovk"), omit: !o.Vovk},
		{key: "certified", into: &o.Certified, example: "true"},
	}
	if k := o.kind(); k.doings == (environment{}) {
		for i := range all {
			all[i].lo, all[i].hi = 0, 0 // its numbers are its own
		}
	}
	out := []field{{key: "kind", into: word(o.Kind)}}
	for _, key := range strings.Fields(o.kind().keys) {
		out = append(out, all[slices.IndexFunc(all, func(f field) bool { return f.key == key })])
	}
	return out
}

// autoField is the field of a number that may be left to the program.
func autoField(n *Number, f field) field {
	f.into, f.word, f.is = &n.Value, "auto", &n.Auto
	return f
}

func (o *Oracle) canonical() string { return braces(o.keys()) }

// DefaultOracle sets the oracle of a model that names none: auto.
func (m *Model) DefaultOracle() { m.defaultOracle(oracle.Newest) }

// defaultOracle is [Model.DefaultOracle] for a version of what is computed. In version 1 it is linear where auto, with
// as many actions and columns as the model allows, would take more than [MaxMemory].
func (m *Model) defaultOracle(version int) {
	m.Oracle.Kind = Auto
	m.Oracle.setDefaults(version)
	if version == 1 && m.oracleMemory() > MaxMemory {
		m.Oracle.Kind = Linear
		m.Oracle.setDefaults(version)
	}
}

// Resolve decides the parameters left to the program, once and for good, from what is known about the data: columns is
// d with the constant, actions is K; 0 means unknown. λ is max(1, d/20), or 1 if d is unknown; β is ½ if K·d² ≤ 1e5,
// else 0, where what the model lists, or else its limits, stand for the unknown; random features count in d.
//
// Since version 2 of the oracle β, λ and the random features follow what comes, the same in
// a backtest and live; they are decided there only where a model gives a value.
func (m *Model) Resolve(columns, actions int) {
	m.Oracle.kind().resolve(m, columns, actions)
}

// MaxMemory bounds the bytes of the linear oracle and of the aggregate: in version 1 at the
// model's limits, since then as they come.
const MaxMemory = 1 << 30

// Memory returns the bytes of the learner's state at its largest, as far as the model alone tells: with as many actions
// and columns as it allows (actions may bring features of their own beside those that are listed).
func (m *Model) Memory() int64 {
	if !m.UsesOracle() {
		return 0
	}
	return m.oracleMemory()
}

func (m *Model) oracleMemory() int64 {
	c := m.resolved()
	states := max(1, len(m.heads()))
	if m.Hurry != nil {
		states = 2 // the slow one and the fast one
	}
	return int64(c.Oracle.kind().memory(c) * float64(states))
}

// resolved returns a copy that leaves nothing to the program.
func (m *Model) resolved() *Model {
	c := m.Clone()
	c.Resolve(0, 0)
	return c
}

// Kinds of oracles that environments of the replayer bring, in Go code: no model file may
// name them, for no live system could build them.
const (
	Unstable = "unstable" // the oracle of the lower bound: it depends on the order
	Own      = "own"      // one that does not
)

// environment is the kind of an oracle that an environment of the replayer brings.
type environment struct{ fixed }

func (environment) check(m *Model, add adder) {
	if k := m.Oracle.Kind; k != Unstable && k != Own {
		add("oracle", "kind: expected %s, found %q", strings.Join(kindNames(false), " | "), k)
	}
}

func (environment) cost(*Model) []string { return []string{"the environment brings it"} }

func (environment) build(m *Model, _ map[string][]byte) (oracle.Regressor, error) {
	return nil, fmt.Errorf("%s is the oracle of an environment: it is for backtests only", m.Oracle.Kind)
}
