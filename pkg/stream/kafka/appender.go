package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hindsight/pkg/stream"
)

// Limits of a batch.
const (
	softBatch  = 900 << 10 // bytes of a batch of more than one record
	maxRecords = 4000
)

// appender adds records to one partition. One goroutine appends to the batch fill;
// another, run, sends one batch after the other and tells the fates of its records.
type appender struct {
	log       *Log
	sender    sender
	ack       stream.AckFunc
	hard      int                                  // most bytes of a batch
	soft      int                                  // of one with more than one record
	headers   func(*stream.Record) []stream.Header // what a record gets beside its own; nil: none
	producer  int64
	epoch     int16
	sequence  int32     // of the next batch; touched by run alone
	stirred   time.Time // when the last batch was stored, by the wall clock; touched by run alone
	ctx       context.Context
	cancel    context.CancelFunc
	done      chan struct{} // closed when run is over
	work      chan struct{} // holds a signal while fill has records that run does not know of
	room      chan struct{} // holds a signal after fill was taken, records were told, or the end
	closeOnce sync.Once

	mu      sync.Mutex
	fill    *batch // records not yet sent
	spare   *batch // nil while it is being sent
	sent    uint64 // records that got a number
	told    uint64 // records whose fate was told
	dead    error  // what Append returns
	flushed error  // what Flush returns when all is told

	ackMu sync.Mutex // held while fates are told
	mute  bool       // no fate is reported any more
}

// newAppender makes an appender that has no producer yet and does not run. After an error it has its place only.
func (l *Log) newAppender(ctx context.Context, topic string, partition int, ack stream.AckFunc) (a *appender,
	err error) {
	a = &appender{log: l, ack: ack,
		done: make(chan struct{}), work: make(chan struct{}, 1), room: make(chan struct{}, 1),
		fill: &batch{}, spare: &batch{}}
	a.sender = sender{line: line{c: l.c}, search: -1}
	if a.sender.p, err = l.place(topic, partition); err != nil {
		return a, err
	}
	if _, err := l.c.leader(ctx, &a.sender.p, true); err != nil && !isTransient(err) {
		return a, err
	}
	if a.hard, err = l.c.largestMessage(ctx, topic); err != nil {
		return a, err
	}
	a.soft = min(softBatch, a.hard-a.hard/10)
	a.fill.reset()
	if l.c.o.Headers != nil {
		a.headers = l.c.o.Headers(topic)
	}
	return a, nil
}

// start lets an appender run.
func (a *appender) start() error {
	a.ctx, a.cancel = context.WithCancel(a.log.c.ctx)
	if err := a.log.register(a); err != nil {
		a.cancel()
		a.sender.close()
		return err
	}
	go a.run()
	return nil
}

func (a *appender) fail(err error) error { return a.sender.p.Fail("append", -1, err) }

// Append implements [stream.Appender].
func (a *appender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	more := a.more(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if a.dead != nil {
			return 0, a.dead
		}
		b, before := a.fill, len(a.fill.b)
		b.add(r, more)
		if b.count == 1 && len(b.b) <= a.hard || b.count <= maxRecords && len(b.b) <= a.soft {
			a.sent++
			if b.count == 1 {
				signal(a.work)
			}
			return a.sent, nil
		}
		size := len(b.b) - before
		b.count--
		if b.b = b.b[:before]; batchHead+size > a.hard {
			b.b = slices.Clone(b.b) // lets go of the room for what is too large
			return 0, a.fail(fmt.Errorf("%w: %d bytes, the limit is %d", stream.ErrTooLarge, size, a.hard-batchHead))
		}
		if err := a.wait(ctx); err != nil {
			return 0, err
		}
	}
}

// more returns the headers that a record gets beside its own.
func (a *appender) more(r *stream.Record) []stream.Header {
	if a.headers == nil {
		return nil
	}
	return a.headers(r)
}

