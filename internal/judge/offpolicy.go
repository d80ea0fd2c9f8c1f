// Package judge estimates what policies would have been worth on the rows of a log with propensities.
package judge

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"hindsight/internal/dataset"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
	"hindsight/internal/spill"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// OffPolicy judges policies on the rows of a bandit log with propensities. It holds 24 bytes a row beside the log, and
// 8 more where rows stand for several events, in temporary files like those of the log.
type OffPolicy struct {
	log     *dataset.Table
	sample  ope.Sample
	files   spill.Files // in which the sample lies
	rows    []int32     // of the log that have an outcome, of a model with named ones any
	worth   []int32     // of rows, those whose reward is known and the sample has; nil: all
	dropped int         // rows without one
	learner learnerFunc
	minimum float64 // propensity
	events  float64 // that the rows stand for

	interval Choice

	env      *replay.Rounds
	journal  *replay.Journal // nil: none is kept
	digested sync.Once
	sum      string // of the rows
}

// learnerFunc makes the policy of a learner, a model file or a snapshot: spec is what follows "learner:", "model:" or
// "snapshot:". The policy is asked once for each row with an outcome, in order: row is its index in the log.
type learnerFunc func(kind, spec string) (*Progressive, error)

// OffPolicySettings are what the estimates depend on beside the log, as in JSON.
type OffPolicySettings struct {
	// what is estimated: the mean "reward" or "loss" of a row, on the log's scale
	Of             string     `json:"of"`
	Formula        string     `json:"formula,omitempty" csv:"-"` // of the reward, of named outcomes
	Rows           int        `json:"rows"`
	Events         ope.Figure `json:"events"`          // that the rows stand for
	Units          int        `json:"units,omitempty"` // of the rows, as good as independent of each other; 0: the rows
	WithoutOutcome int        `json:"without_outcome"` // rows that are left out
	Actions        int        `json:"actions"`
	MinPropensity  float64    `json:"min_propensity"`
	Lambda         ope.Figure `json:"lambda"`   // null: ∞; 0: chosen by estimated error
	CrossFit       int        `json:"crossfit"` // folds; 0: none
	Bootstrap      int        `json:"bootstrap"`
	Seed           uint64     `json:"seed"`
	Interval       Choice     `json:"interval"` // which is right for this log
}

var errNoOutcomes = errors.New("no row of this log has an outcome, by which policies are judged and learners learn")

// NewOffPolicy looks at the log that is played. makeLearner serves learner:, model: and snapshot:; nil refuses them.
func NewOffPolicy(env *replay.Rounds, makeLearner learnerFunc) (*OffPolicy, error) {
	if !env.HasPropensities() {
		return nil, replay.ErrNoPropensities
	}
	o := &OffPolicy{log: env.Log, learner: makeLearner, env: env, minimum: math.Inf(1)}
	if err := o.look(); err != nil {
		return nil, err
	}
	return o, nil
}

// look copies what estimators need of the rows that have an outcome.
func (o *OffPolicy) look() error {
	log := o.log
	files := &o.files
	indices, numbers := spill.Column[int32]{In: files}, spill.Column[float64]{In: files}
	rows, worth, action, propensity, reward, events := indices, indices, indices, numbers, numbers, numbers
	unit, of := indices, map[int32]int32{}
	for t := range o.env.Len() {
		row := o.env.Row(t)
		log.Pass(t)
		value, known, any := o.env.Worth(t)
		if any {
			rows.Add(int32(t))
		}
		if !known {
			o.dropped++
			continue
		}
		worth.Add(int32(len(rows.All) - 1))
		action.Add(log.Action[row])
		propensity.Add(log.Props[row])
		reward.Add(value)
		if log.Weights != nil {
			events.Add(log.Stands(row))
		}
		if log.Unit != nil {
			u := log.Unit[row]
			at, met := of[u]
			if u < 0 || !met {
				at = int32(o.sample.Units)
				of[u] = at
				o.sample.Units++
			}
			unit.Add(at)
		}
		o.minimum = min(o.minimum, log.Props[row])
		o.events += log.Stands(row)
	}
	if o.rows = rows.All; len(worth.All) < len(o.rows) {
		o.worth = worth.All
	}
	o.sample = ope.Sample{Actions: len(o.env.Actions), Action: action.All, Propensity: propensity.All,
		Reward: reward.All, Events: events.All, Unit: unit.All, Units: o.sample.Units}
	switch {
	case files.Err != nil:
		return files.Err
	case len(o.sample.Action) == 0:
		return errNoOutcomes
	}
	o.interval = o.chooseInterval()
	return nil
}

// at returns which of the rows is number i of the sample.
func (o *OffPolicy) at(i int) int {
	if o.worth == nil {
		return i
	}
	return int(o.worth[i])
}

