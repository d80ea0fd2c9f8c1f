package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/delay"
	"hindsight/internal/engine"
	"hindsight/internal/inject"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/replay"
	"hindsight/internal/report"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/verify"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
)

type injection struct {
	env     *daemon.Env
	source  source
	showing showing
	learner string
	delays  string
	log     string
	listen  string
	sync    string
	lead    int
	speed   string

	partitions int
	encoding   string
	seedFile   string // of a log on servers or brokers
	access     logAccess
}

func injectCommand(env *daemon.Env) *cobra.Command {
	in := &injection{env: env}
	cmd := &cobra.Command{
		Use:   "inject",
		Short: "Play an environment or a file through the whole live loop",
		Long: `Play an environment or a file through the whole live loop.

It starts the log, a decider and a joiner, writes contexts, reads decisions, and writes
each outcome after as many later decisions as the delays say. Then it summarises the
logs and audits them.`,
		Args: daemon.NoArguments,
		Example: `  replayer inject
  replayer inject --data pendigits.csv --delays pareto:1.5,10 --window 200 --log embedded:DIR
  replayer inject --rounds 5000 --delays exp:50 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return in.run(cmd.Context()) },
	}
	f := cmd.Flags()
	in.source.flags(env, f, &in.access)
	in.source.runFlags(f, true)
	in.source.learnerFlags(f, &in.learner, &in.delays)
	f.StringVar(&in.log, "log", "", "embedded:DIR keeps the logs in a new folder; nats://… and kafka://… play on "+
		"servers and brokers, where the model must be new; mem: plays in memory; default: a temporary folder")
	f.StringVar(&in.listen, "listen", "", "address of the embedded server (default 127.0.0.1:4222, or a free port if "+
		"that is taken)")
	engine.RegisterSync(f, &in.sync)
	f.IntVar(&in.lead, "lead", 1, "maximum contexts in flight; 1 decides each after all feedback released by then is "+
		"learned, as backtest does; larger is faster, but adds up to that much delay")
	f.StringVar(&in.speed, "speed", "max", "pace of the contexts: max, or a multiple of the log's own pace "+
		"(1x, 10x)")
	f.IntVar(&in.partitions, "partitions", 1, "partitions of contexts, decisions and outcomes, each with its decider")
	f.StringVar(&in.encoding, "encoding", "", "msgpack or json: how the records are written (default msgpack)")
	f.StringVar(&in.seedFile, "seed-file", "", "file for the secret seed of a log on servers or brokers "+
		"(default ./hindsight.seed)")
	daemon.Bounds{"lead": {1, 1e6}, "partitions": {1, service.MaxPartitions}}.Set(f)
	in.showing.flags(f)
	return cmd
}

func (in *injection) run(ctx context.Context) error {
	if in.listen != "" {
		if _, _, err := engine.ParseListen(in.listen); err != nil {
			return daemon.Usagef("%v", err)
		}
	}
	spec, _ := engine.Parse(in.log) // [injection.folder] tells of an error
	if err := engine.CheckSync(spec, in.sync); err != nil {
		return daemon.Usagef("%v", err)
	}
	var env *replay.Rounds
	err := daemon.Hurried(ctx, func() (err error) {
		env, err = in.source.open(ctx)
		return err
	})
	if err != nil {
		return err
	}
	speed, err := inject.ParseSpeed(in.speed)
	if err != nil {
		return daemon.Usagef("--speed %v", err)
	}
	pace, err := inject.NewPace(env, speed)
	if err != nil {
		return daemon.Usagef("--speed %s: %v", in.speed, err)
	}
	p, err := in.source.policy(env, in.learner)
	if err != nil {
		return err
	}
	d, err := in.source.delays(env, p.model, in.delays)
	if err != nil {
		return err
	}
	if k := p.model.Oracle.Kind; p.model.UsesOracle() && (k == model.Unstable || k == model.Own) {
		return daemon.Usagef("--env %s: its oracle (%s) is Go code of the replayer, for backtests only: no live "+
			"system can build it", in.source.env, k)
	}
	fmt.Fprintln(in.env.Stderr, p.model.Cost())
	if p.model.Window.Rounds == 0 {
		fmt.Fprintf(in.env.Stderr, "a window of %s is time of the live log here, not of the file; backtest plays the "+
			"file's own time\n", model.FormatWindow(p.model.Window))
	}
	dir, keep, err := in.folder()
	if err != nil {
		return err
	}
	if dir != "" && !keep {
		defer os.RemoveAll(dir)
	}
	return in.play(ctx, &live{injection: in, environment: env, delays: d, policy: p, pace: pace, dir: dir, keep: keep})
}

// folder returns where the logs go; dir is "" for a log in memory.
func (in *injection) folder() (dir string, keep bool, err error) {
	if in.log == "" {
		dir, err = os.MkdirTemp("", "hindsight-")
		in.log = "embedded:" + dir
		return dir, false, err
	}
	spec, err := engine.Parse(in.log)
	if err != nil {
		return "", false, daemon.Usagef("%v", err)
	}
	if spec.Dir != "" && engine.Exists(spec.Dir) {
		return "", false, fmt.Errorf("%s holds a log already: name a new folder, or remove that one", spec.Dir)
	}
	return spec.Dir, true, nil
}

// live is one injection with the system that it plays to.
type live struct {
	*injection
	environment *replay.Rounds
	delays      *delay.Delays
	policy      *policy
	pace        inject.Pace
	dir         string
	keep        bool
}

func (in *injection) play(ctx context.Context, l *live) error {
	result, audit, err := l.run(ctx)
	if err != nil {
		return err
	}
	runs := []replay.Result{*result}
	in.source.markInvented(runs)
	result = &runs[0]
	if err := in.show(l, result); err != nil {
		return err
	}
	table, err := tables(in.env, in.source.json, result)
	if err != nil {
		return err
	}
	if err := report.Run(result).WriteText(table, narrow); err != nil {
		return err
	}
	fmt.Fprintln(table)
	if err := audit.Write(table); err != nil {
		return err
	}
	l.audit(table)
	if code := audit.ExitCode(); code != 0 {
		return &daemon.ExitError{Code: daemon.Failed, Err: errors.New("the logs of this run do not verify")}
	}
	return nil
}

// audit says how to look at the logs again.
func (l *live) audit(w io.Writer) {
	if l.keep && l.dir != "" {
		fmt.Fprintf(w, "audit it again:  replayer verify --log embedded:%s\n", l.dir)
		return
	}
	if l.remote() {
		fmt.Fprintf(w, "audit it again:  replayer verify --log %s --name %s --seed-file %s\n", access.Show(l.log),
			l.policy.model.Name, l.seedFile)
		return
	}
	fmt.Fprintln(w, "to keep the logs and audit them:  replayer inject --log embedded:DIR; replayer verify --log "+
		"embedded:DIR")
}

func (l *live) run(ctx context.Context) (*replay.Result, *verify.Report, error) {
	seed, err := l.prepare()
	if err != nil {
		return nil, nil, err
	}
	logger := warnings(l.env) // a run says what it does by its bar
	e, err := engine.Open(ctx, engine.Options{Log: l.log, Listen: l.listen, Sync: l.sync, Access: l.access.remote,
		Requests: l.requests(), Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	name := l.policy.model.Name
	if err := l.create(ctx, e, name); err != nil {
		return nil, nil, err
	}
	source, err := modelfile.Source(l.policy.model, l.policy.files)
	if err != nil {
		return nil, nil, err
	}
	encoding, err := topics.Encoding(ctx, e.Log, name, l.encoding)
	if err != nil {
		return nil, nil, err
	}
	system := service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: name, Encoding: encoding,
		Source: source, Build: model.Epoch, Seed: seed,
		Partitions: l.partitions, Owner: "replayer", Logger: logger}
	result, err := l.play(ctx, &system)
	if err != nil {
		return nil, nil, err
	}
	report, err := verify.Run(ctx, verify.Config{Log: e.Log, Name: name, Seed: seed, Build: model.Epoch})
	return result, report, err
}

// create makes the topics of a new model.
func (l *live) create(ctx context.Context, e *engine.Engine, name string) error {
	switch _, err := e.Log.Partitions(ctx, join.TopicsOf(name).Contexts); {
	case err == nil:
		return fmt.Errorf("%s holds a model %q already: play a model of another name, by --model", access.Show(l.log),
			name)
	case !errors.Is(err, stream.ErrNotFound):
		return err
	}
	return topics.Create(ctx, e.Log, name, l.partitions, topics.Retention{})
}

// prepare writes the secret seed, and the model for whoever runs a decider on the
// folder later.
func (l *live) prepare() ([]byte, error) {
	seed := replay.SecretSeed(l.source.seed)
	if l.remote() {
		return seed, l.writeSeed(seed)
	}
	if l.dir == "" {
		return seed, nil
	}
	if err := errors.Join(os.MkdirAll(l.dir, 0o700), attach.Own(l.dir)); err != nil {
		return nil, err
	}
	path := filepath.Join(l.dir, engine.SeedName)
	if err := daemon.WriteSeed(path, seed); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: the folder belongs to another system; name a new one", path)
	} else if err != nil {
		return nil, err
	}
	for name, b := range l.policy.files {
		if err := os.WriteFile(filepath.Join(l.dir, filepath.Base(name)), b, 0o644); err != nil {
			return nil, err
		}
	}
	return seed, os.WriteFile(filepath.Join(l.dir, engine.ModelName), l.policy.model.Canonical(), 0o644)
}

// remote reports whether the log lies with servers or brokers.
func (in *injection) remote() bool { return access.Remote(in.log) }

// requests are nobody's here: who plays writes to the topics.
func (in *injection) requests() string {
	if spec, err := engine.Parse(in.log); err == nil && (spec.Kind == "kafka" || spec.Kind == "mem") {
		return access.None
	}
	return ""
}

// writeSeed writes the secret seed of a log on servers or brokers, unless it is there.
func (l *live) writeSeed(seed []byte) error {
	if l.seedFile == "" {
		l.seedFile = access.SeedFile
	}
	err := daemon.WriteSeed(l.seedFile, seed)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, err := daemon.SeedFile(l.seedFile)
	if err == nil && !bytes.Equal(have, seed) {
		err = fmt.Errorf("%s holds the seed of another system: name another file with --seed-file", l.seedFile)
	}
	return err
}

// play runs the system, plays everything to it, stops it, and sums up.
func (l *live) play(ctx context.Context, system *service.SystemConfig) (*replay.Result, error) {
	m := l.policy.model
	played := &inject.Injection{Log: system.Log, Topics: join.TopicsOf(system.Name), Lead: l.lead, Rules: m.Rules(),
		Partitions: l.partitions, Rounds: l.environment.For(m), Delays: l.delays, Pace: l.pace}
	elapsed, err := playTo(ctx, l.env, system, played, "inject")
	if err != nil {
		return nil, err
	}
	return l.sum(ctx, system, played, elapsed)
}

// playTo runs a system, plays everything to it, and stops it.
func playTo(ctx context.Context, env *daemon.Env, system *service.SystemConfig, in *inject.Injection,
	what string) (time.Duration, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	in.Learned = inject.NewLearned(in.Partitions)
	system.Learned = in.Learned.Note
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- service.RunSystem(running, *system, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		if err == nil {
			err = ctx.Err() // it was stopped before it began
		}
		return 0, err
	}
	bar := newProgress(env.Stderr, int64(in.Rounds.Len()), what)
	start := time.Now()
	err := in.Run(ctx, bar.steps())
	elapsed := time.Since(start)
	bar.finish()
	stop()
	if ended := <-ended; err == nil {
		err = ended
	}
	return elapsed, err
}

func (l *live) sum(ctx context.Context, system *service.SystemConfig, in *inject.Injection,
	elapsed time.Duration) (*replay.Result, error) {
	s, err := replay.Summarize(ctx, system.Log, system.Name, l.delays.Spec, system.Build)
	if err != nil {
		return nil, err
	}
	r := &replay.Result{
		Environment: l.environment.Name, Learner: l.policy.label, Seed: l.source.seed,
		Window: model.FormatWindow(l.policy.model.Window), DefaultWindow: l.policy.defaultWindow, Rounds: s.Rounds,
		Pending: s.Pending, Fates: s.Fates, LateLosses: s.LateLosses, Delays: s.Delays, Certificate: s.Certificate,
		RoundsPerSecond: float64(s.Rounds) / elapsed.Seconds(),
	}
	in.Match.Score(r)
	r.NamedFates(s)
	r.Course = in.Match.Tell(s.Bins)
	if l.showing.on() {
		r.Contexts = in.Match.WorstContexts()
	}
	return r, nil
}
