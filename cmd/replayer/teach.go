package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/follow"
	"hindsight/internal/inject"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/verify"
	"hindsight/pkg/codec"
)

type teach struct {
	env        *daemon.Env
	source     source
	log        string
	partitions int
	encoding   string
	seedFile   string
	access     logAccess
}

func teachCommand(env *daemon.Env) *cobra.Command {
	t := &teach{env: env}
	cmd := &cobra.Command{
		Use:   "teach",
		Short: "Start a live system from a log of what another system decided",
		Long: `Start a live system from a log of what another system decided.

Each decision of the log is played in apprentice mode, under its own id, with the action
that was taken. Its outcome follows after the log's own delay, if it came within the
model's window. If the command is stopped, repeat it: it continues. Then start a decider
with the same --model and --log: it keeps what was learned.

The model file must say warm: keep and have a version of at least 2: the log is taught
as the version before.`,
		Args: daemon.NoArguments,
		Example: `  replayer teach --data personalizer/ --model shop.yaml --log embedded:shop-data
  replayer teach --data log.csv --action-column offer --reward-column paid --time-column at --id-column id \
    --features age,country --model shop.yaml --log embedded:shop-data
  decider --model shop.yaml --log embedded:shop-data`,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd.Context()) },
	}
	f := cmd.Flags()
	t.source.dataFlags(env, f, &t.access)
	f.StringVar(&t.source.model, "model", "", "model file of the decider that will be started")
	f.StringVar(&t.log, "log", "", "log of the system: embedded:DIR, nats://… or kafka://…, as for the decider")
	f.IntVar(&t.partitions, "partitions", 0,
		"partitions of contexts, decisions and outcomes (default 1); fixed from then on")
	f.StringVar(&t.encoding, "encoding", "",
		"msgpack or json: how the records are written (default msgpack); fixed from then on")
	f.StringVar(&t.seedFile, "seed-file", "", "the secret seed of the draws, made if absent (default: the file seed "+
		"in the folder of the log, or ./hindsight.seed)")
	daemon.Bounds{"partitions": {0, service.MaxPartitions}}.Set(f)
	return cmd
}

func (t *teach) run(ctx context.Context) error {
	if err := t.check(); err != nil {
		return err
	}
	var lesson *inject.Lesson
	err := daemon.Hurried(ctx, func() (err error) { lesson, err = t.lesson(ctx); return err })
	if err != nil {
		return err
	}
	logger := warnings(t.env)
	e, err := engine.Open(ctx, engine.Options{Log: t.log, Listen: "127.0.0.1:0", Access: t.access.remote,
		Requests: access.None, Logger: logger})
	if err != nil {
		return err
	}
	defer e.Close()
	system, err := t.system(ctx, e, lesson.Model, logger)
	if err != nil {
		return err
	}
	if err := t.play(ctx, system, lesson); err != nil {
		return err
	}
	return t.sum(ctx, system, e.ClockSkew, lesson)
}

// check reports what is wrong with the flags.
func (t *teach) check() error {
	if t.source.data == "" || t.source.model == "" || t.log == "" {
		return daemon.Usagef("name a log of decisions (--data), the model file (--model) and the system's own log " +
			"(--log)")
	}
	spec, err := engine.Parse(t.log)
	switch {
	case err != nil:
		return daemon.Usagef("%v", err)
	case spec.Kind == "mem":
		return daemon.Usagef("--log %s: of a log in memory nothing would be left", t.log)
	}
	if t.seedFile == "" {
		t.seedFile = spec.SeedFile()
	}
	return nil
}

// lesson reads the data.
func (t *teach) lesson(ctx context.Context) (*inject.Lesson, error) {
	env, err := t.source.readOnce(ctx)
	if err != nil {
		return nil, err
	}
	live, err := t.source.parseModel()
	if err != nil {
		return nil, err
	}
	if err := replay.UseOutcomes(live, env); err != nil {
		return nil, daemon.Usagef("%v", err)
	}
	lesson, err := inject.NewLesson(env, live)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.source.model, err)
	}
	return lesson, nil
}

// taughtRetention is how long a new log keeps its records: the decider's default.
const taughtRetention = 7 * 24 * time.Hour

