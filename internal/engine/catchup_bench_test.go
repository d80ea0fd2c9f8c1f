//go:build linux

package engine_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/join"
	"hindsight/internal/service"
	"hindsight/internal/watch"
	"hindsight/pkg/stream/kafkatest"
)

// catchUpLead is less than the window of the rounds that wait for the joiner: each outcome is in time.
const catchUpLead = 900

// BenchmarkKafkaRealCatchUp measures a decider and a joiner that start behind a backlog on a real broker: a million
// contexts (HINDSIGHT_ROWS changes that), and as many decided rounds with their outcomes, which came in time while
// the joiner was down. rounds/s is of the later of two: the contexts are decided; the rounds are joined and learned,
// every one with its outcome. decided/s and joined/s are of each. append/tool is records appended a second, two for
// each of the rounds, by those of kafka-producer-perf-test. cpu-µs is processor time of this process a round, both
// ways. resident-MB is the most memory that the process had, and resident/quarter its ratio to that of a backlog of a
// quarter.
func BenchmarkKafkaRealCatchUp(b *testing.B) {
	rounds := 1_000_000
	if text := os.Getenv("HINDSIGHT_ROWS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	k := kafkatest.Start(b, kafkatest.Options{HeapMB: 1024, Optimized: true})
	for b.Loop() {
		quarter := catchUp(b, k, "quarter", rounds/4)
		c := catchUp(b, k, "whole", rounds)
		k.CreateTopic("tool", 1, "message.timestamp.type", "LogAppendTime")
		tool := k.ProducerPerf("tool", c.size, toolWarmup, toolRecords)
		k.DeleteTopic("tool")
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(rounds)/max(c.decided, c.joined).Seconds(), "rounds/s")
		b.ReportMetric(float64(rounds)/c.decided.Seconds(), "decided/s")
		b.ReportMetric(float64(rounds)/c.joined.Seconds(), "joined/s")
		b.ReportMetric(tool, "tool-records/s")
		b.ReportMetric(2*float64(rounds)/max(c.decided, c.joined).Seconds()/tool, "append/tool")
		b.ReportMetric(float64(c.cpu.Microseconds())/float64(rounds), "cpu-µs/round")
		b.ReportMetric(c.resident/1e6, "resident-MB")
		b.ReportMetric(c.resident/quarter.resident, "resident/quarter")
	}
}

// caughtUp is what a catch-up took.
type caughtUp struct {
	decided, joined, cpu time.Duration
	resident             float64 // bytes, at most
	waiting              float64 // rounds in the joiner, at most
	size                 int     // of a record of decisions
}

// catchUp puts a backlog in the topics of a new model, and starts a system behind it.
func catchUp(b *testing.B, k *kafkatest.Cluster, name string, rounds int) caughtUp {
	b.Helper()
	source := sourceOf(b, name, "1000 rounds")
	startOn(b, openKafka(b, k), source).stop() // begins the model
	s := startWith(b, openKafka(b, k), source, func(c *service.SystemConfig) { c.Source = nil })
	t := join.TopicsOf(name)
	size := s.playUnjoined(b, t, rounds)
	s.stop()
	e := openKafka(b, k)
	writeFrom(b, e.Log, t.Contexts, 0, rounds, rounds, func() {})
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // forgets the most that it had
		b.Fatal(err)
	}

	registry, used := prometheus.NewRegistry(), processorTime(b)
	began := time.Now()
	s = startWith(b, e, source, func(c *service.SystemConfig) {
		c.Dedup, c.Metrics = 100_000, watch.NewMetrics(registry, nil)
	})
	c := caughtUp{size: size}
	for tick := time.NewTicker(20 * time.Millisecond); c.decided == 0 || c.joined == 0; <-tick.C {
		c.look(b, registry, rounds, time.Since(began))
	}
	c.cpu, c.resident = processorTime(b)-used, mostResident(b)
	if learned := value(b, registry, "hindsight_learned_rounds"); int(learned) < rounds {
		b.Errorf("%s: of %d rounds with an outcome in time %.0f were learned with it", name, rounds, learned)
	}
	s.stop()
	b.Logf("%s: %d rounds, decided in %.2f s, joined and learned in %.2f s; %.2f s of processor; "+
		"%.0f MB resident, %.0f rounds waited", name, rounds, c.decided.Seconds(), c.joined.Seconds(), c.cpu.Seconds(),
		c.resident/1e6, c.waiting)
	return c
}

// mostResident returns the most memory that the process had since that was last forgotten, in bytes.
func mostResident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kb float64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		b.Fatal(err)
	}
	return kb * 1024
}

// look notes how far the system is, and how many rounds wait.
func (c *caughtUp) look(b *testing.B, registry *prometheus.Registry, rounds int, since time.Duration) {
	b.Helper()
	c.waiting = max(c.waiting, value(b, registry, "hindsight_pending_rounds"))
	if c.decided == 0 && value(b, registry, "hindsight_decisions_total") >= float64(rounds) {
		c.decided = since
	}
	if c.joined == 0 && value(b, registry, "hindsight_learned_through") >= float64(rounds) {
		c.joined = since
	}
}

// value returns the sum of the series of a metric.
func value(b *testing.B, registry *prometheus.Registry, name string) (sum float64) {
	b.Helper()
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// playUnjoined plays rounds with no joiner, and returns the size of a decision. No more than catchUpLead of them are
// without a stored outcome.
func (s *system) playUnjoined(b *testing.B, t join.Topics, rounds int) int {
	b.Helper()
	lead := make(chan struct{}, catchUpLead)
	w, err := s.Log.Writer(b.Context(), t.Outcomes, 0, func(uint64, int64, error) { <-lead })
	if err != nil {
		b.Fatal(err)
	}
	a := &answerer{b: b, out: w}
	defer a.end()
	go writeFrom(b, s.Log, t.Contexts, 0, 0, rounds, func() { lead <- struct{}{} })
	return carry(b, s.Log, t.Decisions, 0, rounds, a.answer)
}
