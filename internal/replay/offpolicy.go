package replay

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"hindsight/internal/ope"
	"hindsight/pkg/codec"
)

// OffPolicy judges policies on the rows of a bandit log with propensities. It holds 24
// bytes a row beside the log, and 8 more where rows stand for several events.
type OffPolicy struct {
	log     *logView
	sample  ope.Sample
	rows    []int32 // of the log that have an outcome
	dropped int     // rows without one
	learner LearnerFunc

	env      Environment
	journal  *Journal // nil: none is kept
	digested sync.Once
	sum      string // of the rows
}

// LearnerFunc makes the policy of a learner, a model file or a snapshot: spec is what
// follows "learner:", "model:" or "snapshot:". The policy is asked once for each row with
// an outcome, in order: row is its index in the log.
type LearnerFunc func(kind, spec string) (*Progressive, error)

// OffPolicySettings are what the estimates depend on beside the log, as in JSON.
type OffPolicySettings struct {
	Of             string     `json:"of"` // what is estimated: the mean "reward" or "loss" of a row, on the log's scale
	Rows           int        `json:"rows"`
	Events         ope.Figure `json:"events"`          // that the rows stand for
	WithoutOutcome int        `json:"without_outcome"` // rows that are left out
	Actions        int        `json:"actions"`
	MinPropensity  float64    `json:"min_propensity"`
	Lambda         ope.Figure `json:"lambda"`   // null: ∞; 0: chosen by estimated error
	CrossFit       int        `json:"crossfit"` // folds; 0: none
	Bootstrap      int        `json:"bootstrap"`
	Seed           uint64     `json:"seed"`
}

var (
	errNoPropensities = errors.New("policies are judged on logs with propensities, and this data has none; name their column: --propensity-column")
	errNoOutcomes     = errors.New("policies are judged by outcomes, and no row of this log has one")
)

// NewOffPolicy looks at the log that env shows. makeLearner serves learner:, model:
// and snapshot:; nil refuses them.
func NewOffPolicy(env Environment, makeLearner LearnerFunc) (*OffPolicy, error) {
	if !HasPropensities(env) {
		return nil, errNoPropensities
	}
	o := &OffPolicy{log: logOf(env), learner: makeLearner, env: env}
	o.sample.Actions = len(env.Actions())
	scale := o.log.log.scale
	for t := range o.log.n {
		if !o.log.observed(t) {
			o.dropped++
			continue
		}
		_, value := o.log.outcome(t)
		o.rows = append(o.rows, int32(t))
		o.sample.Action = append(o.sample.Action, int32(o.log.action(t)))
		o.sample.Propensity = append(o.sample.Propensity, o.log.propensity(t))
		o.sample.Reward = append(o.sample.Reward, min(max(value, scale.Min), scale.Max))
		if o.log.log.weights != nil {
			o.sample.Events = append(o.sample.Events, o.log.stands(t))
		}
	}
	if len(o.rows) == 0 {
		return nil, errNoOutcomes
	}
	return o, nil
}

// Options returns the defaults for this log: on other ranges than [0,1] the reward
// model's prior is as far from the lower end.
func (o *OffPolicy) Options() ope.Options {
	out := ope.Defaults()
	scale := o.log.log.scale
	out.Range = ope.Range{Min: scale.Min, Max: scale.Max}
	out.Model.PriorSum = out.Model.PriorCount*scale.Min + out.Model.PriorSum*(scale.Max-scale.Min)
	return out
}

// Settings says what estimates with these options depend on.
func (o *OffPolicy) Settings(opt ope.Options) OffPolicySettings {
	s := OffPolicySettings{Of: "loss", Rows: len(o.rows), WithoutOutcome: o.dropped, Actions: o.sample.Actions, MinPropensity: math.Inf(1),
		Lambda: ope.Figure(opt.Lambda), CrossFit: opt.Model.Folds, Bootstrap: opt.Bootstrap, Seed: opt.Seed}
	if o.log.log.kind == codec.Reward {
		s.Of = "reward"
	}
	for i, p := range o.sample.Propensity {
		s.MinPropensity = min(s.MinPropensity, p)
		s.Events += ope.Figure(o.log.stands(int(o.rows[i])))
	}
	return s
}

// Evaluate judges the policy that a specification names. It is safe for concurrent use.
func (o *OffPolicy) Evaluate(spec string, opt ope.Options) (*ope.Evaluation, error) {
	t, err := o.target(spec)
	if err != nil {
		return nil, err
	}
	e, err := ope.Evaluate(&o.sample, spec, t.law, opt)
	if t.failed != nil && t.failed() != nil {
		err = t.failed()
	}
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", spec, err)
	}
	e.Flags = append(e.Flags, t.flags...)
	if err := o.keep(spec, t, opt, e); err != nil {
		return nil, err
	}
	o.flag(e)
	return e, nil
}

// flag adds the flags that the log itself raises, whatever the policy.
func (o *OffPolicy) flag(e *ope.Evaluation) {
	if o.dropped > 0 {
		e.Flags = append(e.Flags, fmt.Sprintf("%d rows without an outcome are left out: right only if outcomes go missing whatever they would be", o.dropped))
	}
}

// Check reports what is wrong with a specification, without judging the policy.
func (o *OffPolicy) Check(spec string) error {
	_, err := o.target(spec)
	return err
}
