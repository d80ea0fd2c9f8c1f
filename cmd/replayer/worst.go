package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/delay"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/report"
	"hindsight/internal/whole"
)

// worst holds the flags of the search for the worst delays.
type worst struct {
	env     *daemon.Env
	source  source
	learner string
	total   int64
	max     int64
	steps   int
	batch   int
	random  int
	draws   int
	out     string
}

func worstCommand(env *daemon.Env) *cobra.Command {
	w := &worst{env: env}
	cmd := &cobra.Command{
		Use:   "worst",
		Short: "Search the delays that hurt a learner most",
		Long: `Search the delays that hurt a learner most.

Among all sequences of delays with a given total and a given longest delay, a seeded
local search looks for one under which the learner loses most. It starts from random
sequences and from known plans (all at the front, in bursts, at the heads of lines), and
changes blocks of the worst so far. The result is written to a file for --delays
recorded:FILE, and compared with random sequences of the same total and maximum, on
draws that the search did not see. The true worst case is at least as bad.`,
		Args: daemon.NoArguments,
		Example: `  replayer worst
  replayer worst --env cyc:100,20 --learner exp4dale --order arrival --rounds 1000
  replayer worst --total 2000 --max 100 --steps 300
  replayer worst --data pendigits.csv --rounds 3000 --model m.yaml --out worst.txt
  replayer backtest --rounds 2000 --delays recorded:worst.txt --delays none   # play it again`,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd.Context()) },
	}
	f := cmd.Flags()
	w.source.flags(env, f, new(logAccess))
	w.source.runFlags(f, true)
	w.source.learnerFlags(f, &w.learner, nil)
	f.Int64Var(&w.total, "total", 0, "D, the sum of all delays, in later rounds (default that of the log's own "+
		"delays, else 20 a round)")
	f.Int64Var(&w.max, "max", 0, "the longest delay (default that of the log's own, else 100, or a tenth of the "+
		"rounds if that is less)")
	f.IntVar(&w.steps, "steps", 100, "steps of the search")
	f.IntVar(&w.batch, "batch", 4, "sequences per step, in parallel over the cores; the result does not depend on "+
		"the number of cores")
	f.IntVar(&w.random, "random", 20, "random sequences, to start from and to compare with")
	f.IntVar(&w.draws, "draws", 3, "runs of a sequence, each with draws of its own, that the search goes by")
	daemon.Bounds{"rounds": {0, 1e6}, "total": {0, 1 << 53}, "max": {0, 1 << 40}, "steps": {0, 1e6}, "batch": {1, 1e4},
		"random": {1, 1e4}, "draws": {1, 1e4}}.Set(f)
	f.StringVar(&w.out, "out", "worst.txt", "file for the delays that were found")
	return cmd
}

// defaultWorstRounds is the length of an environment that has none of its own: each sequence is a run.
const defaultWorstRounds = 2000

func (w *worst) run(ctx context.Context) error {
	if w.source.data == "" && w.source.rounds == 0 {
		w.source.rounds = defaultWorstRounds
	}
	stress, err := w.stress(ctx)
	if err != nil {
		return err
	}
	search := stress.search
	if err := search.Validate(); err != nil {
		return daemon.Usagef("--total, --max, --steps, --batch, --random: %v", err)
	}
	stress.bar = newProgress(w.env.Stderr, int64(search.Rounds)*int64(search.Candidates()*w.draws+3*replay.FreshDraws),
		"worst")
	found, err := search.Search(ctx)
	if err != nil && (found == nil || !errors.Is(err, context.Canceled)) {
		stress.bar.finish()
		return err
	}
	if werr := whole.Write(w.out, func(f io.Writer) error { return found.Found.Sequence.Write(f) }); werr != nil {
		return werr
	}
	costs, ferr := stress.report(ctx, found)
	stress.bar.finish()
	if err == nil {
		err = ferr
	}
	if costs == nil {
		fmt.Fprintf(w.env.Stderr, "the worst so far, %s %.4g in the draws of the search, is in %s\n", stress.what,
			found.Found.Harm, w.out)
		return err
	}
	costs.File = w.out
	return tell(w.env, w.source.json, costs, report.Worst(costs), narrow)
}

