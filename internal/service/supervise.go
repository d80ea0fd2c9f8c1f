package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// fenceWait is how long one waits after another owner took over: re-opening at once
// would fence that one in turn.
const fenceWait = 10 * time.Second

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Retention says what the topics of a model keep.
type Retention struct {
	Age   time.Duration // 0: for ever
	Bytes int64         // of one partition; 0: no limit
}

// CreateTopics makes the topics of a model, or checks that they are there. Contexts,
// decisions and outcomes have as many partitions as given.
func CreateTopics(ctx context.Context, log stream.Log, name string, partitions int, keep Retention) error {
	return createTopicsBy(ctx, log, name, partitions, keep, stream.Log.Create)
}

func createTopicsBy(ctx context.Context, log stream.Log, name string, partitions int, keep Retention,
	create func(stream.Log, context.Context, string, int, stream.TopicOptions) error,
) error {
	t := join.TopicsOf(name)
	o := stream.TopicOptions{MaxAge: int64(keep.Age), MaxBytes: keep.Bytes}
	for _, topic := range []string{t.Contexts, t.Decisions, t.Outcomes} {
		if err := create(log, ctx, topic, partitions, o); err != nil {
			return err
		}
	}
	for _, topic := range []string{t.Feedback, t.Rejects} {
		if err := create(log, ctx, topic, 1, o); err != nil {
			return err
		}
	}
	return create(log, ctx, t.Snapshots, 1, stream.TopicOptions{Trimmable: true})
}

// EnsureTopics makes the topics of a new model with the given number of partitions, 0
// meaning 1, or checks that an old one has that many, 0 meaning any, and returns how
// many it has.
func EnsureTopics(ctx context.Context, log stream.Log, name string, partitions int, keep Retention) (int, error) {
	have, err := Partitions(ctx, log, name)
	create := createAtLeast
	if errors.Is(err, stream.ErrNotFound) { // to a new model nobody has added anything
		have, err = log.Partitions(ctx, join.TopicsOf(name).Contexts)
		create = stream.Log.Create
	}
	switch {
	case errors.Is(err, stream.ErrNotFound):
		have = max(partitions, 1)
	case err != nil:
		return 0, err
	case partitions != 0 && partitions != have:
		return 0, fmt.Errorf("model %q: %w: it was created with %d, not %d, and that cannot change", name, stream.ErrPartitions, have, partitions)
	}
	return have, createTopicsBy(ctx, log, name, have, keep, create)
}

// Begun reports whether the log holds anything of a model's rounds, so that its seed
// must exist.
func Begun(ctx context.Context, log stream.Log, name string) (bool, error) {
	first, next, err := log.Bounds(ctx, join.TopicsOf(name).Feedback, 0)
	if errors.Is(err, stream.ErrNotFound) {
		return false, nil
	}
	return first < next || next > join.LogStart, err // retention may have dropped all of it
}

// CheckTaught is an error unless a log is new, or holds all that it ever held, and of a model no
// other version than the one that is taught.
func CheckTaught(ctx context.Context, log stream.Log, name string, version int64) error {
	partitions, err := Partitions(ctx, log, name)
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	t := join.TopicsOf(name)
	whole := func(topic string, p int) error {
		first, _, err := log.Bounds(ctx, topic, p)
		if err == nil && first > join.LogStart {
			err = fmt.Errorf("%w: %s has dropped records since it was taught, so that it cannot be told where to go on; teach a new log", follow.ErrModel, topic)
		}
		return err
	}
	for p := range partitions {
		err = errors.Join(err, whole(t.Contexts, p), whole(t.Outcomes, p))
	}
	if err = errors.Join(err, whole(t.Feedback, 0)); err != nil {
		return err
	}
	return stream.Scan(ctx, log, t.Feedback, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != codec.TypeEpoch {
			return nil
		}
		rec, err := codec.ParseEpoch(r.Value)
		if err == nil && rec.Version != version {
			err = fmt.Errorf("%w: the log is at version %d of the model, and is taught as version %d; a system that has gone live is taught no more: teach a new log",
				follow.ErrModel, rec.Version, version)
		}
		return err
	})
}

