package engine_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hindsight/internal/access"
	"hindsight/internal/engine"
	"hindsight/internal/join"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// Sizes of the comparison of the loop with kafka-producer-perf-test.
const (
	kafkaRounds = 100_000
	toolRecords = 1_000_000
	toolWarmup  = 300_000 // of each of its runs, which do not count
)

// What BenchmarkKafkaRealDelay sends.
const (
	delayRate   = 1000   // rounds a second
	delayRounds = 2000   // of one turn
	delayWarmup = 50_000 // rounds at full speed before, for the compilers
	delayTurns  = 4      // of which the first does not count
)

func openKafka(b *testing.B, k *kafkatest.Cluster) *engine.Engine {
	b.Helper()
	e, err := engine.Open(b.Context(), engine.Options{Log: "kafka://" + k.Brokers()[0], Requests: access.None,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// startKafka starts a system that is alone with a model of its own.
func startKafka(b *testing.B, k *kafkatest.Cluster, name string) *system {
	b.Helper()
	return startOn(b, openKafka(b, k), sourceOf(b, name, "1000 rounds"))
}

// BenchmarkKafkaRealLoop measures rounds a second through contexts, decisions, outcomes
// and feedback on a real broker, beside what kafka-producer-perf-test, with settings it is
// fast with, appends alone to the same broker on the same processors: records of the
// loop's mean size. Each round is four records; loop/tool is records a second of the loop
// by those of the tool, the median of the turns (-benchtime=5x makes 5). A turn before
// them does not count, for the compilers of brokers.
func BenchmarkKafkaRealLoop(b *testing.B) {
	k := kafkatest.Start(b, kafkatest.Options{HeapMB: 1024, Optimized: true})
	loopAndTool(b, k, "warm")
	var rounds, tools, ratios []float64
	for b.Loop() {
		r, tool := loopAndTool(b, k, fmt.Sprintf("bench%d", len(rounds)))
		rounds, tools, ratios = append(rounds, r), append(tools, tool), append(ratios, 4*r/tool)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rounds), "rounds/s")
	b.ReportMetric(4*median(rounds), "records/s")
	b.ReportMetric(median(tools), "tool-records/s")
	b.ReportMetric(median(ratios), "loop/tool")
}

// loopAndTool returns rounds a second of a new model, and then the tool's records.
func loopAndTool(b *testing.B, k *kafkatest.Cluster, name string) (rounds, tool float64) {
	s := startKafka(b, k, name)
	took, sizes := s.play(b, kafkaRounds)
	s.stop()
	mean := (sizes[0] + sizes[1] + sizes[2] + sizes[3]) / len(sizes)
	k.CreateTopic("tool"+name, 1, "message.timestamp.type", "LogAppendTime")
	tool = k.ProducerPerf("tool"+name, mean, toolWarmup, toolRecords)
	k.DeleteTopic("tool" + name)
	rounds = kafkaRounds / took.Seconds()
	b.Logf("%s: %.0f rounds/s, tool %.0f records/s of %d bytes, loop/tool %.3f", name, rounds, tool, mean,
		4*rounds/tool)
	return rounds, tool
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// line is a way that records take, in order.
type line struct {
	send    func(n int)          // starts the n-th, and does not wait
	receive func(arrived func()) // waits for the next, and calls arrived for each
	took    []time.Duration
}

// turn sends records at delayRate, whatever comes back, and waits until all have arrived.
func (l *line) turn(from int) {
	sent, took := make([]time.Time, delayRounds), make([]time.Duration, 0, delayRounds)
	var g sync.WaitGroup
	g.Go(func() {
		for len(took) < delayRounds {
			l.receive(func() { took = append(took, time.Since(sent[len(took)])) })
		}
	})
	start := time.Now()
	for i := range sent {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / delayRate)))
		sent[i] = time.Now()
		l.send(from + i)
	}
	g.Wait()
	l.took = append(l.took, took...)
}

// BenchmarkKafkaRealDelay measures how long it takes from the append of a context until
// its decision can be read, at 1,000 rounds a second that come on time whatever goes on,
// with their outcomes and feedback; beside what a context takes through the same broker
// at the same rate, from the produce to the consumer, without us: by another client and
// by our own, of which the faster counts. They take turns.
func BenchmarkKafkaRealDelay(b *testing.B) {
	k := kafkatest.Start(b, kafkatest.Options{HeapMB: 1024, Optimized: true})
	s := startKafka(b, k, "warm")
	s.play(b, delayWarmup)
	s.stop()
	s = startKafka(b, k, "bench")
	defer s.stop()
	own, loop := ownLine(b, s), loopLine(b, s)
	lines := map[string]*line{"other": otherLine(k), "own": own, "loop": loop}
	n := 0
	for b.Loop() {
		for turn := range delayTurns {
			for _, l := range lines {
				if l.turn(n); turn == 0 {
					l.took = nil // connections, metadata, compilers
				}
				n += delayRounds
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, l := range lines {
		b.ReportMetric(float64(percentile(l.took, 50).Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(percentile(l.took, 99).Microseconds()), name+"-p99-µs")
	}
	floor := min(percentile(lines["other"].took, 50), percentile(own.took, 50))
	b.ReportMetric(float64(percentile(loop.took, 50))/float64(floor), "p50/trip")
}

// otherLine is a partition with another client at both ends.
func otherLine(k *kafkatest.Cluster) *line {
	send, receive := k.Line("other")
	return &line{
		send:    func(n int) { send(contextRecord(nil, n)) },
		receive: func(arrived func()) { receive(func(*kgo.Record) { arrived() }) },
	}
}

// ownLine is a partition with our client at both ends.
func ownLine(b *testing.B, s *system) *line {
	if err := s.Log.Create(b.Context(), "own", 1, stream.TopicOptions{}); err != nil {
		b.Fatal(err)
	}
	return lineOf(b, s.Log, "own", "own", func(*stream.Record) {})
}

// loopLine goes from contexts to decisions, whose outcomes it writes.
func loopLine(b *testing.B, s *system) *line {
	t := join.TopicsOf(s.name)
	a := newAnswerer(b, s.Log, t)
	b.Cleanup(func() { a.out.Close() })
	return lineOf(b, s.Log, t.Contexts, t.Decisions, a.answer)
}

// lineOf sends contexts to one topic and receives the records of another. then is called
// for each that has arrived.
func lineOf(b *testing.B, log stream.Log, to, from string, then func(*stream.Record)) *line {
	w, err := log.Writer(b.Context(), to, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.Close() })
	r, err := log.Read(b.Context(), from, 0, stream.Earliest)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.Close() })
	send := func(n int) {
		if _, err := w.Append(b.Context(), &stream.Record{Value: contextRecord(nil, n)}); err != nil {
			b.Error(err)
		}
	}
	return &line{send: send, receive: func(arrived func()) {
		receive(b, r, 1, func(r *stream.Record) {
			arrived()
			then(r)
		})
	}}
}
