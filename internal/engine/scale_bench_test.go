package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hindsight/internal/engine"
	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/internal/topics"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/nats"
)

// scaleRounds is how many rounds each of the two partitions has.
const scaleRounds = 10_000

// BenchmarkScale measures decisions a second on two partitions with one decider that
// owns both, and with two that own one each, over connections of their own; and beside
// each the log's own ceiling: the same records carried by the same number of
// connections with nothing computed between. All share this machine's cores with the
// server and with the joiner, so two deciders gain what the cores that are left allow.
func BenchmarkScale(b *testing.B) {
	var one, two, bareOne, bareTwo float64 // the best of all turns
	for b.Loop() {
		r, sizes := runDeciders(b, 1)
		one, bareOne = max(one, r), max(bareOne, runCarriers(b, 1, sizes))
		r, sizes = runDeciders(b, 2)
		two, bareTwo = max(two, r), max(bareTwo, runCarriers(b, 2, sizes))
	}
	b.ReportMetric(one, "one/s")
	b.ReportMetric(two, "two/s")
	b.ReportMetric(bareOne, "bare-one/s")
	b.ReportMetric(bareTwo, "bare-two/s")
	b.ReportMetric(two/one, "two/one")
	b.ReportMetric(one/bareOne, "one/bare")
	b.ReportMetric(two/bareTwo, "two/bare")
}

// scaled is a log with contexts in two partitions, and connections to it.
type scaled struct {
	*engine.Engine
	topics join.Topics
	logs   []stream.Log
	mu     sync.Mutex
	ends   []func() error
}

// end closes what was opened, the last first.
func (s *scaled) end() {
	for _, end := range slices.Backward(s.ends) {
		_ = end()
	}
}

func newScaled(b *testing.B, connections int) *scaled {
	b.Helper()
	s := &scaled{Engine: open(b, b.TempDir()), topics: join.TopicsOf("bench")}
	s.ends = append(s.ends, s.Close)
	if err := topics.Create(b.Context(), s.Log, "bench", 2, topics.Retention{}); err != nil {
		b.Fatal(err)
	}
	for p := range 2 {
		writeContexts(b, s.Log, s.topics.Contexts, p, scaleRounds)
	}
	for range connections {
		c, err := attach.Dial(s.Dir, "bench", nats.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.ends = append(s.ends, c.Close)
		s.logs = append(s.logs, c.Log())
	}
	return s
}

// rate waits for the decisions of both partitions, and returns how many there were a
// second of log time, and the size of one.
func (s *scaled) rate(b *testing.B) (float64, int) {
	var first, last [2]int64
	var sizes [2]int
	var g sync.WaitGroup
	for p := range 2 {
		g.Go(func() {
			sizes[p] = carry(b, s.Log, s.topics.Decisions, p, scaleRounds, func(r *stream.Record) {
				if last[p] = r.Time; first[p] == 0 {
					first[p] = r.Time
				}
			})
		})
	}
	g.Wait()
	return 2 * scaleRounds / time.Duration(max(last[0], last[1])-min(first[0], first[1])).Seconds(), sizes[0]
}

// runDeciders decides what is there, and returns decisions a second and the sizes of
// a decision and a feedback.
func runDeciders(b *testing.B, deciders int) (float64, [2]int) {
	s := newScaled(b, deciders)
	defer s.end()
	ctx, cancel := context.WithCancel(b.Context())
	g, ctx := errgroup.WithContext(ctx)
	run := func(log stream.Log, source *follow.Source, owned []int) {
		g.Go(func() error {
			return service.RunSystem(ctx, service.SystemConfig{Log: log, Name: "bench", Source: source,
				Build: model.Epoch, Seed: replay.SecretSeed(1),
				Partitions: 2, Owned: owned, Owner: "bench", Logger: slog.New(slog.DiscardHandler)}, nil)
		})
	}
	run(s.Log, benchSource(b, "1000 rounds"), []int{}) // the joiner alone
	if deciders == 1 {
		run(s.logs[0], nil, []int{0, 1})
	} else {
		run(s.logs[0], nil, []int{0})
		run(s.logs[1], nil, []int{1})
	}
	perSecond, decision := s.rate(b)
	feedback := carry(b, s.Log, s.topics.Feedback, 0, scaleRounds, func(*stream.Record) {})
	cancel()
	if err := g.Wait(); err != nil {
		b.Error(err)
	}
	return perSecond, [2]int{decision, feedback}
}

// runCarriers carries the same records: each context becomes a decision, each decision
// a feedback, which is read once for each partition.
func runCarriers(b *testing.B, connections int, sizes [2]int) float64 {
	s := newScaled(b, connections)
	defer s.end()
	var g sync.WaitGroup
	feedback := s.writer(b, s.Log, s.topics.Feedback, 0, sizes[1])
	for p := range 2 {
		log := s.logs[p%connections]
		g.Go(func() {
			write := s.writer(b, log, s.topics.Decisions, p, sizes[0])
			carry(b, log, s.topics.Contexts, p, scaleRounds, func(*stream.Record) { write() })
		})
		g.Go(func() {
			carry(b, s.Log, s.topics.Decisions, p, scaleRounds, func(*stream.Record) { feedback() })
		})
		g.Go(func() { carry(b, log, s.topics.Feedback, 0, 2*scaleRounds, func(*stream.Record) {}) })
	}
	perSecond, _ := s.rate(b)
	g.Wait()
	return perSecond
}

// writer returns what appends one record of that size; it may be called from
// several goroutines.
func (s *scaled) writer(b *testing.B, log stream.Log, topic string, p, size int) func() {
	w, err := log.Writer(b.Context(), topic, p, nil)
	if err != nil {
		b.Error(err)
		return func() {}
	}
	s.mu.Lock()
	s.ends = append(s.ends, w.Close)
	s.mu.Unlock()
	var mu sync.Mutex
	r := &stream.Record{Value: make([]byte, size)}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if _, err := w.Append(b.Context(), r); err != nil {
			b.Error(err)
		}
	}
}
