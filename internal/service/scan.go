package service

import (
	"context"
	"errors"

	"hindsight/pkg/stream"
)

// errStop ends a scan early without an error.
var errStop = errors.New("stop")

// scan calls f for the records of a partition from an offset to before end, which
// must exist already. from may be before the first record kept.
func scan(ctx context.Context, log stream.Log, topic string, partition int, from, end int64, f func(*stream.Record) error) error {
	first, next, err := log.Bounds(ctx, topic, partition)
	if err != nil {
		return err
	}
	if from = max(from, first); from >= min(end, next) {
		return nil
	}
	r, err := log.Read(ctx, topic, partition, from)
	if err != nil {
		return err
	}
	defer r.Close()
	var batch []stream.Record
	for r.Position() < end {
		if batch, err = r.Next(ctx, batch[:0]); err != nil {
			return err
		}
		for i := range batch {
			if batch[i].Offset >= end {
				return nil
			}
			if err := f(&batch[i]); errors.Is(err, errStop) {
				return nil
			} else if err != nil {
				return &stream.Error{Op: "read", Topic: topic, Partition: partition, Offset: batch[i].Offset, Err: err}
			}
		}
	}
	return nil
}
