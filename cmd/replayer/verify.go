package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/verify"
)

type verification struct {
	system
	json bool
	skew time.Duration
}

func verifyCommand(env *daemon.Env) *cobra.Command {
	v := &verification{system: system{env: env}}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Recompute everything that a log says was decided, and name the first difference",
		Long: `Recompute every propensity, draw, fate and snapshot from the logs alone, and name
the first difference. It needs the secret seed, and works beside a running system. It
does not change a folder, and drops no old records.

A record counts as too old if its inputs are no longer in the log, or may have been lost
in a power cut. For a decision whose learner's state is gone, its probabilities, the draw
and the rules of its model are still checked.

Exit code: 0 identical, 1 different, 2 usage, 3 identical as far as it could be
checked, and some records are too old for that, 4 could not run.`,
		Args:    daemon.NoArguments,
		Example: "  replayer verify --log embedded:DIR\n  replayer verify --log embedded:./hindsight-data --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := v.run(cmd.Context())
			if _, ok := err.(*daemon.ExitError); err != nil && !ok && cmd.Context().Err() == nil {
				return &daemon.ExitError{Code: verify.CouldNotRun, Err: err}
			}
			return err
		},
	}
	f := cmd.Flags()
	v.flags(f, "log to verify", true)
	f.DurationVar(&v.skew, "clock-skew", 10*time.Second, "by how much clocks of the log's servers differ at most;\na "+
		"larger one finds fewer outcomes that were left out")
	daemon.Bounds{"clock-skew": {0, 48 * float64(time.Hour)}}.Set(f)
	f.BoolVar(&v.json, "json", false, "one JSON object on standard output")
	return cmd
}

func (v *verification) run(ctx context.Context) error {
	e, seed, err := v.openRecorded(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	return v.verify(ctx, e, seed)
}

func (v *verification) verify(ctx context.Context, e *engine.Engine, seed []byte) error {
	if e.ClockSkew == 0 {
		v.skew = 0
	}
	var bar *progress
	var at func(done int)
	report, err := verify.Run(ctx, verify.Config{Log: e.Log, Name: v.name, Seed: seed, Build: model.Epoch, Skew: v.skew,
		Progress: func(done, total int64) {
			if bar == nil {
				bar = newProgress(v.env.Stderr, total, "verify")
				at = bar.steps()
			}
			at(int(done))
		}})
	if bar != nil {
		bar.finish()
	}
	if err != nil {
		return err
	}
	if err := show(v.env, v.json, report); err != nil {
		return err
	}
	if code := report.ExitCode(); code != 0 {
		return &daemon.ExitError{Code: code}
	}
	return nil
}