// wait waits, without the lock, for something to change.
func (a *appender) wait(ctx context.Context) error {
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case <-a.room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Flush implements [stream.Appender].
func (a *appender) Flush(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.told < a.sent && !errors.Is(a.dead, stream.ErrClosed) {
		if err := a.wait(ctx); err != nil {
			return err
		}
	}
	return a.flushed
}

// run sends what Append fills.
func (a *appender) run() {
	defer close(a.done)
	for {
		select {
		case <-a.work:
		case <-a.ctx.Done():
			return
		}
		for {
			b := a.take()
			if b == nil {
				break
			}
			b.seal(a.producer, a.epoch, a.sequence, time.Now().UnixMilli())
			r, err := a.deliver(b.b)
			if errors.Is(err, stream.ErrTooLarge) { // the topic's limit was lowered; this appender does not live on
				err = fmt.Errorf("%w: the topic takes no batch of %d bytes any more, open again: %v",
					stream.ErrUnavailable, len(b.b), err)
			}
			if err != nil {
				if a.ctx.Err() == nil { // else Close reports
					a.kill(err, err)
				}
				return
			}
			a.stirred = wallClock()
			a.sequence = nextSequence(a.sequence, b.count)
			a.sender.search = r.base + int64(b.count)
			a.stored(r.base, b)
		}
	}
}

// idleCheck is much less than the day after which brokers forget a producer.
const idleCheck = 6 * time.Hour

// wallClock also goes on while a machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// deliver sends a batch. After a long time without one the broker may have forgotten
// both this owner and the next: so the log is asked first.
func (a *appender) deliver(b []byte) (produced, error) {
	me := owner{a.producer, a.epoch}
	if p := &a.sender.p; wallClock().Sub(a.stirred) > idleCheck && me.isOurs(ownerID(p.Topic, p.Partition)) {
		last, _, err := a.log.c.lastOwner(a.ctx, p)
		if err == nil && me.before(last) {
			err = stream.ErrFenced
		}
		if err != nil {
			return produced{}, err
		}
	}
	return a.sender.deliver(a.ctx, b)
}

// take returns the batch to be sent, nil if there is nothing.
func (a *appender) take() *batch {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fill.count == 0 || a.dead != nil {
		return nil
	}
	b := a.fill
	a.fill, a.spare = a.spare, nil
	a.fill.reset()
	signal(a.room)
	return b
}

// stored tells that a batch is stored from offset base on.
func (a *appender) stored(base int64, b *batch) {
	a.ackMu.Lock()
	if a.ack != nil && !a.mute {
		for i := range b.count {
			a.ack(a.told+1+uint64(i), base+int64(i), nil) // told changes under ackMu only
		}
	}
	a.mu.Lock()
	a.told += uint64(b.count)
	a.spare = b
	a.mu.Unlock()
	a.ackMu.Unlock()
	signal(a.room)
}

// kill ends the appender: what is not told yet gets the error rest, later Appends get dead. Only the first counts.
func (a *appender) kill(rest, dead error) {
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	a.mu.Lock()
	if a.dead != nil {
		a.mu.Unlock()
		return
	}
	rest, dead = a.fail(rest), a.fail(dead)
	a.dead = dead
	from, to := a.told+1, a.sent
	a.mu.Unlock()
	for seq := from; seq <= to; seq++ {
		if a.ack != nil && !a.mute {
			a.ack(seq, 0, rest)
		}
	}
	a.mu.Lock()
	a.told = to
	if a.flushed = rest; from > to {
		a.flushed = dead
	}
	a.mu.Unlock()
	signal(a.room)
}

// Close implements [stream.Appender].
func (a *appender) Close() error {
	a.ackMu.Lock()
	a.mute = true
	a.ackMu.Unlock()
	a.end()
	a.mu.Lock()
	a.dead, a.flushed = a.fail(stream.ErrClosed), a.fail(stream.ErrClosed)
	a.mu.Unlock()
	signal(a.room)
	return nil
}

// logClosed ends the appender with its log: what is not acknowledged is unknown.
func (a *appender) logClosed() {
	a.end()
	a.kill(fmt.Errorf("%w: %w", stream.ErrClosed, stream.ErrUnknown), stream.ErrClosed)
}

// end stops run and waits for it.
func (a *appender) end() {
	a.closeOnce.Do(func() {
		a.cancel()
		a.sender.close()
		<-a.done
		a.log.unregister(a)
	})
}
