//go:build unix

package engine_test

import (
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/pkg/stream"
)

// BenchmarkRestart measures how long a system takes to be ready again after it has
// played many rounds: the engine's own start, which reads its store, and beyond it
// the opening of decider and joiner, beside a bare reading of what they read; and what
// processor time that takes, which other work on the machine changes little. On logs
// of different lengths with equal tails, and on the longest one with longer tails, up to
// that of a real system. 50,000 rounds; with HINDSIGHT_LONG=1 a million.
func BenchmarkRestart(b *testing.B) {
	lengths, tails := []int{5_000, 50_000}, []int{4_000, 8_000, 16_000}
	if os.Getenv("HINDSIGHT_LONG") != "" {
		lengths, tails = []int{10_000, 100_000, 1_000_000}, []int{8_000, 50_000, loop.DefaultDedup}
	}
	for i, rounds := range lengths {
		dir := b.TempDir()
		s := startIn(b, dir, "1000 rounds")
		s.play(b, rounds)
		s.stop()
		if i < len(lengths)-1 {
			benchRestart(b, dir, rounds, tails[0])
			continue
		}
		for _, tail := range tails {
			benchRestart(b, dir, rounds, tail)
		}
	}
}

// benchRestart reports the least of several restarts on a log.
func benchRestart(b *testing.B, dir string, rounds, tail int) {
	b.Run(fmt.Sprintf("rounds=%d/tail=%d", rounds, tail), func(b *testing.B) {
		engine, ours, cpu, bare := time.Hour, time.Hour, time.Hour, time.Hour
		for b.Loop() {
			e, o, c, r := restart(b, dir, tail)
			engine, ours, cpu, bare = min(engine, e), min(ours, o), min(cpu, c), min(bare, r)
		}
		b.ReportMetric(engine.Seconds()*1e3, "engine-ms")
		b.ReportMetric(ours.Seconds()*1e3, "beyond-ms")
		b.ReportMetric(cpu.Seconds()*1e3, "beyond-cpu-ms")
		b.ReportMetric(bare.Seconds()*1e3, "tail-read-ms")
		b.ReportMetric(ours.Seconds()/bare.Seconds(), "beyond/tail-read")
	})
}

// processorTime returns what this process has used.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// restart opens the engine, and then decider and joiner as a system does, which
// remember so many rounds.
func restart(b *testing.B, dir string, dedup int) (engine, ours, cpu, bare time.Duration) {
	quiet, seed, source := slog.New(slog.DiscardHandler), replay.SecretSeed(1), benchSource(b, "1000 rounds")
	began := time.Now()
	e := open(b, dir)
	defer e.Close()
	engine = time.Since(began)
	used := processorTime(b)
	began = time.Now()
	var d *service.Decider
	var j *service.Joiner
	var g errgroup.Group
	g.Go(func() (err error) {
		d, err = service.OpenDecider(b.Context(), service.SystemConfig{Log: e.Log, Name: source.Name,
			Build: model.Epoch, Seed: seed, Partitions: 1,
			Dedup: dedup, SnapshotEvery: service.DefaultSnapshotEvery, MaxInFlight: service.DefaultMaxInFlight,
			Owner:  "bench",
			Logger: quiet})
		return err
	})
	g.Go(func() (err error) {
		j, err = service.OpenJoiner(b.Context(), service.SystemConfig{Log: e.Log, Source: source, Build: model.Epoch,
			Seed: seed, Partitions: 1,
			MaxPending: service.DefaultMaxPending, Dedup: dedup, MarkEvery: service.DefaultMarkEvery, Owner: "bench",
			Logger: quiet})
		return err
	})
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	ours, cpu = time.Since(began), processorTime(b)-used
	d.Close()
	j.Close()
	return engine, ours, cpu, readTails(b, e.Log, dedup)
}

// readTails returns how long it takes to do nothing but read the tails of decisions
// and feedback at once, which is the floor of a restart.
func readTails(b *testing.B, log stream.Log, dedup int) time.Duration {
	topics := join.TopicsOf("bench")
	began := time.Now()
	var g errgroup.Group
	for topic, back := range map[string]int{topics.Decisions: dedup + dedup/64 + 64, topics.Feedback: dedup +
		2*service.DefaultMarkEvery} {
		g.Go(func() error {
			_, end, err := log.Bounds(b.Context(), topic, 0)
			if err != nil {
				return err
			}
			return stream.Scan(b.Context(), log, topic, 0, max(1, end-int64(back)), end,
				func(*stream.Record) error { return nil })
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