// row returns the row of the log that is number i of rows.
func (o *OffPolicy) row(i int) int { return o.env.Row(int(o.rows[i])) }

// Options returns the defaults for this log.
func (o *OffPolicy) Options() ope.Options {
	out := ope.Defaults()
	scale := o.env.Scale()
	out.Range = ope.Range{Min: scale.Min, Max: scale.Max}
	return out
}

// Settings says what estimates with these options depend on.
func (o *OffPolicy) Settings(opt ope.Options) OffPolicySettings {
	s := OffPolicySettings{Of: "loss", Rows: o.sample.Len(), WithoutOutcome: o.dropped, Actions: o.sample.Actions,
		MinPropensity: o.minimum, Events: ope.Figure(o.events),
		Lambda: ope.Figure(opt.Lambda), CrossFit: opt.Model.Folds, Bootstrap: opt.Bootstrap, Seed: opt.Seed,
		Interval: o.interval, Units: o.sample.Units}
	if o.rewards() {
		s.Of, s.Formula = "reward", o.env.Formula()
	}
	return s
}

// rewards reports whether rewards are estimated, not losses.
func (o *OffPolicy) rewards() bool { return o.log.Kind == codec.Reward || o.env.Formula() != "" }

// Evaluate judges the policy that a specification names. It is safe for concurrent use.
func (o *OffPolicy) Evaluate(spec string, opt ope.Options) (*ope.Evaluation, error) {
	t, err := o.target(spec)
	if err != nil {
		return nil, err
	}
	sample := o.sample
	sample.Memory, sample.Context, sample.Missing = &judgingMemory{o: o}, o.contexts(), o.missing
	sums := o.newSums()
	e, err := ope.Evaluate(&sample, spec, sums.law(t.law), opt)
	if err == nil {
		e.Outcomes = sums.outcomes(t.law)
	}
	if t.failed != nil && t.failed() != nil {
		err = t.failed()
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", spec, err)
	}
	e.Flags = append(append(e.Flags, t.flags...), sums.flags()...)
	if err := o.keep(spec, t, opt, e); err != nil {
		return nil, err
	}
	o.flag(e)
	return e, nil
}

// contexts returns what the reward model sees of the rows; nil if they have no features.
func (o *OffPolicy) contexts() func(x *oracle.Input, t int) []int32 {
	if o.env.Columns <= 1 && !o.env.ActionsBringFeatures() {
		return nil
	}
	var c codec.Context
	var index []int32
	var features []oracle.Feature
	texts := texts{log: o.log}
	return func(x *oracle.Input, t int) []int32 {
		o.env.Context(&c, int(o.rows[o.at(t)]))
		index = o.log.Indices(index[:0], &c)
		features = texts.append(features[:0], c.Features)
		own := len(features)
		x.Vector, x.Actions = c.Vector, x.Actions[:0]
		for i := range c.Actions {
			from := len(features)
			features = texts.append(features, c.Actions[i].Features)
			x.Actions = append(x.Actions, oracle.Action{Features: features[from:]})
		}
		x.Features = features[:own]
		return index
	}
}

// flag adds the flags that the log itself raises, whatever the policy.
func (o *OffPolicy) flag(e *ope.Evaluation) {
	if o.dropped > 0 {
		e.Flags = append(e.Flags, fmt.Sprintf("%d rows without an outcome are left out: right only if outcomes go "+
			"missing whatever they would be", o.dropped))
	}
}

// Check reports what is wrong with a specification, without judging the policy.
func (o *OffPolicy) Check(spec string) error {
	_, err := o.target(spec)
	return err
}

// judgingMemory is where a judgement keeps what it has of every row.
type judgingMemory struct {
	o     *OffPolicy
	files spill.Files
}

// Floats implements [ope.Memory].
func (m *judgingMemory) Floats(n int) ([]float64, func(), error) { return m.files.Floats(n) }

// Drop implements [ope.Memory].
func (m *judgingMemory) Drop() {
	m.o.log.Drop(false)
	m.o.files.Drop()
	m.files.Drop()
}

// Evaluations are what a log says of policies; its JSON is part of that of `backtest`.
type Evaluations struct {
	Settings OffPolicySettings
	Policies []*ope.Evaluation
}

// Method says in words how estimates clip and fit.
func (s *OffPolicySettings) Method() string {
	text := fmt.Sprintf("λ = %v", float64(s.Lambda))
	switch {
	case math.IsInf(float64(s.Lambda), 1):
		text = "no clipping"
	case s.Lambda == 0:
		text = "λ chosen for each policy"
	}
	if s.CrossFit > 1 {
		return text + fmt.Sprintf(", reward model cross-fitted in %d folds", s.CrossFit)
	}
	return text + ", reward model of the same rows, by action"
}
