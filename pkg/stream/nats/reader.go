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
	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/stream"
)

// What a reader asks of the server.
const (
	pullExpires      = 30 * time.Second
	silenceLimit     = 2*DefaultHeartbeat + time.Second // after which a consumer is given up
	consumerInactive = 30 * time.Second                 // the server drops a consumer nobody pulls from
	pullBytes        = 8 << 20                          // of one pull
	statusRoom       = 64                               // room for status messages beside records
	recreateInterval = 250 * time.Millisecond           // between attempts to make a consumer anew
	stuckAsk         = DefaultHeartbeat / 2             // between questions whether a consumer is stuck
)

// reader pulls the records of one partition into a channel; Next empties it.
type reader struct {
	place
	log  *Log
	conn *natsgo.Conn
	pos  int64 // the next offset

	msgs        chan *natsgo.Msg
	sub         *natsgo.Subscription // nil: to be made; guarded by subMu
	inbox       string               // of sub
	consumer    string               // its name; "": none was made with sub
	next        string               // subject to pull from
	outstanding int                  // records asked for and not yet taken from msgs
	batch       int                  // most that Next returns
	earliest    bool                 // nothing was returned yet and any start will do
	onDemand    atomic.Bool          // nothing is pulled before Next asks for it
	suspect     int64                // what a consumer passed without a record; 0: none did
	hole        bool                 // a second one passed it too
	replicated  bool                 // consumers are at any of several servers
	missed      int64                // what the stream's leader had when asked, and the consumer had not; 0: nothing
	asked       time.Time            // when it was
	askEvery    time.Duration
	silence     *time.Timer

	kicked  chan struct{}   // the connection is back; holds at most one
	ctx     context.Context // ends with Close, and with the log
	cancel  context.CancelFunc
	subMu   sync.Mutex
	closing bool // guarded by subMu
}

// Read implements [stream.Log].
func (l *Log) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	if l.o.Direct != nil {
		return l.o.Direct(ctx, l, topic, partition, from)
	}
	return l.ReadServed(ctx, topic, partition, from)
}

