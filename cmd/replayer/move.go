package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/verify"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/nats"
)

type move struct {
	system
	to string
}

func moveCommand(env *daemon.Env) *cobra.Command {
	m := &move{system: system{env: env}}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move the log in a folder to NATS servers, verified on both sides",
		Long: `Copy all topics of a model from a folder to NATS servers that have none of them, every
record with its offset, time and bytes. Stop the decider first. All decisions are
recomputed on both sides and must be the same. The folder does not change.

If the command is stopped, repeat it: it continues. Streams with other records are left
alone, and named. Then start deciders on the servers with the same model and seed.

There is no move to Kafka: records refer to each other by offset and time, and Kafka
assigns its own.`,
		Args:    daemon.NoArguments,
		Example: "  replayer move --log embedded:./hindsight-data --to nats://HOST:4222",
		RunE:    func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&m.log, "log", engine.DefaultLog, "log to move: embedded:DIR")
	f.StringVar(&m.to, "to", "", "servers to copy to: nats://[USER:PASSWORD@]HOST[:PORT],…")
	f.StringVar(&m.name, "name", "", "model to move; default: the only one in the log")
	f.StringVar(&m.seedFile, "seed-file", "", "the secret seed (default: the file seed in the folder of the log)")
	m.remote = access.New(env.Getenv)
	m.remote.NATS.Register(f)
	return cmd
}

// check refuses what cannot be moved.
func (m *move) check() error {
	from, err := engine.Parse(m.log)
	if err != nil {
		return daemon.Usagef("%v", err)
	}
	if from.Kind != "embedded" {
		return daemon.Usagef("--log %s: only a folder is moved, embedded:DIR; servers have tools for backups of "+
			"their own", access.Show(m.log))
	}
	if access.IsKafka(m.to) {
		return daemon.Usagef("--to %s: Kafka gives records new offsets, from 0 on, with places of its own between "+
			"them, and new times; marks, decisions and rejects name the old ones. Move to NATS servers, or begin a "+
			"new log on Kafka",
			access.Show(m.to))
	}
	if !access.IsNATS(m.to) {
		return daemon.Usagef("--to %q: which servers? For example --to nats://127.0.0.1:4222", access.Show(m.to))
	}
	if err := access.Check(m.to); err != nil {
		return daemon.Usagef("--to: %v", err)
	}
	return nil
}

func (m *move) run(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	from, seed, err := m.openRecorded(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	spec, err := engine.Parse(m.log)
	if err == nil && from.Joined {
		err = fmt.Errorf("%s is served by another process: stop it first, so that all of it is of one moment", m.log)
	}
	if err != nil {
		return err
	}
	to, err := engine.Open(ctx, engine.Options{Log: m.to, Access: m.remote, Logger: m.env.Logger})
	if err != nil {
		return err
	}
	defer to.Close()
	return m.move(ctx, from, to, spec.Dir, seed)
}

// move copies, verifies, and lets the servers drop by age what is old only then.
func (m *move) move(ctx context.Context, from, to *engine.Engine, dir string, seed []byte) error {
	was, err := m.verify(ctx, from, m.log, seed)
	if err != nil {
		return err
	}
	config := func(stream string) (map[string]any, error) { return embedded.Config(dir, stream) }
	source, target := from.Log.(*nats.Log), to.Log.(*nats.Log)
	t := join.TopicsOf(m.name)
	// By the last of them a model is found.
	topics := []string{t.Contexts, t.Decisions, t.Outcomes, t.Snapshots, t.Rejects, t.Feedback}
	for _, topic := range topics {
		if err := source.CopyTopic(ctx, target, topic, config); err != nil {
			if errors.Is(err, nats.ErrOther) {
				err = fmt.Errorf("%w: it continues there, or is another log; to move this one anyway remove the "+
					"streams %s_…", err, m.name)
			}
			return err
		}
		fmt.Fprintf(m.env.Stderr, "%s is on %s\n", topic, access.Show(m.to))
	}
	is, err := m.verify(ctx, to, m.to, seed)
	if err == nil && is != was {
		err = fmt.Errorf("it differs from %s, of which was found %s, and here %s", m.log, was, is)
	}
	if err != nil {
		return fmt.Errorf("%w; remove the streams %s_… of %s and move again", err, m.name, access.Show(m.to))
	}
	for _, topic := range topics {
		if err := target.KeepAges(ctx, topic, config); err != nil {
			return err
		}
	}
	fmt.Fprintf(m.env.Stdout, `moved, and the same on both sides; go on:  decider --log %s --model MODEL --seed-file SEED
SEED: a copy of the seed of %s. Serve that folder no more: what follows is on the servers.
`, access.Show(m.to), m.log)
	return nil
}

// verify recomputes what a log says and returns what was found. Differences are an error.
func (m *move) verify(ctx context.Context, e *engine.Engine, log string, seed []byte) (string, error) {
	r, err := verify.Run(ctx, verify.Config{Log: e.Log, Name: m.name, Seed: seed, Build: model.Epoch,
		Skew: e.ClockSkew})
	if err != nil {
		return "", err
	}
	if r.Differences > 0 {
		return "", fmt.Errorf("%s is not what it should be: see replayer verify --log %s", access.Show(log),
			access.Show(log))
	}
	r.Seconds, r.PerSecond = 0, 0
	text, err := json.Marshal(r)
	fmt.Fprintf(m.env.Stderr, "%s is verified: %d decisions, %d feedbacks\n", access.Show(log),
		r.Decisions.Records, r.Feedback.Records)
	return string(text), err
}
