// Package nats keeps a log in NATS JetStream and carries requests over NATS.
//
// Partition p of topic shop.contexts is the stream shop_contexts_<p> with the one
// subject shop.contexts.<p>; a stream's sequence is the offset, starting at 1 and
// without gaps.
//
// # Appending
//
// Records are published with a window of unacknowledged ones. The first bad, lost
// or late acknowledgement kills the appender: a log must not accept a record after
// it lost the one before.
//
// The records of an owner form a chain: each carries a message id and the id
// expected before it, beginning with the open record. A record of anyone else,
// the open record of the next owner above all, breaks the chain, and the server
// rejects everything the earlier owner still has on its way. (Expected sequence
// numbers would not do: a later record in flight can match by accident.)
//
// # Reading
//
// A reader pulls through an ephemeral consumer that it replaces when something is
// lost on the way, checks that sequences are contiguous, and keeps its own
// position. Heartbeats of the consumer tell of records that are missing at the end.
package nats

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// Defaults of [Options].
const (
	DefaultWindow     = 1088 // a bit more than a writer of the service has on its way
	DefaultMaxBatch   = 1000
	DefaultAckTimeout = 10 * time.Second
	DefaultAPITimeout = 5 * time.Second
	DefaultHeartbeat  = 5 * time.Second
	DefaultAPIPrefix  = "$JS.API"
)

// Options configure a log. The zero value is ready to use.
type Options struct {
	Window     int           // most unacknowledged records of an appender
	MaxBatch   int           // most records one Next returns
	AckTimeout time.Duration // an appender without progress for so long is dead
	APITimeout time.Duration // most that one question to the server takes
	// of a reader that waits, at most the default; after two a hole that nothing follows is told
	Heartbeat time.Duration
	APIPrefix string       // of the JetStream API, for domains and imports
	Replicas  int          // of the streams that Create makes; 0 means 1
	MaxStore  int64        // bytes that the server's store may hold, for Fill; 0: not known
	Logger    *slog.Logger // logs requests that a [Client]'s bus refuses, and servers that lag; nil: disabled
	// State, unless nil, tells the first and last sequence of a stream of a server in this process. ok is false if it
	// does not know.
	State func(stream string) (first, last uint64, ok bool)
	// Direct, unless nil, is how [Log.Read] reads.
	Direct func(ctx context.Context, l *Log, topic string, partition int, from int64) (stream.Reader, error)
}

func (o Options) withDefaults() Options {
	o.Window = cmp.Or(max(o.Window, 0), DefaultWindow)
	o.MaxBatch = cmp.Or(max(o.MaxBatch, 0), DefaultMaxBatch)
	o.AckTimeout = cmp.Or(max(o.AckTimeout, 0), DefaultAckTimeout)
	o.APITimeout = cmp.Or(max(o.APITimeout, 0), DefaultAPITimeout)
	o.Heartbeat = cmp.Or(max(o.Heartbeat, 0), DefaultHeartbeat)
	o.APIPrefix = cmp.Or(o.APIPrefix, DefaultAPIPrefix)
	o.Replicas = max(o.Replicas, 1)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// replicated reports whether the streams that Create makes have replicas.
func (o *Options) replicated() bool { return o.Replicas > 1 }

// checkEvery is how often appenders are looked at whether they wait too long.
func (o *Options) checkEvery() time.Duration { return max(o.AckTimeout/4, time.Millisecond) }

// Log is a [stream.Log] in JetStream.
type Log struct {
	conn       *natsgo.Conn
	readConn   *natsgo.Conn // of readers, so that writes do not wait behind reads
	boundsConn *natsgo.Conn // of Bounds, so that it does not wait behind either
	o          Options

	mu        sync.Mutex
	appenders map[*appender]struct{}
	readers   map[*reader]struct{}

	spell atomic.Pointer[spell] // see Hold

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	watcher sync.WaitGroup
}

var (
	_ stream.Log    = (*Log)(nil)
	_ stream.Holder = (*Log)(nil)
)

// newLog returns a log on connections, which stay the caller's: Close does not
// close them. Connections with reconnect buffers are allowed; an appender that
// notices a disconnect is dead all the same.
func newLog(conn, readConn, boundsConn *natsgo.Conn, o Options) *Log {
	l := &Log{conn: conn, readConn: readConn, boundsConn: boundsConn, o: o.withDefaults(),
		appenders: map[*appender]struct{}{}, readers: map[*reader]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.spell.Store(newSpell())
	l.watcher.Go(l.watch)
	return l
}

// watch kills appenders that lost their connection or wait too long, and makes
// readers start over after a reconnect.
func (l *Log) watch() {
	lost := l.conn.StatusChanged(natsgo.DISCONNECTED, natsgo.RECONNECTING, natsgo.CLOSED)
	defer l.conn.RemoveStatusListener(lost)
	back := l.readConn.StatusChanged(natsgo.CONNECTED, natsgo.CLOSED)
	defer l.readConn.RemoveStatusListener(back)
	tick := time.NewTicker(l.o.checkEvery())
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case s := <-lost:
			for _, a := range l.allAppenders() {
				a.disconnected(s)
			}
		case <-back:
			for _, r := range l.allReaders() {
				r.kick()
			}
		case now := <-tick.C:
			for _, a := range l.allAppenders() {
				a.checkProgress(now, l.o.AckTimeout)
			}
		}
	}
}

func (l *Log) allAppenders() []*appender {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.appenders))
}

func (l *Log) allReaders() []*reader {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.readers))
}

// Close implements [stream.Log]. What is not acknowledged by then is unknown.
func (l *Log) Close() error {
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.watcher.Wait()
	for _, a := range l.allAppenders() {
		a.kill(a.fail(fmt.Errorf("%w: %w", stream.ErrClosed, stream.ErrUnknown)), a.fail(stream.ErrClosed))
		a.release()
	}
	for _, r := range l.allReaders() {
		_ = r.Close()
	}
	return nil
}

func (l *Log) isClosed() bool { return l.ctx.Err() != nil }
