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
	"hindsight/internal/servers"
	"hindsight/internal/service"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/lease"
	"hindsight/pkg/stream/nats"
)

func main() { daemon.Main("feedback-joiner", command) }

type config struct {
	log, model, seedFile string
	nats                 servers.Flags
	admin                daemon.AdminFlag
}

func command(env *daemon.Env) *cobra.Command {
	var c config
	cmd := &cobra.Command{
		Use:   "feedback-joiner",
		Short: "Join decisions with outcomes and release feedback in order",
		Long: `Join decisions with their outcomes and release feedback in the order of the
decisions. A decider runs this inside itself unless it is started with
--joiner=false; then start this on the same --log and --model. On NATS servers
several may be started: one works, the others stand by.`,
		Args: cobra.NoArgs,
		Example: `  decider --joiner=false --log embedded:./hindsight-data
  feedback-joiner --log embedded:./hindsight-data
  feedback-joiner --log nats://user:password@host:4222 --model shop.yaml --seed-file shop.seed`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), env) },
	}
	f := cmd.Flags()
	f.StringVar(&c.log, "log", "embedded:./hindsight-data", "the decider's log: embedded:DIR or nats://[USER:PASSWORD@]HOST[:PORT],…")
	f.StringVar(&c.model, "model", "", "model file (default: takes any context that lists its actions)")
	f.StringVar(&c.seedFile, "seed-file", "", "the deciders' secret seed (default: the file seed in the folder of the log, or ./hindsight.seed)")
	c.nats.Register(f)
	c.admin.Add(f)
	return cmd
}

func (c *config) run(ctx context.Context, env *daemon.Env) error {
	dir, folder := strings.CutPrefix(c.log, "embedded:")
	switch {
	case servers.Is(c.log):
		if err := servers.Check(c.log); err != nil {
			return daemon.Usagef("%v", err)
		}
	case !folder || dir == "":
		return daemon.Usagef("--log %q: expected embedded:DIR, the folder of a running decider, or nats://HOST", c.log)
	}
	if err := c.admin.Check(); err != nil {
		return err
	}
	source, err := modelfile.Load(c.model)
	if err != nil {
		return err
	}
	health := service.NewHealth(service.RoleJoiner)
	admin, err := c.admin.Open(env.Logger, daemon.Probes{Alive: health.Alive, Ready: health.Ready})
	if err != nil {
		return err
	}
	defer admin.Close()
	client, err := c.open(dir, env)
	if err != nil {
		return err
	}
	defer client.Close()
	if c.seedFile == "" && folder {
		c.seedFile = filepath.Join(dir, "seed")
	} else if c.seedFile == "" {
		c.seedFile = servers.SeedFile
	}
	seed, err := daemon.SeedFile(c.seedFile)
	if err != nil {
		return err
	}
	partitions, err := service.AwaitTopics(ctx, client.Log(), source.Name, env.Logger)
	if err != nil {
		return err
	}
	owner := owner()
	leases := lease.NewKeeper(nil, owner) // in a folder the fence alone keeps two apart
	if !folder {
		store, err := client.Leases(ctx, service.LeaseBucket(source.Name), service.LeaseTTL)
		if err != nil {
			return err
		}
		leases = lease.NewKeeper(store, owner)
	}
	return service.RunLeasedJoiner(ctx, leases, service.JoinerConfig{
		Log: client.Log(), Source: *source, Build: model.Epoch, SeedHash: loop.SeedHash(seed), Partitions: partitions,
		MaxPending: service.DefaultMaxPending, Dedup: service.DefaultDedup, MarkEvery: service.DefaultMarkEvery,
		Owner: owner, Logger: env.Logger, Metrics: service.NewMetrics(admin.Registry, health), Health: health,
	}, func() { env.Logger.Info("ready", "model", source.Name, "log", servers.Show(c.log)) })
}

// open connects to the log, in a decider's folder or on servers.
func (c *config) open(dir string, env *daemon.Env) (*nats.Client, error) {
	if servers.Is(c.log) {
		return c.nats.Dial(c.log, "feedback-joiner", env.Logger)
	}
	client, err := attach.Dial(dir, "feedback-joiner", nats.Options{})
	if errors.Is(err, attach.ErrNotRunning) {
		return nil, fmt.Errorf("%w; start it with: decider --joiner=false --log %s", err, c.log)
	}
	return client, err
}

// owner names this process for people who look at the log.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("feedback-joiner@%s/%d", host, os.Getpid())
}
