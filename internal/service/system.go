package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"hindsight/internal/follow"
	"hindsight/internal/front"
	"hindsight/internal/loop"
	"hindsight/internal/trace"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Defaults of the limits on memory.
const (
	DefaultMaxPending    = 1_000_000
	DefaultMarkEvery     = 1000
	DefaultSnapshotEvery = 10_000
	DefaultMaxInFlight   = 1024
)

// DefaultMaxBytes is how many bytes the decisions of rounds that wait may hold: those of
// 1,000 decisions a second with contexts of 1 KB in a window of ten minutes.
const DefaultMaxBytes = 1 << 30

// MaxPartitions and MaxPendingMiB are the most that flags may ask for: each partition has
// streams and writers of its own.
const (
	MaxPartitions = 4096
	MaxPendingMiB = 1 << 20
)

// SystemConfig is what one process of a model runs, and what each of its deciders and its joiner
// needs. A limit of 0 is the default where [RunSystem] or [RunSharedJoiner] opens them.
type SystemConfig struct {
	Log  stream.Log
	Bus  stream.Bus // nil: no requests
	Name string     // of the model
	// the model; a newer version than the log's starts an epoch. nil: the joiner runs elsewhere
	Source     *follow.Source
	Build      follow.Build
	Seed       []byte // the secret one, of which nothing is stored
	Partitions int
	Encoding   codec.Encoding // of what is written
	Owned      []int          // without Sharing: the partitions decided here; nil: all
	Sharing    Sharing        // shares the work with other processes; nil: it is not shared
	BusApart   bool           // with Sharing: requests on this process's bus reach no other process
	AcceptLoss bool           // go on without records that retention has dropped before they were read
	ClientRate int            // most requests a second that one client may send; 0: any number
	Owner      string         // for people
	Logger     *slog.Logger
	Metrics    *watch.Metrics // nil: disabled
	Health     *watch.Health  // nil: disabled
	Insight    *Insight       // nil: disabled
	Control    *Control       // nil: nothing can be changed
	Trace      trace.Tracer   // nil: disabled

	Dedup         int   // rounds whose ids are remembered, released ones by the joiner
	MaxPending    int   // rounds that may wait in the joiner
	PendingBytes  int   // that these may hold
	MarkEvery     int   // feedbacks between marks
	MaxInFlight   int   // decisions that may wait for their acknowledgement, if the log takes so many at once
	SnapshotEvery int64 // feedbacks between snapshots, which the decider of partition 0 writes; opened alone, 0: none

	// Learned is told how many feedbacks the decider of a partition has learned, whenever that
	// may have changed; nil: disabled.
	Learned func(partition int, through int64)

	Partition int           // of a decider
	wrote     *wrote        // by this process, to a decider's partition, so far; nil: nothing
	written   []wrote       // by partition
	front     *front.Server // takes requests; nil: none do come
	// partitions of contexts and outcomes when the process began, 0: not yet known; nil: likewise
	began *[2]atomic.Int64
	since *int64 // the offset of the feedback log's end when Source was read; nil: at the opening
}

// setDefaults sets the limits that are 0.
func (c *SystemConfig) setDefaults() {
	c.Dedup = cmp.Or(c.Dedup, loop.DefaultDedup)
	c.MaxPending = cmp.Or(c.MaxPending, DefaultMaxPending)
	c.MarkEvery = cmp.Or(c.MarkEvery, DefaultMarkEvery)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, DefaultMaxInFlight)
	c.SnapshotEvery = cmp.Or(c.SnapshotEvery, DefaultSnapshotEvery)
}

