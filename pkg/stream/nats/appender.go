package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// replyTokens is how many reply subjects an appender uses in turn. A lost acknowledgement shows as the next one on the
// wrong subject. More of them would push each other out of the server's routing caches.
const replyTokens = 64

// headerReserve is what an owner's chain and other fixed headers may add to a record, in bytes.
const headerReserve = 256

// maxHeaders is what the server takes of a record's headers; beyond it it refuses the record
// after those behind it are on their way.
const maxHeaders = 1<<16 - 1 - headerReserve

// appender publishes the records of one partition.
//
// One goroutine appends; the acknowledgements arrive in the goroutine of the
// subscription, and the watcher of the log may kill at any time. The goroutine that decides
// the fate of an append holds ackMu, so that fates come in order and once.
type appender struct {
	place
	log      *Log
	fenced   bool
	ack      stream.AckFunc
	maxBytes int

	replicated bool // fenced by sequences, not by a chain
	window     int  // most unacknowledged records

	// Of the appending goroutine.
	msg    natsgo.Msg
	header natsgo.Header
	prefix string // of message ids
	lastID string
	ids    [2][]string // header values, reused
	idBuf  []byte

	sub     *natsgo.Subscription
	inbox   string
	replies [replyTokens]string
	first   uint64 // an owner's append n is stored at first+n−1

	sent  atomic.Uint64
	acked atomic.Uint64
	dead  atomic.Pointer[error] // why the appender is dead

	waitFor atomic.Int64  // Append or Flush waits on wake for so few in flight; notWaiting
	wake    chan struct{} // holds at most one signal

	ackMu   sync.Mutex // held while a fate is decided and told
	flushed error      // what Flush reports: the error of the first append that failed
	refused uint64     // the first append whose refusal overtook acknowledgements; 0: none
	refusal *apiError

	stuckAt    uint64    // watcher: acked at the last check
	stuckSince time.Time // watcher: since when
}

const notWaiting = -1

func (a *appender) fail(err error) error { return a.Place.Fail("append", -1, err) }

// died returns why the appender is dead, nil if it is not.
func (a *appender) died() error {
	if d := a.dead.Load(); d != nil {
		return *d
	}
	return nil
}

