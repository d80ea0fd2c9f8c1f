package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"hindsight/internal/brokers"
	"hindsight/internal/daemon"
	"hindsight/internal/engine"
	"hindsight/internal/explain"
	"hindsight/internal/model"
	"hindsight/internal/servers"
)

type explained struct {
	env      *daemon.Env
	log      string
	name     string
	seedFile string
	json     bool
	hide     bool
	nats     servers.Flags
	kafka    brokers.Flags
}

func explainCommand(env *daemon.Env) *cobra.Command {
	x := &explained{env: env, kafka: brokers.Flags{Getenv: env.Getenv}}
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Tell the whole life of one round: how it came, what was decided and why, what it taught",
		Long: `Tell the whole life of the round with this id, from the logs: how its context came,
what was decided, with which probability and why (the losses that the model expected,
γ, μ), which feedback the model had learned by then, the outcomes, the round's fate,
and what learning it changed. The decision and what it taught are recomputed by the
code that decided and learned, from the last snapshot before it; "identical" says that
the record in the log is the one that comes out, bit for bit.

It needs the secret seed, and works beside a running system. A decider's page shows
the same, without the context, at /explain?id=ID of its admin port.

Exit code: 0 told, 1 no such round or the log cannot be read, 2 usage.`,
		Args:    daemon.OneArgument("id of a round", "r-0-17"),
		Example: "  replayer explain r-0-17\n  replayer explain 8f3a --log embedded:DIR --json\n  replayer explain 8f3a --log nats://user:password@host:4222 --name shop --seed-file shop.seed",
		RunE:    func(cmd *cobra.Command, args []string) error { return x.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&x.log, "log", engine.DefaultLog, "log of the round: embedded:DIR, nats://[USER:PASSWORD@]HOST[:PORT],… or kafka://HOST[:PORT],… (kafkas:// for TLS)")
	f.StringVar(&x.name, "name", "", "model of the round; default: the only one in the log")
	f.StringVar(&x.seedFile, "seed-file", "", "the secret seed (default: the file seed in the folder of the log, or ./hindsight.seed)")
	f.BoolVar(&x.json, "json", false, "one JSON object on standard output")
	f.BoolVar(&x.hide, "no-features", false, "leave out the context")
	x.nats.Register(f)
	x.kafka.Register(f)
	return cmd
}

func (x *explained) run(ctx context.Context, id string) error {
	e, seed, err := openRecorded(ctx, x.env, x.log, x.seedFile, x.nats, x.kafka)
	if err != nil {
		return err
	}
	defer e.Close()
	name, err := chooseModel(ctx, e, x.log, x.name)
	if err != nil {
		return err
	}
	told, err := explain.Round(ctx, explain.Config{Log: e.Log, Name: name, Seed: seed, Build: model.Epoch, Features: !x.hide}, id)
	if errors.Is(err, explain.ErrNotFound) {
		return fmt.Errorf("%w; rounds are named by the id of their context, or by that in the reply", err)
	}
	if err != nil {
		return err
	}
	if x.json {
		return json.NewEncoder(x.env.Stdout).Encode(told)
	}
	return told.Write(x.env.Stdout)
}

// openRecorded opens a log that a system has written, beside it if that runs, and reads its
// secret seed.
func openRecorded(ctx context.Context, env *daemon.Env, log, seedFile string, nats servers.Flags, kafka brokers.Flags) (*engine.Engine, []byte, error) {
	spec, err := engine.Parse(log)
	if err != nil {
		return nil, nil, daemon.Usagef("%v", err)
	}
	if seedFile == "" {
		seedFile = spec.SeedFile()
	}
	e, err := openBeside(ctx, env, log, nats, kafka)
	if err != nil {
		return nil, nil, err
	}
	seed, err := secretSeed(seedFile)
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	return e, seed, nil
}

// secretSeed reads the secret seed of a log that exists, and makes none.
func secretSeed(path string) ([]byte, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("the secret seed is needed to recompute the draws: %w", err)
	}
	return daemon.SeedFile(path)
}

// openBeside opens a log that a system has written, beside it if that runs.
func openBeside(ctx context.Context, env *daemon.Env, log string, nats servers.Flags, kafka brokers.Flags) (*engine.Engine, error) {
	spec, err := engine.Parse(log)
	if err != nil {
		return nil, daemon.Usagef("%v", err)
	}
	if spec.Kind == "mem" {
		return nil, daemon.Usagef("--log %s: there is nothing to verify, to tell or to follow in a new log in memory", log)
	}
	if spec.Kind == "embedded" && !engine.Exists(spec.Dir) {
		return nil, fmt.Errorf("%s holds no log", spec.Dir)
	}
	o := engine.Options{Log: log, Read: true, NATS: nats, Kafka: kafka, Logger: env.Logger}
	if spec.Kind == "kafka" {
		o.Requests = servers.None
	}
	return engine.Open(ctx, o)
}
