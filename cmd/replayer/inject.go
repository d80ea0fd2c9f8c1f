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

	environment *replay.Rounds
	late        *delay.Delays // as delays says
	policy      *policy
	pace        inject.Pace
	dir         string // of the logs; "": they are in memory, or with servers
	keep        bool   // the folder stays
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
	f.StringVar(&in.speed, "speed", "max", "pace of the contexts: max, or a multiple of the log's own pace (1x, 10x)")
	f.IntVar(&in.partitions, "partitions", 1, "partitions of contexts, decisions and outcomes, each with its decider")
	f.StringVar(&in.encoding, "encoding", "", "msgpack or json: how the records are written (default msgpack)")
	f.StringVar(&in.seedFile, "seed-file", "", "file for the secret seed of a log on servers or brokers (default "+
		"./hindsight.seed)")
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
	err := daemon.Hurried(ctx, func() (err error) {
		in.environment, err = in.source.open(ctx)
		return err
	})
	if err != nil {
		return err
	}
	speed, err := inject.ParseSpeed(in.speed)
	if err != nil {
		return daemon.Usagef("--speed %v", err)
	}
	if in.pace, err = inject.NewPace(in.environment, speed); err != nil {
		return daemon.Usagef("--speed %s: %v", in.speed, err)
	}
	if in.policy, err = in.source.policy(in.environment, in.learner); err != nil {
		return err
	}
	p := in.policy
	if in.late, err = in.source.delays(in.environment, p.model, in.delays); err != nil {
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
	if err := in.folder(); err != nil {
		return err
	}
	if in.dir != "" && !in.keep {
		defer os.RemoveAll(in.dir)
	}
	return in.tell(ctx)
}

// folder sets where the logs go.
func (in *injection) folder() (err error) {
	if in.log == "" {
		in.dir, err = os.MkdirTemp("", "hindsight-")
		in.log = "embedded:" + in.dir
		return err
	}
	spec, err := engine.Parse(in.log)
	if err != nil {
		return daemon.Usagef("%v", err)
	}
	if spec.Dir != "" && engine.Exists(spec.Dir) {
		return fmt.Errorf("%s holds a log already: name a new folder, or remove that one", spec.Dir)
	}
	in.dir, in.keep = spec.Dir, true
	return nil
}