// ReadServed is Read from the servers, whatever [Options].Direct is.
func (l *Log) ReadServed(ctx context.Context, topic string, partition int, from int64) (_ stream.Reader, err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("read", from, &err)
	if err != nil {
		return nil, err
	}
	r := &reader{place: p, log: l, conn: l.readConn, pos: from, earliest: from == stream.Earliest,
		batch: l.o.MaxBatch, askEvery: stuckAsk, kicked: make(chan struct{}, 1),
		silence: time.NewTimer(time.Hour)}
	r.ctx, r.cancel = context.WithCancel(l.ctx)
	r.silence.Stop()
	l.mu.Lock()
	l.readers[r] = struct{}{} // a log that was closed before tells connect, one that is closed from here on the reader
	l.mu.Unlock()
	if err := r.connect(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// connect checks the position against the log and makes a consumer there.
func (r *reader) connect(ctx context.Context) error {
	i, err := r.log.info(ctx, r.conn, &r.place)
	if err != nil {
		return err
	}
	r.replicated = i.replicated()
	first, next := i.bounds()
	if r.pos > next || r.hole {
		// bounds that are not settled would say that the tail is lost, or that what was dropped is missing
		if first, next, err = r.log.bounds(ctx, r.conn, &r.place); err != nil {
			return err
		}
	}
	switch {
	case r.earliest && r.pos != first:
		r.pos, r.suspect, r.hole = first, 0, false
	case r.pos < first:
		return stream.ErrTruncated
	case r.pos > next:
		return stream.ErrAhead
	case r.hole:
		return stream.ErrGap
	}
	return r.consume(ctx)
}

// consume subscribes and makes the consumer.
func (r *reader) consume(ctx context.Context) error {
	r.inbox = r.conn.NewInbox()
	heartbeats := int(2 * pullExpires / r.log.o.Heartbeat) // of two pulls, if nobody calls Next meanwhile
	r.msgs = make(chan *natsgo.Msg, 2*r.batch+heartbeats+statusRoom)
	sub, err := r.conn.ChanSubscribe(r.inbox, r.msgs)
	if err != nil {
		return classify(err)
	}
	r.subMu.Lock()
	r.sub = sub
	closing := r.closing
	r.subMu.Unlock()
	if closing {
		r.release()
		return stream.ErrClosed
	}
	request := struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
	}{r.stream, jetstream.ConsumerConfig{Description: "read by " + r.conn.Opts.Name,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: uint64(r.pos),
		AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: consumerInactive, Replicas: 1, MemoryStorage: true}}
	var made struct {
		Name string `json:"name"`
	}
	if err := r.log.call(ctx, r.conn, "CONSUMER.CREATE."+r.stream, request, &made); err != nil {
		r.release()
		return contractError(err)
	}
	r.subMu.Lock()
	r.consumer = made.Name
	r.subMu.Unlock()
	r.next = r.log.o.APIPrefix + ".CONSUMER.MSG.NEXT." + r.stream + "." + made.Name
	r.outstanding = 0
	return nil
}

// OnDemand says whether the reader pulls only what Next asks for, from its next pull on. Otherwise the server sends
// ahead: records are there when Next is called, and each costs a wake-up when it is stored.
func (r *reader) OnDemand(on bool) { r.onDemand.Store(on) }

// pull keeps up to two batches asked for, or one that ends where the log ends.
func (r *reader) pull() error {
	want, onDemand := 2*r.batch-r.outstanding, r.onDemand.Load()
	if want < r.batch || onDemand && r.outstanding > 0 {
		return nil
	}
	request := make([]byte, 0, 96)
	request = strconv.AppendInt(append(request, `{"batch":`...), int64(want), 10)
	request = strconv.AppendInt(append(request, `,"expires":`...), int64(pullExpires), 10)
	request = strconv.AppendInt(append(request, `,"idle_heartbeat":`...), int64(r.log.o.Heartbeat), 10)
	request = strconv.AppendInt(append(request, `,"max_bytes":`...), max(pullBytes, 2*r.conn.MaxPayload()), 10)
	if onDemand {
		request = append(request, `,"no_wait":true`...) // with expires: it waits for the first record, but for no other
	}
	request = append(request, '}')
	if err := r.conn.PublishRequest(r.next, r.inbox, request); err != nil {
		return classify(err)
	}
	r.outstanding += want
	return nil
}

// errAgain says that the consumer has to be made anew.
var errAgain = errors.New("consumer lost")

// Next implements [stream.Reader].
func (r *reader) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	had := len(dst)
	for {
		if err := r.ready(ctx); err != nil {
			return dst, r.Fail("read", r.pos, err)
		}
		m, err := r.receive(ctx)
		if err == nil {
			dst, err = r.drain(dst, m)
		}
		if errors.Is(err, errAgain) {
			r.release()
		} else if err != nil {
			return dst, r.Fail("read", r.pos, err)
		}
		if len(dst) > had {
			return dst, nil
		}
	}
}

