// Command feedback-joiner joins decisions with their outcomes and releases
// feedback in the order of the decisions, for a decider that was started with
// --joiner=false.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

func main() { daemon.Main("feedback-joiner", command) }

type config struct{ log, model, seedFile string }

func command(env *daemon.Env) *cobra.Command {
	var c config
	cmd := &cobra.Command{
		Use:   "feedback-joiner",
		Short: "Join decisions with outcomes and release feedback in order",
		Long: `Join decisions with their outcomes and release feedback in the order of the
decisions. A decider runs this inside itself unless it is started with
--joiner=false; then start this on the same --log and --model.`,
		Args:    cobra.NoArgs,
		Example: "  decider --joiner=false --log embedded:./hindsight-data\n  feedback-joiner --log embedded:./hindsight-data",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), env) },
	}
	f := cmd.Flags()
	f.StringVar(&c.log, "log", "embedded:./hindsight-data", "the decider's log: embedded:DIR")
	f.StringVar(&c.model, "model", "", "model file (default: takes any context that lists its actions)")
	f.StringVar(&c.seedFile, "seed-file", "", "the secret seed (default: the file seed in the folder of the log)")
	return cmd
}

func (c *config) run(ctx context.Context, env *daemon.Env) error {
	dir, ok := strings.CutPrefix(c.log, "embedded:")
	if !ok || dir == "" {
		return daemon.Usagef("--log %q: expected embedded:DIR, the folder of a running decider", c.log)
	}
	source, err := modelfile.Load(c.model)
	if err != nil {
		return err
	}
	client, err := attach.Dial(dir, "feedback-joiner", nats.Options{})
	if errors.Is(err, attach.ErrNotRunning) {
		return fmt.Errorf("%w; start it with: decider --joiner=false --log %s", err, c.log)
	}
	if err != nil {
		return err
	}
	defer client.Close()
	if c.seedFile == "" {
		c.seedFile = filepath.Join(dir, "seed")
	}
	seed, err := daemon.SeedFile(c.seedFile)
	if err != nil {
		return err
	}
	partitions, err := client.Log().Partitions(ctx, service.TopicsOf(source.Name).Decisions)
	if err != nil {
		return err
	}
	return service.RunJoiner(ctx, service.JoinerConfig{
		Log: client.Log(), Source: *source, Build: model.Epoch, SeedHash: loop.SeedHash(seed), Partitions: partitions,
		MaxPending: service.DefaultMaxPending, Dedup: service.DefaultDedup, MarkEvery: service.DefaultMarkEvery,
		Owner: fmt.Sprintf("feedback-joiner/%d", os.Getpid()), Logger: env.Logger,
	}, func() { env.Logger.Info("ready", "model", source.Name, "log", c.log) })
}
