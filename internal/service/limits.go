package service

import "hindsight/internal/loop"

// DefaultMaxBytes is how many bytes the decisions of rounds that wait may hold: those of
// 1,000 decisions a second with contexts of 1 KB in a window of ten minutes.
const DefaultMaxBytes = 1 << 30

// MaxPartitions and MaxPendingMiB are the most that flags may ask for: each partition has
// streams and writers of its own.
const (
	MaxPartitions = 4096
	MaxPendingMiB = 1 << 20
)

// What a mark tells of must fit into a record: a bit for each round since the oldest that
// waits, up to 3 bytes for each outcome that is parked, and as many for its refusal.
const (
	maxSpan        = 4_000_000
	maxParked      = 50_000
	maxParkedBytes = 64 << 20
)

// options returns the limits of the heart.
func (c *SystemConfig) options() loop.JoinerOptions {
	o := loop.JoinerOptions{Partitions: c.Partitions, MaxPending: c.MaxPending, Dedup: c.Dedup, Seed: loop.TableSeed(c.Seed),
		MaxPendingBytes: c.PendingBytes, MaxSpan: maxSpan, MaxParked: maxParked, MaxParkedBytes: maxParkedBytes}
	if o.MaxPendingBytes == 0 {
		o.MaxPendingBytes = DefaultMaxBytes
	}
	return o
}
