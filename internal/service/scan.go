package service

import (
	"context"

	"hindsight/pkg/stream"
)

// errStop ends a scan early without an error.
var errStop = stream.ErrStop

func scan(ctx context.Context, log stream.Log, topic string, partition int, from, end int64, f func(*stream.Record) error) error {
	return stream.Scan(ctx, log, topic, partition, from, end, f)
}