// stress is a learner that sequences of delays are tried on.
type stress struct {
	trial  replay.Trial // without delays
	search *delay.Worst
	draws  int
	bar    *progress

	mu   sync.Mutex
	what string // harm is
}

func (w *worst) stress(ctx context.Context) (*stress, error) {
	env, err := w.source.open(ctx)
	if err != nil {
		return nil, err
	}
	p, err := w.source.policy(env, w.learner)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(w.env.Stderr, p.model.Cost())
	n := env.Len()
	b := delay.Budget{Rounds: n, Total: w.total, Max: w.max}
	if err := w.complete(env, p.model, &b); err != nil {
		return nil, err
	}
	s := &stress{trial: replay.Trial{Rounds: env.For(p.model), Model: p.model, Files: p.files,
		Label: p.label, Seed: w.source.seed}, draws: w.draws}
	s.search = &delay.Worst{Budget: b, Steps: w.steps, Batch: w.batch, Random: w.random, Seed: w.source.seed,
		Harm: s.harm}
	return s, nil
}

// complete fills in what of a budget is not given: that of the delays that a log records,
// else 20 a round and at most 100.
func (w *worst) complete(env *replay.Rounds, m *model.Model, b *delay.Budget) error {
	if env.RecordsDelays() {
		d, err := w.source.delays(env, m, "recorded")
		if err != nil {
			return err
		}
		own := delay.BudgetOf(d, b.Rounds)
		b.Total, b.Max = cmp.Or(b.Total, own.Total), cmp.Or(b.Max, own.Max)
	}
	if b.Max == 0 {
		b.Max = max(1, min(100, int64(b.Rounds)/10))
	}
	if b.Total == 0 {
		b.Total = max(1, min(20*int64(b.Rounds), b.Most()/2))
	}
	return nil
}

// play runs the learner under delays with the draws of a seed.
func (s *stress) play(ctx context.Context, d *delay.Delays, seed uint64) (*replay.Result, error) {
	t := s.trial
	t.Delays, t.Seed = d, seed
	r, err := t.Run(ctx, nil)
	if err == nil {
		s.bar.add(int64(t.Rounds.Len()))
	}
	return r, err
}

// harm is the mean harm of a sequence over the draws of the search.
func (s *stress) harm(ctx context.Context, seq delay.Sequence) (float64, error) {
	sum := 0.0
	for i := range s.draws {
		r, err := s.play(ctx, seq.Delays(), s.trial.Seed+uint64(i))
		if err != nil {
			return 0, err
		}
		value, what := r.Harm()
		sum += value
		s.mu.Lock()
		s.what = what
		s.mu.Unlock()
	}
	return sum / float64(s.draws), nil
}

// report plays what was found, random sequences and no delay with fresh draws.
func (s *stress) report(ctx context.Context, found *delay.WorstFound) (*replay.WorstReport, error) {
	none, err := delay.Parse("none", delay.Options{Seed: s.trial.Seed})
	if err != nil {
		return nil, err
	}
	r := replay.NewWorstReport(s.search, found, s.trial.Rounds.Name, s.trial.Label,
		model.FormatWindow(s.trial.Model.Window), s.what, s.draws)
	for i := range replay.FreshDraws {
		seed := s.trial.Seed + uint64(s.draws+i)
		for _, c := range []struct {
			delays *delay.Delays
			into   *replay.WorstRow
		}{{none, r.None}, {found.Random[i%len(found.Random)].Sequence.Delays(), r.Random},
			{found.Found.Sequence.Delays(), r.Found}} {
			result, err := s.play(ctx, c.delays, seed)
			if err != nil {
				return nil, err
			}
			c.into.Add(result)
		}
	}
	return r, nil
}
