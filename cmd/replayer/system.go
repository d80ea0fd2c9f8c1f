package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/engine"
)

// logAccess is how servers and brokers are reached, and which model of a log is meant.
type logAccess struct {
	name   string // of the model; "": the only one
	remote access.Flags
}

// flags adds the flags of servers, the same for every verb.
func (a *logAccess) flags(env *daemon.Env, f *pflag.FlagSet) {
	a.remote = access.New(env.Getenv)
	grouped(f, "Servers", func() {
		f.StringVar(&a.name, "name", "", "model in the log, or in --data if that is topics; default: the only one")
		a.remote.Register(f)
	})
}

// choose sets the name of the model in a log, if it is not given: that of the only one.
func (a *logAccess) choose(ctx context.Context, e *engine.Engine, log string) error {
	names, err := engine.Models(ctx, e.Log)
	if err != nil {
		return err
	}
	switch {
	case a.name == "" && len(names) == 0:
		return fmt.Errorf("%s holds no model", access.Show(log))
	case a.name == "" && len(names) == 1:
		a.name = names[0]
	case a.name == "":
		return daemon.Usagef("the log holds several models: name one with --name: %s", strings.Join(names, ", "))
	case !slices.Contains(names, a.name):
		return fmt.Errorf("%s does not hold the model %q, but: %s", access.Show(log), a.name, strings.Join(names, ", "))
	}
	return nil
}

// system is the log of a live system.
type system struct {
	env      *daemon.Env
	log      string
	seedFile string
	logAccess
}

// flags adds --log and the flags of servers, and --seed-file where the secret seed is needed.
func (s *system) flags(f *pflag.FlagSet, of string, seed bool) {
	f.StringVar(&s.log, "log", engine.DefaultLog, of+": embedded:DIR, nats://[USER:PASSWORD@]HOST[:PORT],… or "+
		"kafka://HOST[:PORT],… (kafkas:// for TLS)")
	if seed {
		f.StringVar(&s.seedFile, "seed-file", "",
			"the secret seed (default: the file seed in the folder of the log, or ./hindsight.seed)")
	}
	s.logAccess.flags(s.env, f)
}

// open opens the log to read it, beside the system that serves it if that runs, and chooses the model.
func (s *system) open(ctx context.Context) (*engine.Engine, error) {
	spec, err := engine.Parse(s.log)
	if err != nil {
		return nil, daemon.Usagef("%v", err)
	}
	if spec.Kind == "mem" {
		return nil, daemon.Usagef("--log %s: there is nothing to verify, to tell or to follow in a new log in "+
			"memory", s.log)
	}
	if spec.Kind == "embedded" && !engine.Exists(spec.Dir) {
		return nil, fmt.Errorf("%s holds no log: name the folder of a decider's log", spec.Dir)
	}
	if s.seedFile == "" {
		s.seedFile = spec.SeedFile()
	}
	o := engine.Options{Log: s.log, Read: true, Access: s.remote, Logger: s.env.Logger}
	if spec.Kind == "kafka" {
		o.Requests = access.None
	}
	e, err := engine.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.choose(ctx, e, s.log); err != nil {
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// openRecorded opens the log and reads its secret seed, which must be there.
func (s *system) openRecorded(ctx context.Context) (*engine.Engine, []byte, error) {
	e, err := s.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	seed, err := s.seed()
	if err != nil {
		_ = e.Close()
		return nil, nil, err
	}
	return e, seed, nil
}

// seed reads the secret seed, and makes none.
func (s *system) seed() ([]byte, error) {
	if _, err := os.Stat(s.seedFile); err != nil {
		return nil, fmt.Errorf("the secret seed is needed to recompute the draws: %w", err)
	}
	return daemon.SeedFile(s.seedFile)
}

// warnings returns a logger that tells people of warnings, and programs of everything.
func warnings(env *daemon.Env) *slog.Logger {
	if _, lines := env.Stderr.(*daemon.Lines); lines {
		return env.Logger
	}
	return slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
