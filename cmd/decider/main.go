// Command decider decides contexts as they come, by topic and by request, and keeps
// learning from their outcomes. On the embedded log it is a whole system: log,
// joiner and request-reply in one process.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/service"
)

func main() { daemon.Main("decider", command) }

// config is all that the flags say.
type config struct {
	log, listen, model, seedFile string
	joiner                       bool
	retention                    time.Duration
}

func command(env *daemon.Env) *cobra.Command {
	var c config
	cmd := &cobra.Command{
		Use:   "decider",
		Short: "Decide contexts as they come and keep learning from their outcomes",
		Long: `Decide contexts as they come, by topic and by request, and keep learning from
their outcomes, which may be late, out of order, doubled or missing.

On the embedded log this is a whole system with nothing to install: the log lies in
a folder, the joiner runs inside, and requests are answered on loopback.`,
		Args: cobra.NoArgs,
		Example: `  decider
  decider --model shop.yaml --log embedded:/var/lib/hindsight
  HINDSIGHT_LOG=embedded:/tmp/trial decider`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), env) },
	}
	f := cmd.Flags()
	f.StringVar(&c.log, "log", engine.DefaultLog, "embedded:DIR, or mem: to try things without a trace")
	f.StringVar(&c.listen, "listen", "", "address of the embedded server (default 127.0.0.1:4222, or a free port if that is taken)")
	f.StringVar(&c.model, "model", "", "model file (default: takes any context that lists its actions)")
	f.StringVar(&c.seedFile, "seed-file", "", "the secret seed of the draws, made if absent (default: the file seed in the folder of the log)")
	f.BoolVar(&c.joiner, "joiner", true, "run the joiner in this process; --joiner=false: feedback-joiner runs it")
	f.DurationVar(&c.retention, "retention", 7*24*time.Hour, "how long a new log keeps its records")
	return cmd
}

func (c *config) run(ctx context.Context, env *daemon.Env) error {
	spec, err := engine.Parse(c.log)
	if err != nil {
		return daemon.Usagef("%v", err)
	}
	if c.listen != "" {
		if _, _, err := engine.ParseListen(c.listen); err != nil {
			return daemon.Usagef("%v", err)
		}
	}
	if c.retention < 0 {
		return daemon.Usagef("--retention %v: it must not be negative; 0 keeps everything", c.retention)
	}
	source, err := modelfile.Load(c.model)
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Options{Log: c.log, Listen: c.listen, Logger: env.Logger})
	if err != nil {
		return err
	}
	defer e.Close()
	seed, err := c.seed(spec)
	if err != nil {
		return err
	}
	if err := service.CreateTopics(ctx, e.Log, source.Name, 1, service.Retention{Age: c.retention}); err != nil {
		return err
	}
	system := service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: source.Name, Build: model.Epoch, Seed: seed,
		Partitions: 1, Owned: []int{0}, Owner: owner(), Logger: env.Logger}
	if c.joiner {
		system.Source = source
	}
	env.Logger.Info("starting", "model", source.Name, "version", source.Version, "log", c.log, "joiner", c.joiner)
	err = service.RunSystem(ctx, system, func() {
		env.Logger.Info("ready", "url", e.URL, "decide", source.Name+".decide", "outcome", source.Name+".outcome")
	})
	env.Logger.Info("stopped")
	return err
}

func (c *config) seed(spec engine.Spec) ([]byte, error) {
	path := c.seedFile
	if path == "" && spec.Dir == "" {
		dir, err := os.MkdirTemp("", "hindsight-seed-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, engine.SeedName)
	} else if path == "" {
		path = filepath.Join(spec.Dir, engine.SeedName)
	}
	return daemon.SeedFile(path)
}

// owner names this process for people who look at the log.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("decider@%s/%d", host, os.Getpid())
}
