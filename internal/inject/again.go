package inject

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"strings"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// again is an appender to a partition that may hold what an earlier run appended: so much is
// compared, and appended no more.
type again struct {
	stream.Appender
	held []uint64 // what the partition holds beyond what was compared
}

// openAgain returns an appender that passes over what its partition holds.
func openAgain(ctx context.Context, log stream.Log, topic string, partition int, to stream.Appender) (*again, error) {
	a := &again{Appender: to}
	return a, stream.Scan(ctx, log, topic, partition, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		a.held = append(a.held, sumOf(r))
		return nil
	})
}

func sumOf(r *stream.Record) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, r.Type)
	_, _ = h.Write(r.Value)
	return h.Sum64()
}

// Append implements [stream.Appender].
func (a *again) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	if len(a.held) == 0 {
		return a.Appender.Append(ctx, r)
	}
	if a.held[0] != sumOf(r) {
		return 0, errors.New("the system was taught something else: with the same data, columns and model the " +
			"command goes on where it stopped; others need a new log")
	}
	a.held = a.held[1:]
	return 0, nil
}

// sendAgain passes over the contexts that an earlier run has sent.
func (in *Injection) sendAgain(ctx context.Context) error {
	if in.Partitions > 1 {
		in.rows = make(map[string]int, in.Rounds.Len())
		for t := range in.Rounds.Len() {
			in.rows[strings.Clone(in.rounds.ID(t))] = t
		}
	}
	for ; in.sent < in.Rounds.Len(); in.sent++ {
		if a := in.contexts[in.partition(in.sent)].(*again); len(a.held) == 0 {
			break
		}
		if err := in.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// closeDue has the joiner close the rounds whose window ended with the last decision, which the next one would close.
// That is done at the end; and in a lesson after each decision, or what the next one has learned from would depend on
// where a run was stopped.
func (in *Injection) closeDue(ctx context.Context) error {
	if !in.due.ending() {
		return nil
	}
	if err := in.apart(ctx); err != nil {
		return err
	}
	if err := in.due.close(); err != nil {
		return err
	}
	_, err := in.outcomes[0].Append(ctx, &stream.Record{Type: codec.TypeMark, Value: []byte{}})
	return err
}
