// Command replayer re-injects logs and built-in environments with adversarial delays, backtests policies offline with
// the code that runs live, and verifies what a live system did from its logs.
package main

import (
	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
)

func main() { daemon.Main("replayer", command) }

func command(env *daemon.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replayer",
		Short: "Re-inject logs with delays, backtest policies, verify what was decided",
		Args:  daemon.NoArguments,
		Example: `  replayer inject                                  # the whole loop, on a built-in environment
  replayer backtest --delays none --delays exp:50  # the same loop offline, at full speed
  replayer teach --data FILE --model MODEL --log embedded:DIR  # a live system that begins with what a log says
  replayer convert FILE                            # what is in a log: every line accounted for
  replayer backtest --data FILE --report out.html  # what a log says of policies and learners, as a page
  replayer window --data FILE                      # how long to wait for outcomes
  replayer worst                                   # the delays that hurt a learner most
  replayer fit --data FILE --fit-rows 2000         # a class of functions for the Hedge oracle
  replayer tail --log embedded:DIR                 # follow a live system
  replayer verify --log embedded:DIR               # recompute everything that a log says was decided
  replayer move --log embedded:DIR --to nats://HOST  # a log to servers, verified on both sides
  replayer explain ID --log embedded:DIR           # one round's whole life, recomputed
  replayer paper --quick                           # the paper's claims, tried
  replayer list                                    # learners, oracles, environments, delays`,
		RunE: func(*cobra.Command, []string) error { return daemon.Usagef("which command?") },
	}
	cmd.SuggestionsMinimumDistance = 2
	verbs := []*cobra.Command{injectCommand(env), teachCommand(env), daemon.Batch(backtestCommand(env)),
		verifyCommand(env), moveCommand(env),
		explainCommand(env), tailCommand(env), daemon.Batch(windowCommand(env)), daemon.Batch(worstCommand(env)),
		daemon.Batch(fitCommand(env)), daemon.Batch(paperCommand(env)), listCommand(env),
		daemon.Batch(convertCommand(env))}
	for _, verb := range verbs {
		cmd.AddCommand(withGroups(verb))
	}
	return cmd
}
