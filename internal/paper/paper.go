// Package paper tries what the paper claims, and what is derived here: each theorem, corollary and lower bound of
// "Regret Bounds for Adversarial Contextual Bandits with General Function Approximation and Delayed Feedback" (NeurIPS
// 2025) on environments that know the truth, with the code that runs live, beside what is predicted.
//
// An upper bound is a promise for the worst case: a run that stays below it agrees with it, and no number of runs
// proves it. What is seen beyond the theorems is said to be an observation.
package paper

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"hindsight/internal/chart"
	"hindsight/internal/cores"
	"hindsight/internal/replay"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// Options say how much is tried.
type Options struct {
	Quick bool   // small sizes and few seeds: a look, in under two minutes
	Seeds int    // 0: 20, or 5 if Quick
	Seed  uint64 // of the first run; the others follow

	// What tests put in place of the algorithms, for claims to notice; nil: nothing.
	plant   plant
	mistake func(h *oracle.Hedge) weighted // of the oracle where it is played alone
	few     bool                           // of many delays and sizes play some
}

// plant makes a wrong algorithm of the true one.
type plant func(l learner.Learner, env *replay.Rounds) learner.Learner

func (o Options) seeds() int {
	return cmp.Or(o.Seeds, size(o, 20, 5))
}

// size returns full, or quick if the look is quick.
func size[T any](o Options, full, quick T) T {
	if o.Quick {
		return quick
	}
	return full
}

// some returns all delays of a claim, or three of them where tests ask for few.
func some[T any](o Options, all []T) []T {
	if !o.few {
		return all
	}
	return []T{all[0], all[1], all[len(all)/2]}
}

// Claim is a statement of the paper that can be tried.
type Claim struct {
	Name   string // as --claim names it
	Source string // where the paper says it, by its labels
	Says   string // in one sentence
	plan   func(o Options) plan
}

// plan is how a claim is tried: jobs that are independent of each other, and what is concluded when all are done.
type plan struct {
	jobs     []job
	conclude func(f *Finding)
}

type job struct {
	rounds int // what it costs, for progress bars
	run    func(ctx context.Context) error
}

// Finding is what was seen.
type Finding struct {
	Claim  string     `json:"claim"`
	Source string     `json:"source"`
	Says   string     `json:"says"`
	Tables []Table    `json:"tables"`
	Fits   []slopeFit `json:"fits"`
	Checks []Check    `json:"checks"`
	// Checked says what the checks are about, for people.
	Checked string    `json:"checked,omitempty"`
	Seen    string    `json:"seen"` // in words, with the figures
	Charts  []picture `json:"-"`
}

// Check is one yes or no.
type Check struct {
	What  string `json:"what"`
	Holds bool   `json:"holds"`
}

// picture is a chart with the name of its file.
type picture struct {
	Name  string // without extension
	Chart chart.Chart
}

func (f *Finding) check(holds bool, format string, args ...any) {
	f.Checks = append(f.Checks, Check{fmt.Sprintf(format, args...), holds})
}

// Holds reports whether all checks of a finding hold.
func (f *Finding) Holds() bool {
	return !slices.ContainsFunc(f.Checks, func(c Check) bool { return !c.Holds })
}

// Claims lists everything that can be tried, in the order of the paper, and then what is derived here.
func Claims() []Claim {
	return []Claim{
		exp4Claim, blocksClaim, weightingClaim, unstableClaim, dafaClaim, adversariesClaim, stabilityClaim,
		hypercubeClaim,
		orderClaim, dmaxClaim, oraclesClaim,
		additiveClaim, stagesClaim, delaysClaim,
	}
}

// Work returns how many rounds trying some claims takes.
func Work(claims []Claim, o Options) (rounds int64) {
	for _, c := range claims {
		for _, j := range c.plan(o).jobs {
			rounds += int64(j.rounds)
		}
	}
	return rounds
}

// Try tries claims one after the other, the jobs of each in parallel over the cores. done is called with the rounds of
// each job that ended, from several goroutines; found, from one, with each finding.
func Try(ctx context.Context, claims []Claim, o Options, done func(rounds int), found func(*Finding) error) error {
	for _, c := range claims {
		p := c.plan(o)
		err := cores.Each(ctx, len(p.jobs), func(ctx context.Context, i int) error {
			if err := p.jobs[i].run(ctx); err != nil {
				return err
			}
			done(p.jobs[i].rounds)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		f := &Finding{Claim: c.Name, Source: c.Source, Says: c.Says}
		p.conclude(f)
		if err := found(f); err != nil {
			return err
		}
	}
	return nil
}

// estimate returns the mean of values with its standard error.
func estimate(values []float64) replay.Estimate { return replay.NewEstimate(values) }
