package stream

import (
	"context"
)

// growth is by how much each block of [ScanBack] is larger than the one before.
const growth = 8

// ScanBack calls f for the records of a partition that exist now and lie before end, block by block from the end
// towards the beginning, and in order inside a block. The first block has at most the given number of offsets. After
// each block enough says whether to stop. [ErrStop] of f passes over the rest of its block; another error ends the scan
// and is returned with its place.
func ScanBack(ctx context.Context, log Log, topic string, partition int, end, block int64,
	f func(*Record) error, enough func() bool) error {
	first, next, err := log.Bounds(ctx, topic, partition)
	if err != nil {
		return err
	}
	for end = min(end, next); end > first; block *= growth {
		from := max(first, end-block)
		if err := Scan(ctx, log, topic, partition, from, end, f); err != nil {
			return err
		}
		if enough() {
			return nil
		}
		end = from
	}
	return nil
}
