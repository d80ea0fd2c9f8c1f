package service

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"hindsight/internal/loop"
	"hindsight/pkg/stream"
)

// Defaults of the limits on memory (shapes.md).
const (
	DefaultDedup         = 100_000
	DefaultMaxPending    = 1_000_000
	DefaultMarkEvery     = 1000
	DefaultSnapshotEvery = 10_000
	DefaultMaxInFlight   = 1024
)

// SystemConfig is what one process of a model runs.
type SystemConfig struct {
	Log        stream.Log
	Bus        stream.Bus // nil: no requests
	Name       string     // of the model
	Source     *Source    // nil: the joiner runs elsewhere
	Build      Build
	Seed       []byte
	Partitions int
	Owned      []int // partitions decided here
	Owner      string
	Logger     *slog.Logger
}

// RunSystem runs a joiner, if it has a model, a decider for each owned partition, and
// the outcome service, until the context ends or one of them cannot go on. ready is
// called once when all are at work for the first time.
func RunSystem(ctx context.Context, c SystemConfig, ready func()) error {
	g, ctx := errgroup.WithContext(ctx)
	parts := int32(len(c.Owned))
	if c.Source != nil {
		parts++
	}
	if c.Bus != nil {
		parts++
	}
	var waiting atomic.Int32
	waiting.Store(parts)
	done := func() {
		if waiting.Add(-1) == 0 && ready != nil {
			ready()
		}
	}
	if c.Source != nil {
		g.Go(func() error { return RunJoiner(ctx, c.joiner(), once(done)) })
	}
	for _, p := range c.Owned {
		g.Go(func() error { return RunDecider(ctx, c.decider(p), once(done)) })
	}
	if c.Bus != nil {
		g.Go(func() error { return c.runOutcomes(ctx, done) })
	}
	return g.Wait()
}

func once(f func()) func() {
	var done atomic.Bool
	return func() {
		if !done.Swap(true) {
			f()
		}
	}
}

func (c *SystemConfig) joiner() JoinerConfig {
	return JoinerConfig{
		Log: c.Log, Source: *c.Source, Build: c.Build, SeedHash: loop.SeedHash(c.Seed), Partitions: c.Partitions,
		MaxPending: DefaultMaxPending, Dedup: DefaultDedup, MarkEvery: DefaultMarkEvery,
		Owner: c.Owner, Logger: c.Logger.With("role", "joiner"),
	}
}

func (c *SystemConfig) decider(p int) DeciderConfig {
	d := DeciderConfig{
		Log: c.Log, Bus: c.Bus, Name: c.Name, Build: c.Build, Seed: c.Seed, Partition: p, Partitions: c.Partitions,
		Dedup: DefaultDedup, MaxInFlight: DefaultMaxInFlight,
		Owner: c.Owner, Logger: c.Logger.With("role", "decider", "partition", p),
	}
	if p == 0 {
		d.SnapshotEvery = DefaultSnapshotEvery
	}
	return d
}

func (c *SystemConfig) runOutcomes(ctx context.Context, ready func()) error {
	s, err := ServeOutcomes(ctx, c.Log, c.Bus, c.Name, c.Partitions)
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	s.Close()
	return nil
}
