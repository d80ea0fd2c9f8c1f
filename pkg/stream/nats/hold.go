package nats

import (
	"context"
	"fmt"

	"hindsight/pkg/stream"
)

// spell is a time in which a server does what is asked: it stores what it is sent, or answers.
// Its context ends with the cause why it does so no more.
type spell struct {
	ctx context.Context
	end context.CancelCauseFunc
}

func newSpell() *spell {
	ctx, end := context.WithCancelCause(context.Background())
	return &spell{ctx, end}
}

// Hold makes whatever appends fail with why, at once and until [Log.Resume]: for a caller
// that knows that the server stores nothing and does not say so. What is on its way is unknown; an
// appender without such records lives on if it appends nothing meanwhile. Reading goes on.
func (l *Log) Hold(why error) {
	l.mu.Lock()
	l.spell.Load().end(why)
	l.mu.Unlock()
	for _, a := range l.allAppenders() {
		if a.acked.Load() < a.sent.Load() {
			a.kill(a.fail(fmt.Errorf("%w: %v", stream.ErrUnknown, why)), a.fail(why))
		}
	}
}

// Resume ends what [Log.Hold] began. Readers start over where they are: the server may have forgotten them.
func (l *Log) Resume() {
	l.spell.Store(newSpell())
	for _, r := range l.allReaders() {
		r.kick()
	}
}

// Held implements [stream.Holder].
func (l *Log) Held() error {
	if ctx := l.spell.Load().ctx; ctx.Err() != nil { // which takes no lock
		return context.Cause(ctx)
	}
	return nil
}
