package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/explain"
	"hindsight/internal/model"
)

type explained struct {
	system
	json bool
	hide bool
}

func explainCommand(env *daemon.Env) *cobra.Command {
	x := &explained{system: system{env: env}}
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Explain one round: its context, the decision and why, its outcome, and what was learned",
		Long: `Explain the round with this id from the logs: its context, the action that was drawn,
its probability and the reason for it (expected losses, γ, μ), the feedback that the
model had learned by then, the outcomes, the fate of the round, and how learning it
changed the predictions. The same code that decided and learned recomputes the round
from the last snapshot before it; "identical" means that the result equals the record
in the log, bit for bit.

It needs the secret seed, and works beside a running system. A decider's page shows
the same, without the context, at /explain?id=ID of its admin port.

Exit code: 0 printed, 1 no such round or the log cannot be read, 2 usage.`,
		Args: daemon.OneArgument("id of a round", "r-0-17"),
		Example: "  replayer explain r-0-17\n  replayer explain 8f3a --log embedded:DIR --json\n  replayer explain " +
			"8f3a --log nats://user:password@host:4222 --name shop --seed-file shop.seed",
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	x.flags(f, "log of the round", true)
	f.BoolVar(&x.json, "json", false, "one JSON object on standard output")
	f.BoolVar(&x.hide, "no-features", false, "leave out the context")
	return cmd
}

func (x *explained) run(ctx context.Context, id string) error {
	e, seed, err := x.openRecorded(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	told, err := explain.Round(ctx, explain.Config{Log: e.Log, Name: x.name, Seed: seed, Build: model.Epoch,
		Features: !x.hide}, id)
	if errors.Is(err, explain.ErrNotFound) {
		return fmt.Errorf("%w; rounds are named by the id of their context, or by that in the reply", err)
	}
	if err != nil {
		return err
	}
	return show(x.env, x.json, told)
}
