// Package testkit has logs for tests of what waits for acknowledgements.
package testkit

import (
	"context"
	"slices"
	"sync"
	"testing"

	"hindsight/pkg/stream"
)

// WindowedLog is a log that takes only so many records at once into a partition, as a
// replicated stream does, and holds back what it acknowledges.
type WindowedLog struct {
	stream.Log
	T      *testing.T
	Window int
	Hold   bool                        // of what is acknowledged from now on
	Dead   func(context.Context) error // what Append and Writer come to; nil: all goes well

	mu   sync.Mutex
	held []func()
}

type windowedAppender struct {
	stream.Appender
	log      *WindowedLog
	inFlight int // guarded by log.mu
}

func (l *WindowedLog) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (
	stream.Appender, stream.Tail, error) {
	a := &windowedAppender{log: l}
	o.Ack = a.later(o.Ack)
	out, tail, err := l.Log.Open(ctx, topic, partition, o)
	a.Appender = out
	return a, tail, err
}

func (l *WindowedLog) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (
	stream.Appender, error) {
	a := &windowedAppender{log: l}
	if l.Dead != nil {
		return nil, l.Dead(ctx)
	}
	out, err := l.Log.Writer(ctx, topic, partition, a.later(ack))
	a.Appender = out
	return a, err
}

// later returns an AckFunc that is held back.
func (a *windowedAppender) later(ack stream.AckFunc) stream.AckFunc {
	return func(seq uint64, offset int64, err error) {
		a.log.mu.Lock()
		a.log.held = append(a.log.held, func() {
			a.log.mu.Lock()
			a.inFlight--
			a.log.mu.Unlock()
			if ack != nil {
				ack(seq, offset, err)
			}
		})
		hold := a.log.Hold
		a.log.mu.Unlock()
		if !hold {
			a.log.Deliver(-1)
		}
	}
}

// Deliver tells of the first n records that are held back, of all if n is negative.
func (l *WindowedLog) Deliver(n int) {
	l.mu.Lock()
	if n < 0 || n > len(l.held) {
		n = len(l.held)
	}
	first := slices.Clone(l.held[:n])
	l.held = l.held[n:]
	l.mu.Unlock()
	for _, tell := range first {
		tell()
	}
}

// Release tells of all that is held back, and holds nothing back any more.
func (l *WindowedLog) Release() {
	l.mu.Lock()
	l.Hold = false
	l.mu.Unlock()
	l.Deliver(-1)
}

func (a *windowedAppender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	a.log.mu.Lock()
	a.inFlight++
	if a.inFlight > a.log.Window {
		a.log.T.Errorf("Append blocks: %d records are on their way", a.inFlight)
	}
	a.log.mu.Unlock()
	if a.log.Dead != nil {
		return 0, a.log.Dead(ctx)
	}
	return a.Appender.Append(ctx, r)
}

func (a *windowedAppender) Window() int { return a.log.Window }

// Held returns how many acknowledgements are held back.
func (l *WindowedLog) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Forget drops the acknowledgements that are held back.
func (l *WindowedLog) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
}
