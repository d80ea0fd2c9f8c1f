package service

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/mem"
)

// BenchmarkRejects is how many outcomes a second a joiner rejects while rounds wait behind the
// first: a flood of them, and one at a time, each of which waits for its mark.
func BenchmarkRejects(b *testing.B) {
	logs := map[string]func(*testing.B) stream.Log{
		"mem": func(*testing.B) stream.Log { return mem.New(mem.Options{}) },
		"embedded": func(b *testing.B) stream.Log {
			e, err := embedded.Open(b.Context(), embedded.Options{Dir: b.TempDir(), DontListen: true})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { e.Close() })
			return e.Log()
		},
	}
	for _, log := range []string{"mem", "embedded"} {
		for _, waiting := range []int{100, 100_000} {
			for _, kind := range []string{"orphan", "duplicate"} {
				for _, burst := range []int{20_000, 1} {
					b.Run(fmt.Sprintf("%s/waiting=%d/%s/burst=%d", log, waiting, kind, burst), func(b *testing.B) {
						benchmarkRejects(b, logs[log](b), waiting, kind, burst)
					})
				}
			}
		}
	}
}

func benchmarkRejects(b *testing.B, log stream.Log, waiting int, kind string, burst int) {
	ctx := b.Context()
	topics := createTopics(b, log, "m", 1)
	j, err := OpenJoiner(ctx,
		SystemConfig{Log: log, Partitions: 1, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")},
			Build: func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
				ep, err := testBuild(rec, files)
				if err == nil {
					ep.Rules.Window = loop.Window{Nanos: 1 << 60}
				}
				return ep, err
			},
			MaxPending: waiting + 1, Dedup: 1000, MarkEvery: 1000, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	j.core.Start(ctx)
	fill(b, log, topics.Decisions, waiting, func(i int) []byte {
		return codec.AppendDecision(nil, &codec.Decision{N: int64(i + 1), ID: fmt.Sprint("c", i), Epoch: 1,
			Actions: []string{"a"}, Propensities: []float64{1}})
	})
	outcome := func(i int) []byte {
		return codec.AppendOutcome(nil, &codec.Outcome{ID: fmt.Sprint("c", i), Kind: codec.Loss, Value: .5})
	}
	fill(b, log, topics.Outcomes, waiting-1, func(i int) []byte { return outcome(i + 1) })
	stepTo(b, j, topics.Outcomes)
	n := 0
	for b.Loop() {
		b.StopTimer()
		fill(b, log, topics.Outcomes, burst, func(i int) []byte {
			if kind == "orphan" {
				return outcome(waiting + i)
			}
			return outcome(1 + i%(waiting-1))
		})
		b.StartTimer()
		stepTo(b, j, topics.Outcomes)
		n += burst
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rejects/s")
}

func fill(b *testing.B, log stream.Log, topic string, n int, value func(i int) []byte) {
	w, err := log.Writer(context.Background(), topic, 0, nil)
	for i := 0; err == nil && i < n; i++ {
		_, err = w.Append(context.Background(), &stream.Record{Value: value(i)})
	}
	if err == nil {
		err = w.Flush(context.Background())
	}
	if err != nil {
		b.Fatal(err)
	}
	w.Close()
}

// stepTo steps a joiner until it has read a topic to its end and rejected what it rejects.
func stepTo(b *testing.B, j *Joiner, topic string) {
	_, end, err := j.cfg.Log.Bounds(b.Context(), topic, 0)
	for busy := true; err == nil; {
		if busy, err = j.Step(b.Context()); busy || err != nil {
			continue
		}
		if j.core.Consumed(1) >= end {
			return
		}
		<-j.wakeup
	}
	b.Fatal(err)
}
