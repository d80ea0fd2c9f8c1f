package paper

import (
	"cmp"
	"context"
	"math"
	"slices"

	"hindsight/internal/certify"
	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/pkg/learner"
)

// modelName is part of what a draw depends on.
const modelName = "paper"

// cell is one point of an experiment, played once a seed.
type cell struct {
	label  string
	x      float64 // where it lies on the axis of its experiment
	rounds int
	env    func(seed uint64) *replay.Rounds
	delays string               // "": those that the environment is meant for
	window int64                // in rounds; 0: long enough that nothing is skipped
	tune   func(m *model.Model) // changes the default model; nil: leaves it
	regret []float64            // per seed, exact
	bound  []float64            // certified by measured drift; +Inf if there is none
	runs   []*replay.Result
}

// jobs returns the runs of cells.
func jobs(o Options, cells []*cell) []job {
	var out []job
	for _, c := range cells {
		c.runs = make([]*replay.Result, o.seeds())
		out = append(out, perSeed(o, c.rounds, c.runs, func(ctx context.Context, seed uint64) (*replay.Result, error) {
			return c.play(ctx, seed, o.plant)
		})...)
	}
	return out
}

// perSeed returns a job for each result, which it fills in by playing a seed.
func perSeed[T any](o Options, rounds int, results []T, play func(ctx context.Context, seed uint64) (T, error)) []job {
	all := make([]job, len(results))
	for k := range results {
		all[k] = job{rounds, func(ctx context.Context) (err error) {
			results[k], err = play(ctx, o.Seed+uint64(k))
			return err
		}}
	}
	return all
}

// played is the plan of cells, of which something is concluded when all figures per seed are there.
func played(o Options, cells []*cell, conclude func(f *Finding, cells []*cell)) plan {
	return plan{jobs(o, cells), func(f *Finding) {
		gather(cells)
		conclude(f, cells)
	}}
}

// play runs a cell with a seed.
func (c *cell) play(ctx context.Context, seed uint64, plant plant) (*replay.Result, error) {
	env := c.env(seed)
	window := loop.Window{Rounds: cmp.Or(c.window, int64(env.Len())+1)}
	m, files := replay.ModelFor(env, modelName, model.Learner{Kind: model.DAFA}, window)
	if c.tune != nil {
		c.tune(m)
		m.DefaultOrder()
		m.Resolve(env.Columns, len(env.Actions))
	}
	if err := replay.UsePolicies(m, env); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	d, err := delay.Parse(cmp.Or(c.delays, env.Delays), env.DelayOptions(seed))
	if err != nil {
		return nil, err
	}
	t := &replay.Trial{Rounds: env, Delays: d, Model: m, Files: files, Label: c.label, Seed: seed}
	if plant != nil {
		t.Change = func(l learner.Learner) learner.Learner { return plant(l, env) }
	}
	return t.Run(ctx, nil)
}

// gather fills in the figures per seed; it is called when all runs are done.
func gather(cells []*cell) {
	for _, c := range cells {
		for _, r := range c.runs {
			regret := math.NaN()
			if r.Regret != nil {
				regret = *r.Regret
			}
			c.regret = append(c.regret, regret)
			c.bound = append(c.bound, value(r.Certificate.MeasuredDrift))
		}
	}
}

func value(b *certify.Bound) float64 {
	if b == nil || b.Value == nil {
		return math.Inf(1)
	}
	return *b.Value
}

// delay returns the mean D/T over the seeds, as arrived and as released.
func (c *cell) delay() (raw, released float64) {
	for _, r := range c.runs {
		raw += r.Delays.Raw.Mean / float64(len(c.runs))
		released += r.Delays.Released.Mean / float64(len(c.runs))
	}
	return raw, released
}

// skipped returns the mean share of rounds skipped.
func (c *cell) skipped() (share float64) {
	for _, r := range c.runs {
		share += float64(r.Fates.Skipped) / float64(r.Rounds) / float64(len(c.runs))
	}
	return share
}

// uniform returns what uniform play regrets on the same rounds, by seed.
func (c *cell) uniform() (regret []float64) {
	for _, r := range c.runs {
		regret = append(regret, float64(c.rounds)*(*r.UniformLoss-*r.BestLoss))
	}
	return regret
}

// learns checks that regret is less than half of that of uniform play. No theorem says half,
// but what learns nothing, or the wrong thing, fails.
func (f *Finding) learns(what string, c *cell) {
	f.check(within(c.regret, scaled(c.uniform(), .5)), "%s: regret is below half of that of uniform play", what)
}

const learnsSomething = "mean regret is below half of that of uniform play, within two standard errors"

// within reports whether the mean of a is at most that of b, within two standard
// errors of the paired difference. A bound that is not there bounds nothing.
func within(a, b []float64) bool {
	e := estimate(minus(a, b))
	return !slices.Contains(b, math.Inf(1)) && e.Value <= 2*se(e)
}

func se(e replay.Estimate) float64 {
	if e.SE == nil {
		return 0
	}
	return *e.SE
}