// AwaitTopics waits until the topics of a model are there, which a decider makes, and
// returns how many partitions they have.
func AwaitTopics(ctx context.Context, log stream.Log, name string, logger *slog.Logger) (int, error) {
	told := false
	for {
		n, err := Partitions(ctx, log, name)
		if err == nil {
			for _, topic := range []string{join.TopicsOf(name).Feedback, join.TopicsOf(name).Snapshots} { // made last
				if _, err = log.Partitions(ctx, topic); err != nil {
					break
				}
			}
		}
		if err == nil || !errors.Is(err, stream.ErrNotFound) {
			return n, err
		}
		if !told {
			told = true
			logger.Info("waiting for a decider to make the topics; does it run with this --model and --log?", "model", name)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(firstRetry):
		}
	}
}

// RunJoiner keeps a joiner at work until the context ends: after an error it opens
// a new one, which recovers from the log. Only a refused model ends it. ready is
// called each time it is at work; it may be nil.
func RunJoiner(ctx context.Context, cfg SystemConfig, ready func()) error {
	if cfg.Metrics == nil {
		cfg.Metrics = watch.NewMetrics(nil, nil)
	}
	if cfg.began == nil {
		cfg.began = new([2]atomic.Int64)
	}
	s := supervised{role: watch.RoleJoiner, logger: cfg.Logger, metrics: cfg.Metrics, part: cfg.Health.Join(watch.RoleJoiner, watch.RoleJoiner)}
	return s.run(ctx, func(ctx context.Context) (func(context.Context) error, func(), error) {
		cfg.note(ctx)
		j, err := OpenJoiner(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		j.part = s.part
		s.part.Set(watch.Working, "")
		if ready != nil {
			ready()
		}
		return j.Run, j.Close, nil
	})
}

// RunDecider keeps a decider at work in the same way. ready is called when it has a
// model to decide with.
func RunDecider(ctx context.Context, cfg SystemConfig, ready func()) error {
	if cfg.Metrics == nil {
		cfg.Metrics = watch.NewMetrics(nil, nil)
	}
	s := supervised{role: watch.RoleDecider, logger: cfg.Logger, metrics: cfg.Metrics,
		part: cfg.Health.Join(watch.RoleDecider, fmt.Sprintf("decider of partition %d", cfg.Partition))}
	return s.run(ctx, func(ctx context.Context) (func(context.Context) error, func(), error) {
		d, err := OpenDecider(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		d.part = s.part
		s.part.Set(watch.Waiting, "no epoch: no joiner has announced the model yet")
		d.ready = func() {
			s.part.Set(watch.Working, "")
			if ready != nil {
				ready()
			}
		}
		return d.Run, d.Close, nil
	})
}

// supervised is a part of a process that is opened again after an error.
type supervised struct {
	role    string
	logger  *slog.Logger
	metrics *watch.Metrics
	part    *watch.Part
}

// run opens and runs until the context ends.
func (s *supervised) run(ctx context.Context, open func(context.Context) (run func(context.Context) error, close func(), err error)) error {
	defer s.part.Leave()
	defer context.AfterFunc(ctx, s.part.End)()
	work := s.metrics.AtWork(s.role)
	wait, why := firstRetry, ""
	for {
		start := time.Now()
		s.part.Set(watch.Recovering, why)
		run, closeIt, err := open(ctx)
		if err == nil {
			work.Inc()
			err = run(ctx)
			closeIt()
			work.Dec()
		}
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				s.logger.Warn(s.role+" did not stop cleanly; the next start recovers from the log", "error", err)
			}
			return nil
		}
		s.stopped(err)
		if fatal(err) {
			return fmt.Errorf("%s: %w", s.role, err)
		}
		if time.Since(start) > time.Minute {
			wait = firstRetry
		}
		pause := wait
		if errors.Is(err, stream.ErrFenced) {
			pause = fenceWait
		}
		if err != nil {
			why = err.Error()
		}
		s.logger.Error(s.role+" stopped; it will be opened again", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		wait = min(2*wait, lastRetry)
	}
}

// stopped notes an error that ended the part.
func (s *supervised) stopped(err error) {
	s.metrics.Restart(s.role, errors.Is(err, stream.ErrFenced))
	if err != nil {
		s.part.Set(watch.Stopped, err.Error())
	}
}

// fatal reports whether opening again cannot help.
func fatal(err error) bool {
	return errors.Is(err, follow.ErrModel) || errors.Is(err, stream.ErrTruncated) || follow.Newer(err)
}
