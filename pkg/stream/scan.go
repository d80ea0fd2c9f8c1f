package stream

import (
	"bytes"
	"context"
	"errors"
)

// ErrStop ends a [Scan] early without an error.
var ErrStop = errors.New("stop")

// mostScans is how often a scan begins where retention drops its first records before they come.
const mostScans = 10

// Scan calls f for the records of a partition from an offset to before end, as far
// as they exist now. from may be before the first record kept, or Earliest. An error
// of f ends the scan and is returned with its place.
func Scan(ctx context.Context, log Log, topic string, partition int, from, end int64, f func(*Record) error) error {
	for try := 1; ; try++ {
		first, next, err := log.Bounds(ctx, topic, partition)
		if err != nil {
			return err
		}
		begun, err := scan(ctx, log, Place{topic, partition}, max(from, first), min(end, next), f)
		if begun || from >= first || try == mostScans || !errors.Is(err, ErrTruncated) {
			return err
		}
	}
}

// scan is Scan of records that are kept. It reports whether it called f.
func scan(ctx context.Context, log Log, p Place, from, end int64, f func(*Record) error) (begun bool, err error) {
	if from >= end {
		return false, nil
	}
	r, err := log.Read(ctx, p.Topic, p.Partition, from)
	if err != nil {
		return false, err
	}
	defer r.Close()
	var batch []Record
	for r.Position() < end {
		if batch, err = r.Next(ctx, batch[:0]); err != nil {
			return begun, err
		}
		for i := range batch {
			if batch[i].Offset >= end {
				return begun, nil
			}
			begun = true
			if err := f(&batch[i]); errors.Is(err, ErrStop) {
				return true, nil
			} else if err != nil {
				return true, p.Fail("read", batch[i].Offset, err)
			}
		}
	}
	return begun, nil
}

// Get returns the bytes of one record, which belong to the caller.
func Get(ctx context.Context, log Log, topic string, partition int, offset int64) (value []byte, err error) {
	if g, ok := log.(Getter); ok {
		if value, err = g.Get(ctx, topic, partition, offset); err == nil {
			return value, nil
		}
	}
	err = Scan(ctx, log, topic, partition, offset, offset+1, func(r *Record) error {
		value = bytes.Clone(r.Value)
		return nil
	})
	if err == nil && value == nil {
		err = Place{topic, partition}.Fail("read", offset, ErrNotFound)
	}
	return value, err
}