// tell plays to a live system and says what came of it.
func (in *injection) tell(ctx context.Context) error {
	result, audit, err := in.live(ctx)
	if err != nil {
		return err
	}
	runs := []replay.Result{*result}
	in.source.markInvented(runs)
	result = &runs[0]
	if err := in.show(result); err != nil {
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
	in.audit(table)
	if code := audit.ExitCode(); code != 0 {
		return &daemon.ExitError{Code: daemon.Failed, Err: errors.New("the logs of this run do not verify")}
	}
	return nil
}

// audit says how to look at the logs again.
func (in *injection) audit(w io.Writer) {
	if in.keep && in.dir != "" {
		fmt.Fprintf(w, "audit it again:  replayer verify --log embedded:%s\n", in.dir)
		return
	}
	if in.remote() {
		fmt.Fprintf(w, "audit it again:  replayer verify --log %s --name %s --seed-file %s\n", access.Show(in.log),
			in.policy.model.Name, in.seedFile)
		return
	}
	fmt.Fprintln(w, "to keep the logs and audit them:  replayer inject --log embedded:DIR; replayer verify --log "+
		"embedded:DIR")
}

// live runs the system, plays to it, and audits its logs.
func (in *injection) live(ctx context.Context) (*replay.Result, *verify.Report, error) {
	seed, err := in.prepare()
	if err != nil {
		return nil, nil, err
	}
	logger := warnings(in.env) // a run says what it does by its bar
	e, err := engine.Open(ctx, engine.Options{Log: in.log, Listen: in.listen, Sync: in.sync, Access: in.access.remote,
		Requests: in.requests(), Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	name := in.policy.model.Name
	if err := in.create(ctx, e, name); err != nil {
		return nil, nil, err
	}
	source, err := modelfile.Source(in.policy.model, in.policy.files)
	if err != nil {
		return nil, nil, err
	}
	encoding, err := topics.Encoding(ctx, e.Log, name, in.encoding)
	if err != nil {
		return nil, nil, err
	}
	system := service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: name, Encoding: encoding,
		Source: source, Build: model.Epoch, Seed: seed, Partitions: in.partitions, Owner: "replayer", Logger: logger}
	result, err := in.play(ctx, &system)
	if err != nil {
		return nil, nil, err
	}
	report, err := verify.Run(ctx, verify.Config{Log: e.Log, Name: name, Seed: seed, Build: model.Epoch,
		Skew: e.ClockSkew})
	return result, report, err
}

// create makes the topics of a new model.
func (in *injection) create(ctx context.Context, e *engine.Engine, name string) error {
	switch _, err := e.Log.Partitions(ctx, join.TopicsOf(name).Contexts); {
	case err == nil:
		return fmt.Errorf("%s holds a model %q already: play a model of another name, by --model", access.Show(in.log),
			name)
	case !errors.Is(err, stream.ErrNotFound):
		return err
	}
	return topics.Create(ctx, e.Log, name, in.partitions, topics.Retention{})
}

// prepare writes the secret seed, and the model for whoever runs a decider on the folder later.
func (in *injection) prepare() ([]byte, error) {
	seed := replay.SecretSeed(in.source.seed)
	if in.remote() {
		return seed, in.writeSeed(seed)
	}
	if in.dir == "" {
		return seed, nil
	}
	if err := errors.Join(os.MkdirAll(in.dir, 0o700), attach.Own(in.dir)); err != nil {
		return nil, err
	}
	files := map[string][]byte{filepath.Join(in.dir, engine.ModelName): in.policy.model.File()}
	for name, b := range in.policy.files {
		files[filepath.Join(in.dir, filepath.Base(name))] = b
	}
	for path, b := range files {
		if there, err := os.ReadFile(path); err == nil && !bytes.Equal(there, b) {
			return nil, fmt.Errorf("%s exists, and would be overwritten; name a new folder", path)
		}
	}
	path := filepath.Join(in.dir, engine.SeedName)
	if err := daemon.WriteSeed(path, seed); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: the folder belongs to another system; name a new one", path)
	} else if err != nil {
		return nil, err
	}
	for path, b := range files {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return nil, err
		}
	}
	return seed, nil
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
func (in *injection) writeSeed(seed []byte) error {
	if in.seedFile == "" {
		in.seedFile = access.SeedFile
	}
	err := daemon.WriteSeed(in.seedFile, seed)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, err := daemon.SeedFile(in.seedFile)
	if err == nil && !bytes.Equal(have, seed) {
		err = fmt.Errorf("%s holds the seed of another system: name another file with --seed-file", in.seedFile)
	}
	return err
}

// play runs the system, plays everything to it, stops it, and sums up.
func (in *injection) play(ctx context.Context, system *service.SystemConfig) (*replay.Result, error) {
	m := in.policy.model
	played := &inject.Injection{Log: system.Log, Topics: join.TopicsOf(system.Name), Lead: in.lead, Rules: m.Rules(),
		Partitions: in.partitions, Rounds: in.environment.For(m), Delays: in.late, Pace: in.pace}
	elapsed, err := playTo(ctx, in.env, system, played, "inject")
	if err != nil {
		return nil, err
	}
	return in.sum(ctx, system, played, elapsed)
}

// playTo runs a system, plays everything to it, and stops it.
func playTo(ctx context.Context, env *daemon.Env, system *service.SystemConfig, in *inject.Injection,
	what string) (time.Duration, error) {
	in.Learned = inject.NewLearned(in.Partitions)
	system.Learned = in.Learned.Note
	stop, err := service.Start(ctx, *system)
	if err != nil {
		return 0, err
	}
	bar := newProgress(env.Stderr, int64(in.Rounds.Len()), what)
	start := time.Now()
	err = in.Run(ctx, bar.steps())
	elapsed := time.Since(start)
	bar.finish()
	if ended := stop(); err == nil {
		err = ended
	}
	return elapsed, err
}

func (in *injection) sum(ctx context.Context, system *service.SystemConfig, played *inject.Injection,
	elapsed time.Duration) (*replay.Result, error) {
	s, err := replay.Summarize(ctx, system.Log, system.Name, in.late.Spec, system.Build)
	if err != nil {
		return nil, err
	}
	r := &replay.Result{
		Environment: in.environment.Name, Learner: in.policy.label, Seed: in.source.seed,
		Window: model.FormatWindow(in.policy.model.Window), DefaultWindow: in.policy.defaultWindow, Rounds: s.Rounds,
		Pending: s.Pending, Fates: s.Fates, LateLosses: s.LateLosses, Delays: s.Delays, Certificate: s.Certificate,
		RoundsPerSecond: float64(s.Rounds) / elapsed.Seconds(),
	}
	played.Match.Score(r)
	r.NamedFates(s)
	r.Course = played.Match.Tell(s.Bins)
	if in.showing.on() {
		r.Contexts = played.Match.WorstContexts()
	}
	return r, nil
}