// start subscribes to the acknowledgements and registers with the log.
func (a *appender) start() error {
	a.inbox = a.log.conn.NewInbox()
	for i := range a.replies {
		a.replies[i] = a.inbox + "." + strconv.Itoa(i)
	}
	if a.window == 0 {
		a.window = a.log.o.Window
	}
	a.wake = make(chan struct{}, 1)
	a.waitFor.Store(notWaiting)
	a.header = natsgo.Header{}
	a.msg.Subject, a.msg.Header = a.subject, a.header
	a.ids = [2][]string{{""}, {""}}
	sub, err := a.log.conn.Subscribe(a.inbox+".*", a.onAck)
	if err != nil {
		return classify(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return classify(err)
	}
	a.sub = sub
	a.log.mu.Lock()
	defer a.log.mu.Unlock()
	err = a.log.Held()
	if a.log.isClosed() {
		err = stream.ErrClosed
	}
	if err != nil {
		_ = sub.Unsubscribe()
		return err
	}
	a.log.appenders[a] = struct{}{}
	return nil
}

// Append implements [stream.Appender].
func (a *appender) Append(ctx context.Context, r *stream.Record) (uint64, error) {
	if err := a.died(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n := recordSize(r)
	if n > a.maxBytes {
		return 0, a.fail(fmt.Errorf("%w: %d bytes, the limit is %d", stream.ErrTooLarge, n, a.maxBytes))
	}
	if n -= len(r.Value); n > maxHeaders {
		return 0, a.fail(fmt.Errorf("%w: %d bytes of headers, the limit is %d", stream.ErrTooLarge, n, maxHeaders))
	}
	seq := a.sent.Load() + 1
	if seq-a.acked.Load() > uint64(a.window) {
		if err := a.wait(ctx, uint64(a.window)/2); err != nil {
			return 0, err
		}
	}
	if err := a.encode(r, seq); err != nil {
		return 0, a.fail(err)
	}
	a.sent.Store(seq) // before the record goes out: its fate may be told at once
	if why := a.log.Held(); why != nil || a.dead.Load() != nil {
		return a.settle(seq, why)
	}
	if err := a.log.conn.PublishMsg(&a.msg); err != nil {
		return a.settle(seq, err)
	}
	a.lastID = a.ids[0][0]
	return seq, nil
}

// Window implements [stream.Windowed].
func (a *appender) Window() int { return a.window }

// encode fills a.msg.
func (a *appender) encode(r *stream.Record, seq uint64) error {
	clear(a.header)
	if err := setHeaders(a.header, r); err != nil {
		return err
	}
	switch {
	case !a.fenced:
	case a.replicated:
		a.idBuf = strconv.AppendUint(a.idBuf[:0], a.first+seq-2, 10)
		a.ids[0][0] = string(a.idBuf)
		a.header[headerExpectedSeq] = a.ids[0]
	default:
		a.idBuf = strconv.AppendUint(append(a.idBuf[:0], a.prefix...), seq, 10)
		a.ids[0][0], a.ids[1][0] = string(a.idBuf), a.lastID
		a.header[headerMsgID], a.header[headerExpectedID] = a.ids[0], a.ids[1]
	}
	a.msg.Reply = a.replies[seq%replyTokens]
	a.msg.Data = r.Value
	return nil
}

// settle takes back an append that was not sent because of cause, or because the
// appender died before. If its fate has been told already, the append counts.
func (a *appender) settle(seq uint64, cause error) (uint64, error) {
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	if a.acked.Load() >= seq {
		return seq, nil
	}
	a.sent.Store(seq - 1)
	if err := a.died(); err != nil {
		return 0, err
	}
	if errors.Is(cause, natsgo.ErrMaxPayload) || errors.Is(cause, natsgo.ErrBadHeaderMsg) {
		return 0, a.fail(classify(cause))
	}
	err := a.fail(fmt.Errorf("%w: %w", stream.ErrUnavailable, classify(cause)))
	a.killLocked(a.fail(fmt.Errorf("%w: %w", stream.ErrUnknown, cause)), err)
	return 0, err
}

// wait blocks until at most n appends are unacknowledged.
func (a *appender) wait(ctx context.Context, n uint64) error {
	a.waitFor.Store(int64(n))
	defer a.waitFor.Store(notWaiting)
	for {
		if err := a.died(); err != nil {
			return err
		}
		if a.sent.Load()-a.acked.Load() <= n {
			return nil
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// signal wakes Append or Flush, if enough is acknowledged or the appender is dead.
func (a *appender) signal() {
	if n := a.waitFor.Load(); n >= 0 && (int64(a.sent.Load()-a.acked.Load()) <= n || a.dead.Load() != nil) {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// onAck decides the fate of the oldest append in flight.
func (a *appender) onAck(m *natsgo.Msg) {
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	if a.dead.Load() != nil {
		return
	}
	seq := a.acked.Load() + 1
	if a.overtook(m, seq) {
		return
	}
	if seq > a.sent.Load() || m.Subject != a.replies[seq%replyTokens] {
		a.killBoth(fmt.Errorf("%w: an acknowledgement was lost", stream.ErrUnknown))
		return
	}
	if m.Header.Get(headerStatus) == statusNoResponders {
		a.killBoth(fmt.Errorf("%w: the stream is not there", stream.ErrUnknown))
		return
	}
	p, err := parseAck(m.Data)
	switch {
	case err != nil:
		a.killBoth(fmt.Errorf("%w: %w", stream.ErrUnknown, err))
	case p.Error != nil:
		a.rejected(seq, p.Error)
	case p.Duplicate, a.fenced && p.Sequence != a.first+seq-1:
		a.killBoth(fmt.Errorf("%w: stored at %d, duplicate %v", stream.ErrUnknown, p.Sequence, p.Duplicate))
	default:
		a.tell(seq, int64(p.Sequence), nil)
		if a.refused == seq+1 {
			a.rejected(a.refused, a.refusal)
		}
		a.signal()
	}
}

// rejected kills the appender because append seq was not stored. In a chain
// nothing after it is stored either; without one that is unknown.
func (a *appender) rejected(seq uint64, e *apiError) {
	class := e.class()
	err := a.fail(class)
	rest := err
	if !a.fenced || !(errors.Is(class, stream.ErrFenced) || errors.Is(class, stream.ErrFull) ||
		errors.Is(class, stream.ErrUnavailable)) {
		rest = a.fail(fmt.Errorf("%w: after %w", stream.ErrUnknown, e))
	}
	a.tell(seq, 0, err)
	dead := err
	if errors.Is(class, stream.ErrTooLarge) { // the contract lets it live on; our chain does not
		dead = rest
	}
	a.killLocked(rest, dead)
}

// tell tells the fate of append seq. ackMu is held.
func (a *appender) tell(seq uint64, offset int64, err error) {
	if err != nil && a.flushed == nil {
		a.flushed = err
	}
	if a.ack != nil {
		a.ack(seq, offset, err)
	}
	a.acked.Store(seq)
}

// killBoth kills with one error for the appends in flight and the later ones.
func (a *appender) killBoth(err error) {
	err = a.fail(err)
	a.killLocked(err, err)
}

// kill ends the appender: appends in flight get the error inFlight, later ones dead. Only the first kill counts.
func (a *appender) kill(inFlight, dead error) {
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	a.killLocked(inFlight, dead)
}

func (a *appender) killLocked(inFlight, dead error) {
	if !a.dead.CompareAndSwap(nil, &dead) {
		return
	}
	for seq, sent := a.acked.Load()+1, a.sent.Load(); seq <= sent; seq++ {
		a.tell(seq, 0, inFlight)
	}
	if a.flushed == nil {
		a.flushed = dead
	}
	a.signal()
}

// disconnected kills after the connection was lost.
func (a *appender) disconnected(s natsgo.Status) {
	a.kill(a.fail(fmt.Errorf("%w: connection %s", stream.ErrUnknown, s)),
		a.fail(fmt.Errorf("%w: connection %s", stream.ErrUnavailable, s)))
}

// checkProgress kills an appender whose oldest append waits for longer than limit.
func (a *appender) checkProgress(now time.Time, limit time.Duration) {
	acked := a.acked.Load()
	if acked == a.sent.Load() || acked != a.stuckAt || a.stuckSince.IsZero() {
		a.stuckAt, a.stuckSince = acked, now
		return
	}
	if now.Sub(a.stuckSince) >= limit {
		err := a.fail(fmt.Errorf("%w: no acknowledgement for %v", stream.ErrUnknown, limit))
		a.kill(err, err)
	}
}

// Flush implements [stream.Appender].
func (a *appender) Flush(ctx context.Context) error {
	if err := a.wait(ctx, 0); err != nil && a.dead.Load() == nil {
		return err
	}
	a.ackMu.Lock()
	defer a.ackMu.Unlock()
	return a.flushed
}

// Close implements [stream.Appender].
func (a *appender) Close() error {
	a.ackMu.Lock()
	err := a.fail(stream.ErrClosed)
	a.flushed = err
	a.dead.Store(&err) // from here on no fate is reported
	a.ackMu.Unlock()
	a.release()
	return nil
}

// release gives back what the appender holds on the connection and in the log.
func (a *appender) release() {
	_ = a.sub.Unsubscribe() // the connection may be gone, which does as well
	a.log.mu.Lock()
	delete(a.log.appenders, a)
	a.log.mu.Unlock()
}

// recordSize is at most what a record takes on the wire, without the chain.
func recordSize(r *stream.Record) int {
	n := len(r.Value) + len(r.Type) + len(r.Key) + (len(r.Key)+2)/3 // a key in base64 at worst
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 4
	}
	return n
}
