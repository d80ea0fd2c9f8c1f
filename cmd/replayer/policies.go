package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"hindsight/internal/cores"
	"hindsight/internal/daemon"
	"hindsight/internal/judge"
	"hindsight/internal/loop"
	"hindsight/internal/ope"
	"hindsight/internal/replay"
)

// policies holds the flags by which policies are judged on a log with propensities.
type policies struct {
	specs     []string
	lambda    string
	crossfit  int
	bootstrap int
	minEvents int
	trained   trained
}

func (p *policies) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&p.specs, "policy", nil, "policy to judge on a log with propensities: logging, uniform, "+
		"baseline, always:ACTION, hash:FEATURE, eps:E,POLICY, learner:LEARNER, model:FILE, snapshot:N, table:FILE; "+
		"may be repeated (default logging, uniform, baseline where the log names some, and the learners that are "+
		"played; with --report or --csv the first action, too, where rounds allow it; given without --learner, only "+
		"learners that it names are played)")
	f.StringVar(&p.lambda, "lambda", strconv.Itoa(ope.DefaultLambda),
		"λ of clipped IPS, Switch-DR and DRos: a number, inf, or auto (of 1, 2, 5, … 1000, inf the one with the least "+
			"estimated error, for each policy and estimator)")
	f.IntVar(&p.crossfit, "crossfit", ope.DefaultFolds, "folds for cross-fitting the reward model of DM, DR and "+
		"their kin; 0: means of all rows, without features")
	f.IntVar(&p.bootstrap, "bootstrap", 1000, "bootstrap samples per policy; 0: none")
	f.IntVar(&p.minEvents, "min-events", 1000, "warn if a log has fewer rows")
	daemon.Bounds{"crossfit": {0, math.MaxInt16}, "bootstrap": {0, 1e5}, "min-events": {0, maxRounds}}.Set(f)
	p.trained.flags(f)
}

// options returns the options of the estimators.
func (p *policies) options(o ope.Options, seed uint64) (ope.Options, error) {
	var err error
	switch p.lambda {
	case "auto":
		o.Lambda = 0
	default:
		if o.Lambda, err = strconv.ParseFloat(p.lambda, 64); err != nil || !(o.Lambda > 0) {
			return o, daemon.Usagef("--lambda %q: expected a number above 0, inf, or auto", p.lambda)
		}
	}
	if p.crossfit == 1 {
		return o, daemon.Usagef("--crossfit %d: expected 0 or 2 to %d folds", p.crossfit, math.MaxInt16)
	}
	o.Bootstrap, o.Seed, o.MinRows = p.bootstrap, seed, p.minEvents
	o.Model.Folds, o.Model.Seed = p.crossfit, seed
	return o, nil
}

