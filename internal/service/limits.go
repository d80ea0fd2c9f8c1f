package service

import (
	"cmp"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
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

// limits returns the limits of the joiner's heart.
func (c *SystemConfig) limits() codec.Limits {
	return codec.Limits{Heart: loop.Heart, Pending: int64(c.MaxPending), Dedup: int64(c.Dedup),
		Bytes: int64(cmp.Or(c.PendingBytes, DefaultMaxBytes))}
}
