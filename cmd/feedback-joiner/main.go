// Command feedback-joiner joins decisions with their outcomes and releases
// feedback in the order of the decisions, for a decider that was started with
// --joiner=false.
package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/explain"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/see"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/trace/otlp"
	"hindsight/internal/watch"
)

func main() { daemon.Main(program, command) }

type config struct {
	log, model, seedFile string
	acceptLoss           bool
	pendingMiB           int
	access               access.Flags
	admin                daemon.AdminFlag
}

func command(env *daemon.Env) *cobra.Command {
	c := config{access: access.New(env.Getenv), admin: daemon.AdminFlag{Getenv: env.Getenv}}
	cmd := &cobra.Command{
		Use:   "feedback-joiner",
		Short: "Join decisions with outcomes and release feedback in order",
		Long: `Join decisions with their outcomes and release feedback in the order of the
decisions. A decider runs this inside itself unless it is started with
--joiner=false; then start this on the same --log and --model. On NATS servers, and
on Kafka, several may be started: one works, the others stand by.`,
		Args: daemon.NoArguments,
		Example: `  decider --joiner=false --log embedded:./hindsight-data
  feedback-joiner --log embedded:./hindsight-data
  feedback-joiner --log nats://host:4222 --nats-user shop --nats-password-file shop.password \
    --model shop.yaml --seed-file shop.seed
  feedback-joiner --log kafka://host1:9092,host2:9092 --model shop.yaml --seed-file shop.seed`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return modelfile.Hold(cmd.Context(), env, c.run(cmd.Context(), env))
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.log, "log", "embedded:./hindsight-data", "the deciders' log: embedded:DIR, "+
		"nats://[USER:PASSWORD@]HOST[:PORT],… or kafka://HOST[:PORT],… (kafkas:// for TLS)")
	f.StringVar(&c.model, "model", "", "model file (default: takes any context that lists its actions)")
	f.StringVar(&c.seedFile, "seed-file", "", "the deciders' secret seed (default: the file seed in the folder of the "+
		"log, or ./hindsight.seed)")
	f.IntVar(&c.pendingMiB, "pending-mib", service.DefaultMaxBytes>>20, "memory in MiB for decisions that wait for "+
		"their outcomes; beyond it the oldest are closed without outcome")
	daemon.Bounds{"pending-mib": {1, service.MaxPendingMiB}}.Set(f)
	f.BoolVar(&c.acceptLoss, "accept-loss", false, "continue without records that retention dropped before they were "+
		"read; the log names them. Without this flag the command refuses to start")
	c.access.Register(f)
	c.admin.Add(f)
	return cmd
}

func (c *config) run(ctx context.Context, env *daemon.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.admin.Check(); err != nil {
		return err
	}
	source, err := modelfile.Load(c.model)
	if err != nil {
		return err
	}
	health := watch.NewHealth(watch.RoleJoiner)
	control := &service.Control{Reload: modelfile.Reload(env.Logger, c.model), Rejudge: modelfile.Rejudge(c.model)}
	sight := see.New(see.Options{Program: program, Version: daemon.Version(), Model: source.Name,
		Health: health, Control: control})
	admin, err := c.admin.Open(env.Logger, daemon.Probes{Alive: health.Alive, Ready: health.Ready},
		append(sight.Pages(), daemon.Page{Path: "/mode", Answer: control.Mode, Post: control.SwitchMode(nil)},
			daemon.Page{Path: "/model", Post: control.RenewModel(nil)},
			daemon.Page{Path: "/guard", Answer: control.Guard},
			daemon.Page{Path: "/candidates", Answer: control.Candidates, Post: control.JudgeOthers(nil)})...)
	if err != nil {
		return err
	}
	defer admin.Close()
	metrics := watch.NewMetrics(admin.Registry, health)
	sight.Watch(ctx, admin.Registry, metrics.Scope())
	tracer, flush, err := otlp.Open(program, daemon.Version(), env.Getenv, env.Logger)
	if err != nil {
		return err
	}
	defer flush()
	p, err := c.open(ctx, env)
	if err != nil {
		return err
	}
	defer p.close()
	seed, err := daemon.SeedOf(cmp.Or(c.seedFile, p.seedFile),
		func() (bool, error) { return topics.Begun(ctx, p.log, source.Name) })
	if err != nil {
		return err
	}
	sight.Explain(explain.Config{Log: p.log, Name: source.Name, Seed: seed, Build: model.Epoch})
	partitions, err := topics.Await(ctx, p.log, source.Name, env.Logger)
	if err != nil {
		return err
	}
	encoding, err := topics.Encoding(ctx, p.log, source.Name, "")
	if err != nil {
		return err
	}
	modelfile.Announce(env.Logger, source)
	owner := daemon.Owner(program)
	sharing, err := p.sharing(ctx, source.Name, owner)
	if err != nil {
		return err
	}
	return service.RunSharedJoiner(ctx, sharing, service.SystemConfig{
		Log: p.log, Source: source, Build: model.Epoch, Seed: seed, Partitions: partitions, Encoding: encoding,
		PendingBytes: c.pendingMiB << 20, AcceptLoss: c.acceptLoss, Owner: owner, Logger: env.Logger, Metrics: metrics,
		Health: health, Control: control, Trace: tracer,
	}, func() { env.Logger.Info("ready", "model", source.Name, "log", access.Show(c.log)) })
}