// judge judges the policies on the log that env shows, in parallel over the cores; nil
// for data without propensities, where none is asked for.
func (b *backtest) judge(ctx context.Context, env *replay.Rounds) (*judge.Evaluations, error) {
	p := &b.policies
	if !env.HasPropensities() && len(p.specs) == 0 {
		return nil, nil
	}
	specs := p.specs
	if len(specs) == 0 {
		specs = []string{"logging", "uniform"}
		if env.HasBaseline() {
			specs = append(specs, "baseline")
		}
		for _, l := range b.players() {
			specs = append(specs, l.target())
		}
	}
	if p.trained.log == "" && isTopics(b.source.data) {
		p.trained.log = b.source.data
	}
	defer p.trained.close()
	if len(b.rewards) < 2 {
		return b.judgeBy(ctx, env, specs, b.named())
	}
	out := &judge.Evaluations{}
	for _, formula := range b.rewards {
		s := b.source
		s.reward = formula
		e, err := b.judgeBy(ctx, env, specs, s)
		if e != nil {
			for _, p := range e.Policies {
				p.Reward = formula
				p.Policy += ", " + formula
			}
			if out.Policies = append(out.Policies, e.Policies...); out.Settings.Rows == 0 {
				out.Settings = e.Settings
			}
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// judgeBy judges policies by one reward, that of the source.
func (b *backtest) judgeBy(ctx context.Context, env *replay.Rounds, specs []string,
	source source) (*judge.Evaluations, error) {
	p := &b.policies
	if env.NamesOutcomes() {
		named, err := source.policy(env, "")
		if err != nil {
			return nil, err
		}
		env = env.For(named.model)
	}
	off, err := judge.NewOffPolicy(env, func(kind, spec string) (policy *judge.Progressive, err error) {
		if kind == "snapshot" {
			policy, err = p.trained.policy(ctx, env, spec)
		} else {
			policy, err = b.progressive(env, source, kind, spec)
		}
		if err == nil {
			policy.StopWhen(ctx.Err)
		}
		return policy, err
	})
	if err != nil && len(p.specs) == 0 { // nobody named one
		return nil, fmt.Errorf("%s: %w", env.Name, err)
	} else if err != nil {
		return nil, daemon.Usagef("--policy: %v", err)
	}
	if b.journal != nil {
		off.KeepIn(b.journal)
	}
	if len(p.specs) == 0 && b.showing.on() && len(env.Actions) > 0 {
		if first := "always:" + env.Actions[0]; off.Check(first) == nil { // a usual baseline
			specs = append(specs, first)
		}
	}
	o, err := p.options(off.Options(), b.source.seed)
	if err != nil {
		return nil, err
	}
	return b.judgeAll(ctx, off, specs, o)
}

// blame returns the error of a policy. If no flag names the policy, it is that of its own flag.
func (p *policies) blame(spec string, err error) error {
	var made *daemon.ExitError
	if errors.As(err, &made) && !slices.Contains(p.specs, spec) {
		return made
	}
	return daemon.Usagef("--policy: %v", err)
}

// judgeAll judges the policies that the journal does not have. Interrupted, it returns
// those that are judged, and the context's error.
func (b *backtest) judgeAll(ctx context.Context, off *judge.OffPolicy, specs []string,
	o ope.Options) (*judge.Evaluations, error) {
	out := &judge.Evaluations{Settings: off.Settings(o), Policies: make([]*ope.Evaluation, len(specs))}
	before := 0
	for i, spec := range specs {
		e, err := off.Kept(spec, o)
		if errors.Is(err, replay.ErrDamaged) {
			return nil, err
		}
		if err != nil && ctx.Err() == nil {
			return nil, b.policies.blame(spec, err)
		}
		if out.Policies[i] = e; e != nil {
			before++
		}
	}
	if before > 0 {
		fmt.Fprintf(b.env.Stderr, "%d of %d policies were judged before\n", before, len(specs))
	}
	bar := newProgress(b.env.Stderr, int64((len(specs)-before)*out.Settings.Rows), "policies")
	err := cores.Each(ctx, len(specs), func(_ context.Context, i int) (err error) {
		if out.Policies[i] == nil {
			out.Policies[i], err = off.Evaluate(specs[i], o)
			bar.add(int64(out.Settings.Rows))
		}
		return err
	})
	bar.finish()
	for i, e := range out.Policies {
		kind, _, _ := strings.Cut(judge.Mixed(specs[i]), ":")
		if e != nil && kind == "snapshot" && b.policies.trained.log == b.source.data {
			e.Flags = append(e.Flags, "it learned from rows of this very log: on those the estimates flatter it; "+
				"judge it on rows that came later")
		}
	}
	out.Policies = slices.DeleteFunc(out.Policies, func(e *ope.Evaluation) bool { return e == nil })
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(b.env.Stderr, "%d of %d policies are judged%s\n", len(out.Policies), len(specs), hint(b.journal))
	}
	return out, err
}

// progressive returns a learner, or that of a model file, as a policy to be judged.
func (b *backtest) progressive(env *replay.Rounds, s source, kind, spec string) (*judge.Progressive, error) {
	if kind == "model" {
		s.model, spec = spec, ""
	}
	p, err := s.policy(env, spec)
	if err != nil {
		return nil, err
	}
	l, err := p.model.Build(p.files)
	if err != nil {
		return nil, err
	}
	ep := loop.Epoch{Number: 1, Rules: p.model.Rules(), Learner: l}
	policy := judge.NewProgressive(ep, p.model.Name, replay.SecretSeed(s.seed), b.encoded(env, 0, p.model))
	policy.MadeOf(judge.ModelDigest(p.model, p.files))
	return policy, nil
}