// system returns the system of the model that is taught.
func (t *teach) system(ctx context.Context, e *engine.Engine, m *model.Model,
	logger *slog.Logger) (*service.SystemConfig, error) {
	live, err := modelfile.Load(t.source.model)
	if err != nil {
		return nil, err
	}
	source, err := modelfile.Source(m, live.Files)
	if err != nil {
		return nil, err
	}
	seed, err := daemon.SeedOf(t.seedFile, func() (bool, error) { return topics.Begun(ctx, e.Log, m.Name) })
	if err != nil {
		return nil, err
	}
	if err := follow.CheckTaught(ctx, e.Log, m.Name, m.Version); err != nil {
		return nil, err
	}
	source.Cause = codec.CauseTaught
	partitions, err := topics.Ensure(ctx, e.Log, m.Name, t.partitions, topics.Retention{Age: taughtRetention})
	if err != nil {
		return nil, err
	}
	encoding, err := topics.Encoding(ctx, e.Log, m.Name, t.encoding)
	return &service.SystemConfig{Log: e.Log, Name: m.Name, Source: source, Build: model.Epoch, Seed: seed,
		Partitions: partitions, Encoding: encoding, Owner: "replayer", Logger: logger}, err
}

func (t *teach) play(ctx context.Context, system *service.SystemConfig, lesson *inject.Lesson) error {
	_, err := playTo(ctx, t.env, system, &inject.Injection{Log: system.Log, Topics: join.TopicsOf(system.Name),
		Lead: 1, Rules: lesson.Model.Rules(), Partitions: system.Partitions, Rounds: lesson.Rounds(),
		Delays: lesson.Delays(),
		Taught: true}, "teach")
	if ctx.Err() != nil {
		fmt.Fprintln(t.env.Stderr, "stopped; the same command continues from here")
	}
	return err
}

// sum says what the system was taught, and audits it.
func (t *teach) sum(ctx context.Context, system *service.SystemConfig, skew time.Duration,
	lesson *inject.Lesson) error {
	s, err := replay.Summarize(ctx, system.Log, system.Name, lesson.Delays().Spec, system.Build)
	if err != nil {
		return err
	}
	report, err := verify.Run(ctx, verify.Config{Log: system.Log, Name: system.Name, Seed: system.Seed,
		Build: system.Build, Skew: skew})
	if err != nil {
		return err
	}
	out := t.env.Stdout
	say(out, s, lesson)
	if err := report.Write(out); err != nil {
		return err
	}
	if report.Differences > 0 {
		return &daemon.ExitError{Code: daemon.Failed, Err: errors.New("the logs of what was taught do not verify")}
	}
	fmt.Fprintf(out, "go live:  decider --model %s --log %s\n", t.source.model, access.Show(t.log))
	return nil
}

// say says in a line each what became of the rounds, and what a reader should know of the log.
func say(out io.Writer, s *replay.Summary, lesson *inject.Lesson) {
	fmt.Fprintf(out, "taught %d rounds: observed %d, imputed %d, skipped %d; outcomes rejected %d\n",
		s.Rounds+s.Pending, s.Fates.Observed, s.Fates.Imputed, s.Fates.Skipped, s.Fates.Rejected())
	if lesson.Late > 0 {
		fmt.Fprintf(out, "left out, for they came after the model's window: %d outcomes\n", lesson.Late)
	}
	if s.Pending > 0 {
		fmt.Fprintf(out, "%d rounds at the end of the log still wait for an outcome, each until %d later ones are "+
			"decided\n", s.Pending, lesson.Model.Window.Rounds)
	}
	if lesson.Model.Learner.Kind == model.EXP4DALE {
		fmt.Fprintln(out, "warning: exp4dale learns only from rounds whose law has every action, and so nothing from "+
			"these")
	}
	if lesson.Propensities() {
		fmt.Fprintln(out, "the propensities of the log are kept with its contexts (logged_propensity); nothing is "+
			"weighted by them yet")
	} else {
		fmt.Fprintln(out, "the log has no propensities: off-policy estimates of it are not to be had")
	}
}
