package mem

import (
	"context"
	"slices"
	"sync"

	"hindsight/pkg/stream"
)

// pending is an append whose acknowledgement is held back.
type pending struct {
	a      *appender
	seq    uint64
	offset int64
	err    error
	late   *stream.Record // to be stored at delivery; nil: stored already
	fault  Fault
}

// appender writes to one partition.
type appender struct {
	p     *partition
	owner uint64 // 0: no fence
	ack   stream.AckFunc

	broken error // nothing more is stored; guarded by p.mu

	ackMu sync.Mutex // held while ack runs, so that Close can wait for it

	mu    sync.Mutex
	sent  uint64 // number of the last Append
	acked uint64
	err   error         // of the first append that failed
	wake  chan struct{} // closed at the next acknowledgement; nil while nobody waits
}

// Open implements [stream.Log].
func (l *Log) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (stream.Appender,
	stream.Tail, error) {
	p, err := l.find("open", topic, partition)
	if err != nil {
		return nil, stream.Tail{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, stream.Tail{}, p.Fail("open", -1, err)
	}
	r := o.Record()
	fault := l.fault(p, r)
	if fault == TooLarge || size(r) > l.o.MaxBytes {
		return nil, stream.Tail{}, p.Fail("open", -1, stream.ErrTooLarge)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch fault {
	case Full:
		return nil, stream.Tail{}, p.Fail("open", -1, stream.ErrFull)
	case NotStoredUnknown:
		return nil, stream.Tail{}, p.Fail("open", -1, stream.ErrUnknown)
	}
	offset, err := p.store(r)
	if err != nil {
		return nil, stream.Tail{}, p.Fail("open", -1, err)
	}
	p.owner++
	if fault == StoredUnknown {
		return nil, stream.Tail{}, p.Fail("open", -1, stream.ErrUnknown)
	}
	return &appender{p: p, owner: p.owner, ack: o.Ack}, stream.Tail{First: p.first(), Open: offset, Next: p.next}, nil
}

// Writer implements [stream.Log].
func (l *Log) Writer(_ context.Context, topic string, partition int, ack stream.AckFunc) (stream.Appender, error) {
	p, err := l.find("writer", topic, partition)
	if err != nil {
		return nil, err
	}
	return &appender{p: p, ack: ack}, nil
}

func (l *Log) fault(p *partition, r *stream.Record) Fault {
	if l.o.OnAppend == nil {
		return None
	}
	return l.o.OnAppend(p.Topic, p.Partition, r)
}

// Append implements [stream.Appender].
func (a *appender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	l := a.p.log
	if l.isClosed() {
		return 0, a.p.Fail("append", -1, stream.ErrClosed)
	}
	a.mu.Lock()
	err := a.err
	a.mu.Unlock()
	if err != nil {
		return 0, err
	}
	fault := l.fault(a.p, r)
	if fault == TooLarge || size(r) > l.o.MaxBytes {
		return 0, a.p.Fail("append", -1, stream.ErrTooLarge)
	}
	a.mu.Lock()
	a.sent++
	seq := a.sent
	a.mu.Unlock()
	h := pending{a: a, seq: seq, fault: fault}
	if l.o.ManualAcks && l.o.LateStore {
		h.late = &stream.Record{Type: r.Type, Key: slices.Clone(r.Key), Value: slices.Clone(r.Value),
			Headers: slices.Clone(r.Headers)}
	} else {
		h.offset, h.err = a.store(r, fault)
	}
	if !l.o.ManualAcks {
		a.deliver(seq, h.offset, h.err)
		return seq, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks = append(l.acks, h)
	return seq, nil
}

// store decides the fate of an append.
func (a *appender) store(r *stream.Record, fault Fault) (int64, error) {
	p := a.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.broken == nil && a.owner != 0 && a.owner != p.owner {
		a.broken = p.Fail("append", -1, stream.ErrFenced)
	}
	if a.broken == nil && fault == Full {
		a.broken = p.Fail("append", -1, stream.ErrFull)
	}
	if fault == NotStoredUnknown {
		if a.owner != 0 { // the chain of an owner's records is broken for good
			a.broken = p.Fail("append", -1, stream.ErrUnknown)
		}
		return 0, p.Fail("append", -1, stream.ErrUnknown)
	}
	if a.broken != nil {
		return 0, a.broken
	}
	offset, err := p.store(r)
	if err != nil {
		a.broken = p.Fail("append", -1, err)
		return 0, a.broken
	}
	if fault == StoredUnknown {
		return 0, p.Fail("append", -1, stream.ErrUnknown)
	}
	return offset, nil
}

// deliver tells the fate of an append.
func (a *appender) deliver(seq uint64, offset int64, err error) {
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	a.mu.Lock()
	if a.acked == closedAcks {
		a.mu.Unlock()
		return
	}
	if a.err != nil { // after the first failure all fail, and for the same reason
		offset, err = 0, a.err
	}
	a.err = err
	a.mu.Unlock()
	if a.ack != nil {
		a.ack(seq, offset, err)
	}
	a.mu.Lock()
	a.acked = seq
	a.signal()
	a.mu.Unlock()
}

// closedAcks stands in acked for an appender that is closed.
const closedAcks = ^uint64(0)

func (a *appender) signal() {
	if a.wake != nil {
		close(a.wake)
		a.wake = nil
	}
}

// Flush implements [stream.Appender].
func (a *appender) Flush(ctx context.Context) error {
	for {
		a.mu.Lock()
		if a.err != nil || a.acked >= a.sent {
			err := a.err
			a.mu.Unlock()
			return err
		}
		if a.wake == nil {
			a.wake = make(chan struct{})
		}
		wake := a.wake
		a.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements [stream.Appender].
func (a *appender) Close() error {
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acked = closedAcks
	a.err = a.p.Fail("append", -1, stream.ErrClosed)
	a.signal()
	return nil
}

// DeliverAcks delivers the oldest n acknowledgements held back, all if n < 0, and
// returns how many that were. With ManualAcks nothing else delivers them.
func (l *Log) DeliverAcks(n int) int {
	for done := 0; ; done++ {
		l.mu.Lock()
		if done == n || len(l.acks) == 0 {
			l.mu.Unlock()
			return done
		}
		h := l.acks[0]
		l.acks[0] = pending{}
		l.acks = l.acks[1:]
		l.mu.Unlock()
		if h.late != nil {
			h.offset, h.err = h.a.store(h.late, h.fault)
		}
		h.a.deliver(h.seq, h.offset, h.err)
	}
}
