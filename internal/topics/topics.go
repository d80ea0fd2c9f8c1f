// Package topics makes the topics of a model, and says what is there of them.
package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"hindsight/internal/join"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// Retention says what the topics of a model keep.
type Retention struct {
	Age   time.Duration // 0: for ever
	Bytes int64         // of one partition; 0: no limit
}

// Create makes the topics of a model, or checks that they are there. Contexts,
// decisions and outcomes have as many partitions as given.
func Create(ctx context.Context, log stream.Log, name string, partitions int, keep Retention) error {
	return createBy(ctx, log, name, partitions, keep, stream.Log.Create)
}

func createBy(ctx context.Context, log stream.Log, name string, partitions int, keep Retention,
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

// Ensure makes the topics of a new model with the given number of partitions, 0 meaning 1, or checks that an old one
// has that many, 0 meaning any, and returns how many it has.
func Ensure(ctx context.Context, log stream.Log, name string, partitions int, keep Retention) (int, error) {
	have, err := Partitions(ctx, log, name)
	create := createAtLeast
	if errors.Is(err, stream.ErrNotFound) { // nothing was added to a new model
		have, err = log.Partitions(ctx, join.TopicsOf(name).Contexts)
		create = stream.Log.Create
	}
	switch {
	case errors.Is(err, stream.ErrNotFound):
		have = max(partitions, 1)
	case err != nil:
		return 0, err
	case partitions != 0 && partitions != have:
		return 0, fmt.Errorf("model %q: %w: it was created with %d, not %d, and that cannot change",
			name, stream.ErrPartitions, have, partitions)
	}
	return have, createBy(ctx, log, name, have, keep, create)
}

// createAtLeast is [stream.Log.Create], but that partitions may have been added.
func createAtLeast(log stream.Log, ctx context.Context, topic string, partitions int, o stream.TopicOptions) error {
	err := log.Create(ctx, topic, partitions, o)
	if !errors.Is(err, stream.ErrPartitions) {
		return err
	}
	if n, asked := log.Partitions(ctx, topic); asked == nil && n > partitions {
		return log.Create(ctx, topic, n, o)
	}
	return err
}

// ErrEncoding reports a model whose topics have another encoding.
var ErrEncoding = errors.New("its topics have another encoding, and that cannot change")

// Encoding returns the encoding of a model: that of what its programs wrote last. A model of which
// they wrote nothing gets the one that is asked for by name; "": none is, and that is MessagePack.
func Encoding(ctx context.Context, log stream.Log, name, asked string) (codec.Encoding, error) {
	have, known, err := encoding(ctx, log, name)
	if err != nil || asked == "" {
		return have, err
	}
	e, err := codec.ParseEncoding(asked)
	if err == nil && known && e != have {
		return have, OtherEncoding(name, have, e)
	}
	return e, err
}

// OtherEncoding returns the error of a process that was to go on in another encoding than a model has.
func OtherEncoding(name string, have, asked codec.Encoding) error {
	return fmt.Errorf("model %q: %w: start without --encoding, which goes on in %s, or give a model with --encoding "+
		"%s another name", name, ErrEncoding, have, asked)
}

// encoding reports false if nothing was written. All records of a model have one encoding, but for those that are too
// large as JSON. The joiner's come first, which is one: deciders may have been started with different flags.
func encoding(ctx context.Context, log stream.Log, name string) (e codec.Encoding, known bool, err error) {
	t := join.TopicsOf(name)
	partitions, err := log.Partitions(ctx, t.Decisions)
	if err != nil {
		return 0, false, err
	}
	look := func(topic string, p int) error {
		return stream.ScanBack(ctx, log, topic, p, math.MaxInt64, 2000, func(r *stream.Record) error {
			ours := r.Type == codec.TypeOpen
			if r.Type == codec.TypeMark {
				_, err := codec.ParseFeedbackMark(r.Value)
				ours = err == nil
			}
			if ours {
				e, known = max(e, codec.EncodingOf(r.Value)), true
			}
			return nil
		}, func() bool { return known })
	}
	err = look(t.Feedback, 0)
	for p := 0; p < partitions && err == nil && !known; p++ {
		err = look(t.Decisions, p)
	}
	return e, known, err
}

// Await waits until the topics of a model are there, which a decider makes, and until it has opened
// one, which tells their encoding. It returns how many partitions they have.
func Await(ctx context.Context, log stream.Log, name string, logger *slog.Logger) (int, error) {
	told, t := false, join.TopicsOf(name)
	for {
		n, err := Partitions(ctx, log, name)
		if err == nil {
			for _, topic := range []string{t.Feedback, t.Snapshots} { // made last
				if _, err = log.Partitions(ctx, topic); err != nil {
					break
				}
			}
		}
		known := false
		if err == nil {
			_, known, err = encoding(ctx, log, name)
		}
		if err == nil && known || err != nil && !errors.Is(err, stream.ErrNotFound) {
			return n, err
		}
		if !told {
			told = true
			logger.Info("waiting for a decider to make the topics; does it run with this --model and --log?",
				"model", name)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Check refuses a model some of whose topics are gone: made again they would be empty, and what they said forgotten in
// silence. They are made in one order, so that one that is missing before one that is there was deleted.
func Check(ctx context.Context, log stream.Log, name string) error {
	t := join.TopicsOf(name)
	order := []string{t.Contexts, t.Decisions, t.Outcomes, t.Feedback, t.Rejects, t.Snapshots}
	for start := time.Now(); ; { // a broker may learn later than another of what is new
		var missing, absent, there string
		for _, topic := range order {
			switch _, err := log.Partitions(ctx, topic); {
			case err == nil:
				missing, there = absent, topic
			case !errors.Is(err, stream.ErrNotFound):
				return err
			case absent == "":
				absent = topic
			}
		}
		if missing == "" {
			return nil
		}
		if time.Since(start) > 2*time.Second {
			return fmt.Errorf("model %q: %w: %s is gone, but %s is there: somebody deleted it; %s",
				name, stream.ErrNotFound, missing, there, join.AcceptLoss)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// Begun reports whether the log holds anything of a model's rounds, so that its seed must exist.
func Begun(ctx context.Context, log stream.Log, name string) (bool, error) {
	first, next, err := log.Bounds(ctx, join.TopicsOf(name).Feedback, 0)
	if errors.Is(err, stream.ErrNotFound) {
		return false, nil
	}
	return first < next || next > join.LogStart, err // retention may have dropped all of it
}

// Partitions returns how many partitions a model has, which began with so many: what the end of its
// feedback log says, or what its decisions have where nothing has begun.
func Partitions(ctx context.Context, log stream.Log, name string) (int, error) {
	t := join.TopicsOf(name)
	have, err := log.Partitions(ctx, t.Decisions)
	if err != nil {
		return 0, err
	}
	n := 0
	_ = stream.ScanBack(ctx, log, t.Feedback, 0, math.MaxInt64, 2000, func(r *stream.Record) error {
		switch r.Type {
		case codec.TypeMark:
			if m, err := codec.ParseFeedbackMark(r.Value); err == nil && len(m.Positions) > 0 {
				n = len(m.Positions)
			}
		case codec.TypeEpoch:
			if e, err := codec.ParseEpoch(r.Value); err == nil && e.Partitions > 0 {
				n = e.Partitions
			}
		}
		return nil
	}, func() bool { return n > 0 }) // feedback that cannot be read is told when it must be read
	return cmp.Or(n, have), nil
}