// complete makes what a caller may leave out.
func (c *SystemConfig) complete() {
	if c.Metrics == nil {
		c.Metrics = watch.NewMetrics(nil, nil)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.began == nil {
		c.began = new([2]atomic.Int64)
	}
	if c.wrote == nil {
		c.wrote = new(wrote)
	}
}

// limits returns the limits of the joiner's heart.
func (c *SystemConfig) limits() codec.Limits {
	return codec.Limits{Heart: loop.Heart, Pending: int64(c.MaxPending), Dedup: int64(c.Dedup),
		Bytes: int64(cmp.Or(c.PendingBytes, DefaultMaxBytes))}
}

// seedHash returns the hash of the seed as epochs have it; "": there is no seed.
func (c *SystemConfig) seedHash() string {
	if c.Seed == nil {
		return ""
	}
	return loop.SeedHash(c.Seed)
}

// RunSystem runs a joiner, if it has a model, deciders, and the outcome service, until the context ends or one of them
// cannot go on. With Sharing the joiner stands by while another process is the joiner, and the deciders are those of
// this process's share of the partitions. ready is called once, when all are at work for the first time; with Sharing,
// when the first decider is.
func RunSystem(ctx context.Context, c SystemConfig, ready func()) error {
	g, ctx := errgroup.WithContext(ctx)
	c.complete()
	c.setDefaults()
	c.Metrics.Log = c.Logger
	if b, ok := c.Bus.(stream.Refuser); ok {
		b.OnRefused(c.Metrics.RefuseReply)
	}
	alone := c.Sharing == nil
	parts := int32(1)
	if alone {
		if c.Owned == nil {
			for p := range c.Partitions {
				c.Owned = append(c.Owned, p)
			}
		}
		parts = int32(len(c.Owned))
		if c.Source != nil {
			parts++
		}
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
	c.written = make([]wrote, c.Partitions)
	g.Go(func() error { return lookOn(ctx, c.witness) })
	if c.Bus != nil {
		c.front = front.NewServer(front.Config{Bus: c.Bus, Name: c.Name, Partitions: c.Partitions, Seed: c.Seed,
			Trace:      c.Trace,
			ClientRate: c.ClientRate, Apart: c.BusApart, Metrics: c.Metrics})
		g.Go(func() error { return c.runOutcomes(ctx, done) })
	}
	if alone {
		if c.Source != nil {
			g.Go(func() error { return runJoiner(ctx, c.joiner(), sync.OnceFunc(done)) })
		}
		for _, p := range c.Owned {
			g.Go(func() error { return runDecider(ctx, c.decider(p), sync.OnceFunc(done)) })
		}
		return g.Wait()
	}
	if c.Source != nil {
		g.Go(func() error {
			return RunSharedJoiner(ctx, c.Sharing, c.joiner(), func() { c.Logger.Info("joining", "role", "joiner") })
		})
	}
	g.Go(func() error { return c.runSharedDeciders(ctx, sync.OnceFunc(done)) })
	return g.Wait()
}

// Start runs a system beside its caller and returns when all of it is at work, as [RunSystem] has it. stop stops it and
// returns the error that it ended with; called again it returns the same.
func Start(ctx context.Context, c SystemConfig) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- RunSystem(ctx, c, func() { close(ready) }) }()
	select {
	case <-ready:
		return sync.OnceValue(func() error { cancel(); return <-ended }), nil
	case err = <-ended:
		if err == nil {
			err = ctx.Err() // it was stopped before it began
		}
		cancel()
		return nil, err
	}
}

func (c *SystemConfig) joiner() SystemConfig {
	j := *c
	j.Logger = c.Logger.With("role", "joiner")
	return j
}

func (c *SystemConfig) decider(p int) SystemConfig {
	d := *c
	d.Partition, d.Build, d.Logger = p, c.ownBuild(), c.Logger.With("role", "decider", "partition", p)
	if p < len(c.written) {
		d.wrote = &c.written[p]
	}
	if p != 0 {
		d.SnapshotEvery = 0
	}
	return d
}

// ownBuild refuses epochs whose decisions this process could not make: a decision
// drawn from another seed would not verify.
func (c *SystemConfig) ownBuild() follow.Build {
	hash := c.seedHash()
	return func(rec *codec.Epoch, files map[string][]byte) (loop.Epoch, error) {
		switch {
		case rec.SeedHash != hash:
			return loop.Epoch{}, fmt.Errorf("%w: this is not the seed that the log was created with; all processes "+
				"of a model need the same seed file", follow.ErrModel)
		case rec.Partitions != c.Partitions:
			return loop.Epoch{}, fmt.Errorf("%w: the model's log was made for %d partitions, not %d", follow.ErrModel,
				rec.Partitions, c.Partitions)
		}
		return c.Build(rec, files)
	}
}

func (c *SystemConfig) runOutcomes(ctx context.Context, ready func()) error {
	s, err := c.front.ServeOutcomes(ctx, c.Log)
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	s.Close()
	return nil
}
