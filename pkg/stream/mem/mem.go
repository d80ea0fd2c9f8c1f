// Package mem is a log and a bus in memory, for tests, simulations and backtests.
//
// With the defaults it is deterministic: no goroutine, a counter for a clock, and acknowledgements that arrive inside
// Append. [Options] hold the knobs a simulation turns: late acknowledgements, records stored late, faults at chosen
// appends, offsets that start anywhere and have gaps. The methods Truncate, DropTail and Edit damage a partition the
// way retention, a power cut and bad disks do.
package mem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"hindsight/pkg/stream"
)

// Fault is what an append meets.
type Fault uint8

// The faults.
const (
	None             Fault = iota
	StoredUnknown          // stored, but the acknowledgement is lost: ErrUnknown
	NotStoredUnknown       // not stored, and the caller cannot know: ErrUnknown
	Full                   // ErrFull
	TooLarge               // Append returns ErrTooLarge and the appender lives on
)

// Defaults of [Options].
const (
	DefaultMaxBatch = 1000
	DefaultMaxBytes = 1 << 20
)

// Options configure a log. The zero value is a deterministic log without faults whose offsets are 0, 1, 2, …
type Options struct {
	// append time, ns; must not use the log; nil: a counter that starts at 1e9 and grows by 1 an append
	Clock       func() int64
	FirstOffset int64 // of every partition
	Step        int64 // from one offset to the next; 0 means 1
	MaxBytes    int   // of a record or message; 0 means DefaultMaxBytes
	MaxBatch    int   // most records a Next returns; 0 means DefaultMaxBatch

	// ManualAcks holds acknowledgements back until [Log.DeliverAcks]. Without it
	// they arrive inside Append, before it returns.
	ManualAcks bool
	// LateStore, with ManualAcks, stores a record only when its acknowledgement is
	// delivered: until then it is on its way and a new owner can still fence it off.
	LateStore bool
	// StrictBytes overwrites the bytes that Next returned at the following Next, to find readers that keep them.
	StrictBytes bool
	// OnAppend decides the fate of an append, that of an open record too. It is
	// called without a lock held and may use the log, but not the same appender.
	OnAppend func(topic string, partition int, r *stream.Record) Fault
}

// Log is a [stream.Log] and a [stream.Bus]. It is safe for concurrent use.
type Log struct {
	o     Options
	ticks atomic.Int64

	mu     sync.Mutex
	topics map[string][]*partition
	acks   []pending       // held back, oldest first
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	bus bus
}

// New returns an empty log.
func New(o Options) *Log {
	o.Step = max(o.Step, 1)
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), DefaultMaxBytes)
	o.MaxBatch = cmp.Or(max(o.MaxBatch, 0), DefaultMaxBatch)
	l := &Log{o: o, topics: map[string][]*partition{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.ticks.Store(1e9)
	l.bus.maxBytes = o.MaxBytes
	l.bus.subjects = map[string][]*group{}
	return l
}

func (l *Log) now() int64 {
	if l.o.Clock != nil {
		return l.o.Clock()
	}
	return l.ticks.Add(1) - 1
}

func (l *Log) isClosed() bool { return l.ctx.Err() != nil }

// Create implements [stream.Log].
func (l *Log) Create(_ context.Context, name string, partitions int, o stream.TopicOptions) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, ok := l.topics[name]
	var err error
	switch {
	case l.isClosed():
		err = stream.ErrClosed
	case partitions < 1 || name == "":
		err = errors.New("needs a name and at least one partition")
	case ok && len(all) != partitions:
		err = fmt.Errorf("%w: it has %d, not %d", stream.ErrPartitions, len(all), partitions)
	case ok:
		return nil
	}
	if err != nil {
		return stream.Place{Topic: name}.Fail("create", -1, err)
	}
	for i := range partitions {
		all = append(all, &partition{Place: stream.Place{Topic: name, Partition: i}, log: l, o: o,
			next: l.o.FirstOffset})
	}
	l.topics[name] = all
	return nil
}

// Partitions implements [stream.Log].
func (l *Log) Partitions(_ context.Context, name string) (int, error) {
	if _, err := l.find("partitions", name, 0); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.topics[name]), nil
}

// Topics implements [stream.Lister].
func (l *Log) Topics(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.topics)), nil
}

// find returns a partition, or the error of the operation op.
func (l *Log) find(op, name string, number int) (*partition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := stream.ErrNotFound
	if l.isClosed() {
		err = stream.ErrClosed
	} else if all := l.topics[name]; number >= 0 && number < len(all) {
		return all[number], nil
	}
	return nil, stream.Place{Topic: name, Partition: number}.Fail(op, -1, err)
}

// with calls f with a partition that is locked.
func (l *Log) with(op, name string, number int, f func(*partition)) error {
	p, err := l.find(op, name, number)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		f(p)
	}
	return err
}

// Bounds implements [stream.Log].
func (l *Log) Bounds(_ context.Context, name string, number int) (first, next int64, err error) {
	err = l.with("bounds", name, number, func(p *partition) { first, next = p.first(), p.next })
	return first, next, err
}

// Trim implements [stream.Log].
func (l *Log) Trim(_ context.Context, name string, number int, before int64) error {
	p, err := l.find("trim", name, number)
	if err != nil {
		return err
	}
	if !p.o.Trimmable {
		return p.Fail("trim", before, stream.ErrNotTrimmable)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropBefore(before)
	return nil
}

// Close implements [stream.Log]. Acknowledgements still held back arrive now, as ErrUnknown.
func (l *Log) Close() error {
	l.mu.Lock()
	l.cancel()
	held := l.acks
	l.acks = nil
	l.mu.Unlock()
	for i := range held {
		a := held[i].a
		a.deliver(held[i].seq, 0, a.p.Fail("append", -1, fmt.Errorf("%w: %w", stream.ErrClosed, stream.ErrUnknown)))
	}
	return nil
}
