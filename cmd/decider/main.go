// Command decider decides contexts as they come, by topic and by request, and keeps learning from their outcomes. On
// the embedded log it is a whole system: log, joiner and request-reply in one process.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hindsight/internal/access"
	"hindsight/internal/daemon"
	"hindsight/internal/door"
	"hindsight/internal/engine"
	"hindsight/internal/explain"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/see"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/trace/otlp"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
)

func main() { daemon.Main("decider", command) }

// config is all that the flags say.
type config struct {
	log, listen, sync, model, seedFile string
	joiner                             bool
	retention                          retention
	partitions                         int
	encoding                           string
	clientRate                         int
	pendingMiB                         int
	requesters                         string
	acceptLoss                         bool
	access                             access.Flags
	requests                           string // --nats
	http                               door.Flags
	admin                              daemon.AdminFlag
}

func command(env *daemon.Env) *cobra.Command {
	c := config{access: access.New(env.Getenv), admin: daemon.AdminFlag{Getenv: env.Getenv}}
	cmd := &cobra.Command{
		Use:   "decider",
		Short: "Decide contexts as they come and keep learning from their outcomes",
		Long: `Decide contexts from topics and requests, and learn from their outcomes, which may be
late, out of order, duplicate or missing.

On the embedded log one process is a whole system: the log is a folder, the joiner runs
inside, and requests are answered on loopback, by NATS and by HTTP.

On NATS servers and on Kafka several deciders share the partitions of a model. One of
them, or of the feedback-joiners, is the joiner. If one dies, others take over. All need
the same seed file. With Kafka, requests are answered by a server inside the process, or
on the servers of --nats, which several deciders need.`,
		Args: daemon.NoArguments,
		Example: `  decider
  decider --model shop.yaml --log embedded:/var/lib/hindsight
  HINDSIGHT_LOG=embedded:./trial decider
  decider --log nats://host:4222 --nats-user shop --nats-password-file shop.password --partitions 4 --model shop.yaml
  decider --log kafkas://host1:9092,host2:9092/?replication=3 --kafka-user shop --kafka-password-file shop.password \
    --nats nats://host3:4222 --partitions 4 --model shop.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return modelfile.Hold(cmd.Context(), env, c.run(cmd.Context(), env))
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.log, "log", engine.DefaultLog, "embedded:DIR, nats://[USER:PASSWORD@]HOST[:PORT],…, "+
		"kafka://HOST[:PORT],… (kafkas:// for TLS), or mem: for a trial in memory")
	f.StringVar(&c.listen, "listen", "", "address of the embedded server (default 127.0.0.1:4222, or a free port if "+
		"that is taken)")
	engine.RegisterSync(f, &c.sync)
	f.StringVar(&c.model, "model", "", "model file (default: takes any context that lists its actions)")
	f.StringVar(&c.seedFile, "seed-file", "", "the secret seed of the draws, made if absent (default: the file seed "+
		"in the folder of the log, or ./hindsight.seed)")
	f.BoolVar(&c.joiner, "joiner", true, "run the joiner in this process; --joiner=false: feedback-joiner runs it")
	c.retention = retention(7 * 24 * time.Hour)
	f.Var(&c.retention, "retention", "how long a new log keeps its records: 7d, 36h; 0: for ever")
	f.IntVar(&c.partitions, "partitions", 0, "partitions of a new model's contexts, decisions and outcomes (default "+
		"1); fixed from then on")
	f.StringVar(&c.encoding, "encoding", "", "msgpack or json: how the records of a new model are written (default "+
		"msgpack); fixed from then on")
	f.IntVar(&c.clientRate, "client-rate", 0, "maximum requests per second of one client to this process, decisions "+
		"and outcomes; a client is a NATS connection, an HTTP key or an address; 0: no limit")
	f.IntVar(&c.pendingMiB, "pending-mib", service.DefaultMaxBytes>>20, "memory in MiB for decisions that wait for "+
		"their outcomes in the joiner; beyond it the oldest are closed without outcome")
	f.StringVar(&c.requesters, "requesters", "", "file, mode 0600, with a line NAME PASSWORD for each client of the "+
		"server inside this process: only these clients may ask and report, each with the inbox prefix _INBOX_NAME "+
		"(default: every client on this machine)")
	f.BoolVar(&c.acceptLoss, "accept-loss", false, "continue without records that retention dropped before they were "+
		"read; the log names them. Without this flag the command refuses to start")
	daemon.Bounds{"retention": {0, 100 * 365 * 24 * float64(time.Hour)}, "partitions": {0, service.MaxPartitions},
		"client-rate": {0, 1e9}, "pending-mib": {1, service.MaxPendingMiB}}.Set(f)
	c.access.Register(f)
	access.RegisterRequests(f, &c.requests)
	c.http.Add(f)
	c.admin.Add(f)
	cmd.AddCommand(keysCommand(env))
	return cmd
}

// check parses --log and reports what is wrong with the flags.
func (c *config) check() (engine.Spec, error) {
	spec, err := engine.Parse(c.log)
	if err != nil {
		return spec, daemon.Usagef("%v", err)
	}
	err = cmp.Or(engine.CheckRequests(spec, c.requests), engine.CheckRequesters(spec, c.requests, c.requesters),
		engine.CheckSync(spec, c.sync))
	if _, unknown := codec.ParseEncoding(c.encoding); err == nil && c.encoding != "" && unknown != nil {
		err = fmt.Errorf("--encoding: %w", unknown)
	}
	if err == nil && c.listen != "" {
		_, _, err = engine.ParseListen(c.listen)
	}
	if err != nil {
		return spec, daemon.Usagef("%v", err)
	}
	return spec, cmp.Or(c.http.Check(), c.admin.Check())
}

func (c *config) run(ctx context.Context, env *daemon.Env) error {
	spec, err := c.check()
	if err != nil {
		return err
	}
	source, err := modelfile.Load(c.model)
	if err != nil {
		return err
	}
	health := watch.NewHealth(watch.RoleDecider)
	insight := service.NewInsight()
	control := &service.Control{Reload: modelfile.Reload(env.Logger, c.model), Rejudge: modelfile.Rejudge(c.model)}
	sight := see.New(see.Options{Program: "decider", Version: daemon.Version(), Model: source.Name, Health: health,
		Insight: insight, Control: control})
	pages := append(sight.Pages(),
		daemon.Page{Path: "/certificate", Answer: insight.Certificate},
		daemon.Page{Path: "/models", Answer: insight.Models},
		daemon.Page{Path: "/mode", Answer: control.Mode, Post: control.SwitchMode(insight)},
		daemon.Page{Path: "/model", Post: control.RenewModel(insight)},
		daemon.Page{Path: "/guard", Answer: control.Guard},
		daemon.Page{Path: "/candidates", Answer: control.Candidates, Post: control.JudgeOthers(insight)})
	admin, err := c.admin.Open(env.Logger, daemon.Probes{Alive: health.Alive, Ready: health.Ready}, pages...)
	if err != nil {
		return err
	}
	defer admin.Close()
	metrics := watch.NewMetrics(admin.Registry, health)
	sight.Watch(ctx, admin.Registry, metrics.Scope())
	tracer, flush, err := otlp.Open("decider", daemon.Version(), env.Getenv, env.Logger)
	if err != nil {
		return err
	}
	defer flush()
	e, err := engine.Open(ctx, engine.Options{Log: c.log, Listen: c.listen, Requesters: c.requesters, Sync: c.sync,
		Access: c.access, Requests: c.requests, Logger: env.Logger})
	if err != nil {
		return err
	}
	defer e.Close()
	metrics.WatchStore(e.Usage)
	seed, err := c.seed(spec, func() (bool, error) { return topics.Begun(ctx, e.Log, source.Name) })
	if err != nil {
		return err
	}
	sight.Explain(explain.Config{Log: e.Log, Name: source.Name, Seed: seed, Build: model.Epoch})
	if !c.acceptLoss {
		if err := topics.Check(ctx, e.Log, source.Name); err != nil {
			return err
		}
	}
	c.retention.announce(ctx, env.Logger, e.Log, source)
	partitions, err := topics.Ensure(ctx, e.Log, source.Name, c.partitions,
		topics.Retention{Age: time.Duration(c.retention)})
	if err != nil {
		return err
	}
	encoding, err := topics.Encoding(ctx, e.Log, source.Name, c.encoding)
	if err != nil {
		return err
	}
	limitMemory(env, partitions, c.pendingMiB)
	sharing, err := e.Sharing(ctx, source.Name, daemon.Owner("decider"))
	if err != nil {
		return err
	}
	http, err := c.http.Open(ctx, door.Options{Model: source.Name, Bus: e.Bus, Requests: c.requests != access.None,
		Pages: pages, Metrics: metrics, Logger: env.Logger, Log: e.Log, Definition: insight.Definition})
	if err != nil {
		return err
	}
	defer http.Close()
	system := service.SystemConfig{Log: e.Log, Bus: http.Bus(), Name: source.Name, Build: model.Epoch, Seed: seed,
		Partitions: partitions, Encoding: encoding,
		Sharing: sharing, BusApart: e.BusApart || e.Bus == nil, AcceptLoss: c.acceptLoss,
		Owner:  daemon.Owner("decider"),
		Logger: env.Logger, Metrics: metrics, Health: health, Insight: insight, Control: control, Trace: tracer}
	system.ClientRate, system.PendingBytes = c.clientRate, c.pendingMiB<<20
	if c.joiner {
		system.Source = source
		modelfile.Announce(env.Logger, source)
	}
	env.Logger.Info("starting", "model", source.Name, "version", source.Version, "log", access.Show(c.log),
		"partitions", partitions, "joiner", c.joiner)
	err = service.RunSystem(ctx, system, func() {
		env.Logger.Info("ready", "url", e.URL, "decide", source.Name+".decide", "outcome", source.Name+".outcome")
	})
	env.Logger.Info("stopped")
	return err
}

func (c *config) seed(spec engine.Spec, begun func() (bool, error)) ([]byte, error) {
	path := cmp.Or(c.seedFile, spec.SeedFile())
	if path == "" {
		dir, err := os.MkdirTemp("", "hindsight-seed-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, engine.SeedName)
	}
	return daemon.SeedOf(path, begun)
}