// ready makes the reader's consumer if there is none, waiting out a log that is away.
func (r *reader) ready(ctx context.Context) error {
	for {
		switch {
		case r.ctx.Err() != nil:
			return stream.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.subMu.Lock()
		connected := r.sub != nil
		r.subMu.Unlock()
		if connected {
			return nil
		}
		err := r.connect(ctx)
		if !errors.Is(err, stream.ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(recreateInterval):
		case <-r.kicked:
		case <-ctx.Done():
		case <-r.ctx.Done():
		}
	}
}

// receive returns the next message, waiting for it.
func (r *reader) receive(ctx context.Context) (*natsgo.Msg, error) {
	select {
	case <-r.kicked:
		return nil, errAgain
	default:
	}
	if r.pull() != nil {
		return nil, errAgain // connect says what is wrong
	}
	select {
	case m, ok := <-r.msgs:
		return r.got(m, ok)
	default:
	}
	r.silence.Reset(silenceLimit)
	defer r.silence.Stop()
	select {
	case m, ok := <-r.msgs:
		return r.got(m, ok)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ctx.Done():
		return nil, stream.ErrClosed
	case <-r.kicked:
		return nil, errAgain
	case <-r.silence.C:
		return nil, errAgain
	}
}

// got returns a message, or the error of a subscription that was closed under the reader.
func (r *reader) got(m *natsgo.Msg, open bool) (*natsgo.Msg, error) {
	switch {
	case open:
		return m, nil
	case r.ctx.Err() != nil:
		return nil, stream.ErrClosed
	}
	return nil, fmt.Errorf("%w: the connection is closed", stream.ErrUnavailable)
}

// drain takes m and what else is there, at most a batch.
func (r *reader) drain(dst []stream.Record, m *natsgo.Msg) ([]stream.Record, error) {
	for end := len(dst) + r.batch; ; {
		var err error
		if dst, err = r.take(dst, m); err != nil {
			return dst, err
		}
		if len(dst) == end {
			break
		}
		var ok bool
		select {
		case m, ok = <-r.msgs:
		default:
		}
		if !ok {
			break
		}
	}
	return dst, nil
}

// take appends the record of m to dst, or heeds its status.
func (r *reader) take(dst []stream.Record, m *natsgo.Msg) ([]stream.Record, error) {
	seq, time, ok := parseReply(m.Reply)
	if !ok {
		return dst, r.heed(m.Header)
	}
	r.outstanding--
	switch {
	case seq < r.pos:
		return dst, nil
	case seq > r.pos:
		return dst, r.passed()
	}
	r.pos, r.suspect, r.earliest = seq+1, 0, false
	if t := m.Header[stream.HeaderType]; len(t) > 0 && t[0] == typeFill {
		return dst, nil
	}
	dst = append(dst, stream.Record{Offset: seq, Time: time, Value: m.Data})
	getHeaders(&dst[len(dst)-1], m.Header)
	return dst, nil
}

// passed notes that the consumer has passed the position without a record: that was lost
// on the way or is not there, which a second consumer tells.
func (r *reader) passed() error {
	r.hole, r.suspect = r.suspect == r.pos, r.pos
	return errAgain
}

// heed handles a status message. One that ends a pull says how many records of it
// will not come; any other but a heartbeat means that the consumer is gone.
//
// A heartbeat says how far the consumer has come, and arrives behind all that it sent before, as it comes from the same
// queue. Where nothing follows a hole, it alone tells of it. What the stream says of its end does not do: a record that
// is on its way, or that the server of the consumer does not have yet, would pass for a hole.
func (r *reader) heed(h natsgo.Header) error {
	if h.Get(headerStatus) == statusHeartbeat {
		if last, err := strconv.ParseInt(h.Get(headerLastSeq), 10, 64); err == nil && last >= r.pos {
			return r.passed()
		}
		return r.stuck()
	}
	left, err := strconv.Atoi(h.Get(headerPending))
	if h.Get(headerStatus) == statusNoMessages {
		left, err = r.outstanding, nil
	}
	if err != nil {
		return errAgain
	}
	r.outstanding = max(0, r.outstanding-left)
	return nil
}

// stuck gives a consumer up at whose server the next record is missing from one question to the next, though the
// stream's leader has it: a replica that lost what it had acknowledged may never get it. The next consumer may be at
// another server.
func (r *reader) stuck() error {
	if !r.replicated || time.Since(r.asked) < r.askEvery {
		return nil
	}
	r.asked = time.Now()
	i, err := r.log.info(r.ctx, r.conn, &r.place)
	was := r.missed
	if r.missed = 0; err != nil || int64(i.State.LastSeq) < r.pos {
		return nil
	}
	if r.missed = r.pos; was != r.pos {
		return nil
	}
	r.missed = 0
	r.log.o.Logger.Warn("a server of the log lacks records that the stream's leader has; reading from another: its "+
		"replica is far behind or damaged", "stream", r.stream, "offset", r.pos)
	return errAgain
}

// Position implements [stream.Reader].
func (r *reader) Position() int64 { return r.pos }

// kick makes the reader start over: the connection was away.
func (r *reader) kick() {
	select {
	case r.kicked <- struct{}{}:
	default:
	}
}

// release gives up the consumer and has the server remove it: by itself it would do so after
// consumerInactive, and a stream has a thousand at most.
func (r *reader) release() {
	r.subMu.Lock()
	defer r.subMu.Unlock()
	if r.sub == nil {
		return
	}
	_ = r.sub.Unsubscribe() // the connection may be gone, which does as well
	if r.consumer != "" {
		_ = r.conn.Publish(r.log.o.APIPrefix+".CONSUMER.DELETE."+r.stream+"."+r.consumer, nil)
	}
	r.sub, r.consumer = nil, ""
}

// Close implements [stream.Reader].
func (r *reader) Close() error {
	r.cancel()
	r.subMu.Lock()
	r.closing = true
	r.subMu.Unlock()
	r.release()
	r.log.mu.Lock()
	delete(r.log.readers, r)
	r.log.mu.Unlock()
	return nil
}
