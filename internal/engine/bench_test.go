package engine_test

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/engine"
	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

// system is a running decider with its joiner on an embedded log, over the contexts
// of an environment with 10 actions and 16 features.
type system struct {
	*engine.Engine
	name string
	stop func()
}

func start(b testing.TB, window string) *system { return startIn(b, b.TempDir(), window) }

func open(b testing.TB, dir string) *engine.Engine {
	b.Helper()
	e, err := engine.Open(b.Context(), engine.Options{Log: "embedded:" + dir, Listen: "127.0.0.1:0",
		Sync: os.Getenv("HINDSIGHT_SYNC"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// benchSource is the model of the benchmarks: the linear oracle, β = ½, 10 actions.
func benchSource(b testing.TB, window string) *follow.Source { return sourceOf(b, "bench", window) }

func sourceOf(b testing.TB, name, window string) *follow.Source {
	b.Helper()
	m := model.Default()
	m.Name = name
	for i := range 10 {
		m.Actions = append(m.Actions, fmt.Sprintf("a%d", i))
	}
	var err error
	if m.Oracle, err = model.ParseOracle(model.Linear); err != nil {
		b.Fatal(err)
	}
	m.Resolve(17, 10)
	if m.Window, err = model.ParseWindow(window); err != nil {
		b.Fatal(err)
	}
	source, err := modelfile.Source(m, nil)
	if err != nil {
		b.Fatal(err)
	}
	return source
}

func startIn(b testing.TB, dir, window string) *system {
	b.Helper()
	return startOn(b, open(b, dir), benchSource(b, window))
}

// startOn starts a system on a log, which its stop closes.
func startOn(b testing.TB, e *engine.Engine, source *follow.Source) *system {
	b.Helper()
	return startWith(b, e, source, func(*service.SystemConfig) {})
}

// startWith is startOn with a configuration that tune changes.
func startWith(b testing.TB, e *engine.Engine, source *follow.Source, tune func(*service.SystemConfig)) *system {
	b.Helper()
	if err := topics.Create(b.Context(), e.Log, source.Name, 1, topics.Retention{}); err != nil {
		b.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	config := service.SystemConfig{Log: e.Log, Bus: e.Bus, Name: source.Name, Source: source, Build: model.Epoch,
		Seed: replay.SecretSeed(1), Partitions: 1, Owned: []int{0}, Owner: "bench",
		Metrics: watch.NewMetrics(registry, nil), Logger: slog.New(slog.DiscardHandler)}
	tune(&config)
	stop, err := service.Start(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	return &system{Engine: e, name: source.Name, stop: func() {
		if err := stop(); err != nil {
			b.Error(err)
		}
		e.Close()
	}}
}

// contextRecord returns the bytes of a context with 16 numbers.
func contextRecord(dst []byte, n int) []byte {
	c := codec.Context{ID: fmt.Sprintf("round-%08d", n)}
	for i := range 16 {
		c.Features = append(c.Features, codec.Feature{Name: fmt.Sprintf("feature%02d", i), Kind: codec.Number,
			Value: float64((n*31+i*7)%101) / 100})
	}
	return codec.AppendContext(dst, &c)
}

// BenchmarkRequest measures the time from asking for a decision to its reply, which
// waits for the log, beside a bare echo endpoint on the same server, turn by turn.
func BenchmarkRequest(b *testing.B) {
	s := start(b, "10m")
	defer s.stop()
	stopEcho, err := s.Bus.Serve("echo", "echo", func(m stream.Message) { m.Respond(m.Data[:64]) })
	if err != nil {
		b.Fatal(err)
	}
	defer stopEcho()
	client, err := attach.Dial(s.Dir, "bench", nats.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	var decide, echo []time.Duration
	ask := func(subject string, data []byte) time.Duration {
		start := time.Now()
		if _, h, err := client.Bus().Request(b.Context(), subject, data); err != nil || len(h) > 0 {
			b.Fatal(err, h)
		}
		return time.Since(start)
	}
	n := 0
	for b.Loop() {
		n++
		data := contextRecord(nil, n)
		echo = append(echo, ask("echo", data))
		decide = append(decide, ask(s.name+".decide", data))
	}
	p50, e50 := percentile(decide, 50), percentile(echo, 50)
	b.ReportMetric(float64(p50.Nanoseconds()), "decide-p50-ns")
	b.ReportMetric(float64(percentile(decide, 99).Nanoseconds()), "decide-p99-ns")
	b.ReportMetric(float64(e50.Nanoseconds()), "echo-p50-ns")
	b.ReportMetric(float64(percentile(echo, 99).Nanoseconds()), "echo-p99-ns")
	b.ReportMetric(float64(p50)/float64(e50), "p50/echo")
}

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[(len(d)*p+99)/100-1]
}

// loopRounds is the length of one run of BenchmarkLoop.
const loopRounds = 50_000

// BenchmarkLoop measures rounds a second through contexts, decisions, outcomes and
// feedback on the embedded log, beside four bare appenders with a reader each (and a
// second one for decisions, which the loop also has) of records of the same sizes.
func BenchmarkLoop(b *testing.B) {
	for b.Loop() {
		loop, sizes := runLoop(b)
		bare := runBare(b, sizes)
		b.ReportMetric(loopRounds/loop.Seconds(), "rounds/s")
		b.ReportMetric(loopRounds/bare.Seconds(), "bare-rounds/s")
		b.ReportMetric(bare.Seconds()/loop.Seconds(), "loop/bare")
	}
}

// runLoop plays rounds on a new log.
func runLoop(b *testing.B) (time.Duration, [4]int) {
	s := start(b, "1000 rounds")
	defer s.stop()
	return s.play(b, loopRounds)
}

// play plays rounds whose outcome is written as soon as the decision is read.
func (s *system) play(b *testing.B, rounds int) (time.Duration, [4]int) {
	t := join.TopicsOf(s.name)
	var sizes [4]int
	start := time.Now()
	var g sync.WaitGroup
	g.Go(func() { sizes[0] = writeContexts(b, s.Log, t.Contexts, 0, rounds) })
	g.Go(func() { sizes[1], sizes[2] = answerDecisions(b, s.Log, t, rounds) })
	sizes[3] = readAll(b, s.Log, t.Feedback, rounds)
	elapsed := time.Since(start)
	g.Wait()
	return elapsed, sizes
}

func writeContexts(b *testing.B, log stream.Log, topic string, p, rounds int) (size int) {
	return writeFrom(b, log, topic, p, p*rounds, rounds, func() {})
}

// writeFrom writes contexts from the n-th on, and calls before before each.
func writeFrom(b *testing.B, log stream.Log, topic string, p, n, rounds int, before func()) (size int) {
	w, err := log.Writer(b.Context(), topic, p, nil)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer w.Close()
	var buf []byte
	for i := range rounds {
		before()
		buf = contextRecord(buf[:0], n+i)
		if _, err := w.Append(b.Context(), &stream.Record{Value: buf}); err != nil {
			b.Error(err)
			return 0
		}
	}
	if err := w.Flush(b.Context()); err != nil {
		b.Error(err)
	}
	return len(buf)
}

func answerDecisions(b *testing.B, log stream.Log, t join.Topics, rounds int) (decision, outcome int) {
	a := newAnswerer(b, log, t)
	defer a.end()
	each(b, log, t.Decisions, rounds, a.answer)
	return a.decision, a.outcome
}

// answerer writes the outcome of each decision.
type answerer struct {
	b                 *testing.B
	out               stream.Appender
	d                 codec.Decision
	buf               []byte
	decision, outcome int // sizes of the last
}

func newAnswerer(b *testing.B, log stream.Log, t join.Topics) *answerer {
	w, err := log.Writer(b.Context(), t.Outcomes, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	return &answerer{b: b, out: w}
}

func (a *answerer) answer(r *stream.Record) {
	if err := codec.ParseDecision(&a.d, r.Value); err != nil {
		a.b.Error(err)
	}
	a.buf = codec.AppendOutcome(a.buf[:0], &codec.Outcome{ID: a.d.ID, Kind: codec.Loss, Value: float64(a.d.N%10) / 10})
	if _, err := a.out.Append(a.b.Context(), &stream.Record{Key: []byte(a.d.ID), Value: a.buf}); err != nil {
		a.b.Error(err)
	}
	a.decision, a.outcome = len(r.Value), len(a.buf)
}

// end waits until all is stored.
func (a *answerer) end() {
	if err := a.out.Flush(a.b.Context()); err != nil {
		a.b.Error(err)
	}
	a.out.Close()
}

func readAll(b *testing.B, log stream.Log, topic string, rounds int) (size int) {
	each(b, log, topic, rounds, func(r *stream.Record) { size = len(r.Value) })
	return size
}

// each calls f for the first data records of a topic, as many as there are rounds.
func each(b *testing.B, log stream.Log, topic string, rounds int, f func(*stream.Record)) {
	carry(b, log, topic, 0, rounds, f)
}

// carry calls f for the first data records of a partition, as many as there are
// rounds, and returns the size of the last.
func carry(b *testing.B, log stream.Log, topic string, p, rounds int, f func(*stream.Record)) (size int) {
	r, err := log.Read(b.Context(), topic, p, stream.Earliest)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer r.Close()
	return receive(b, r, rounds, f)
}

// receive calls f for the next data records of a reader, and returns the size of the
// last.
func receive(b *testing.B, r stream.Reader, rounds int, f func(*stream.Record)) (size int) {
	var batch []stream.Record
	for n := 0; n < rounds; {
		var err error
		if batch, err = r.Next(b.Context(), batch[:0]); err != nil {
			b.Error(err)
			return 0
		}
		for i := range batch {
			if batch[i].Type == "" {
				f(&batch[i])
				size = len(batch[i].Value)
				n++
			}
		}
	}
	return size
}

// runBare appends and reads records of the loop's sizes with nothing between: all
// four topics at once, two of them with the readers that the loop has twice.
func runBare(b *testing.B, sizes [4]int) time.Duration {
	e := open(b, b.TempDir())
	defer e.Close()
	if err := topics.Create(b.Context(), e.Log, "bare", 1, topics.Retention{}); err != nil {
		b.Fatal(err)
	}
	t := join.TopicsOf("bare")
	start := time.Now()
	var g sync.WaitGroup
	for i, topic := range []string{t.Contexts, t.Decisions, t.Outcomes, t.Feedback} {
		g.Go(func() { writeBare(b, e.Log, topic, make([]byte, sizes[i])) })
		readers := 1
		if topic == t.Decisions || topic == t.Feedback {
			readers = 2
		}
		for range readers {
			g.Go(func() { readAll(b, e.Log, topic, loopRounds) })
		}
	}
	g.Wait()
	return time.Since(start)
}

func writeBare(b *testing.B, log stream.Log, topic string, value []byte) {
	w, err := log.Writer(b.Context(), topic, 0, nil)
	if err != nil {
		b.Error(err)
		return
	}
	defer w.Close()
	for range loopRounds {
		if _, err := w.Append(b.Context(), &stream.Record{Value: value}); err != nil {
			b.Error(err)
			return
		}
	}
	if err := w.Flush(b.Context()); err != nil {
		b.Error(err)
	}
}
