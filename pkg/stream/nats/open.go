package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// politeOpens is how often an open record asks for the sequence it expects before it goes without. With the expectation
// an open that was delayed somewhere cannot later take the partition from its present owner; without it an earlier
// owner that writes faster than we ask cannot keep us out.
const politeOpens = 4

// Open implements [stream.Log].
func (l *Log) Open(ctx context.Context, topic string, partition int, o stream.OpenOptions) (a stream.Appender,
	tail stream.Tail, err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("open", -1, &err)
	for try, again := 1, err == nil; again; try++ {
		a, tail, err = l.openOnce(ctx, p, o, try <= politeOpens)
		again = errors.Is(err, errOpenAgain)
	}
	return a, tail, err
}

func (l *Log) openOnce(ctx context.Context, p place, o stream.OpenOptions, polite bool) (stream.Appender,
	stream.Tail, error) {
	i, err := l.info(ctx, l.conn, &p)
	if err != nil {
		return nil, stream.Tail{}, err
	}
	a := &appender{place: p, log: l, fenced: true, ack: o.Ack, maxBytes: l.maxBytes(i)}
	a.replicate(i)
	publish := l.publishOpen
	if a.replicated {
		publish = l.publishLeap
	}
	offset, err := publish(ctx, a, i, o, polite)
	if err != nil {
		return nil, stream.Tail{}, err
	}
	a.first = offset + 1
	if err := a.start(); err != nil {
		return nil, stream.Tail{}, err
	}
	first, _ := i.bounds()
	return a, stream.Tail{First: first, Open: int64(offset), Next: int64(offset) + 1}, nil
}

// errOpenAgain is the answer to an open record that came too late.
var errOpenAgain = errors.New("another record was stored first")

// publishOpen appends the open record, alone, and returns its sequence. It begins the chain of a.
func (l *Log) publishOpen(ctx context.Context, a *appender, i *streamInfo, o stream.OpenOptions,
	polite bool) (uint64, error) {
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // never fails
	a.prefix = fmt.Sprintf("%d.%x-", i.State.LastSeq+1, nonce)
	a.lastID = a.prefix + "0"
	m, err := openMessage(a, &o)
	if err != nil {
		return 0, err
	}
	m.Header[headerMsgID] = []string{a.lastID}
	if polite {
		m.Header[headerExpectedSeq] = []string{strconv.FormatUint(i.State.LastSeq, 10)}
	}
	reply, err := l.askOpen(ctx, m)
	if err != nil {
		return 0, err
	}
	return openedAt(reply)
}

// openMessage makes the open record.
func openMessage(a *appender, o *stream.OpenOptions) (*natsgo.Msg, error) {
	r := o.Record()
	if recordSize(r) > a.maxBytes {
		return nil, stream.ErrTooLarge
	}
	m := &natsgo.Msg{Subject: a.subject, Header: natsgo.Header{}, Data: o.Value}
	return m, setHeaders(m.Header, r)
}

// openedAt returns where the open record is stored.
func openedAt(reply *natsgo.Msg) (uint64, error) {
	p, err := parseAck(reply.Data)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", stream.ErrUnknown, err)
	case p.Error != nil && (p.Error.ErrCode == codeWrongLastSequence || p.Error.ErrCode == codeWrongSequence ||
		p.Error.ErrCode == codeBatchIncomplete):
		return 0, errOpenAgain
	case p.Error != nil:
		return 0, p.Error.class()
	case p.Duplicate: // the record that is there is not ours
		return 0, errOpenAgain
	}
	return p.Sequence, nil
}

// askOpen publishes the open record and waits for the answer. Once it has been sent, a missing answer means ErrUnknown.
func (l *Log) askOpen(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
	if l.isClosed() {
		return nil, stream.ErrClosed
	}
	if !l.conn.IsConnected() {
		return nil, fmt.Errorf("%w: not connected", stream.ErrUnavailable)
	}
	spell := l.spell.Load().ctx
	if spell.Err() != nil {
		return nil, context.Cause(spell)
	}
	own, cancel := context.WithTimeout(ctx, l.o.AckTimeout)
	defer cancel()
	defer context.AfterFunc(spell, cancel)()
	reply, err := l.conn.RequestMsgWithContext(own, m)
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, natsgo.ErrNoResponders), errors.Is(err, natsgo.ErrReconnectBufExceeded),
		errors.Is(err, natsgo.ErrMaxPayload):
		return nil, classify(err)
	case spell.Err() != nil:
		return nil, fmt.Errorf("%w: %v", stream.ErrUnknown, context.Cause(spell))
	}
	return nil, fmt.Errorf("%w: %w", stream.ErrUnknown, err)
}

// maxBytes is the largest record a stream takes, chain and headers apart.
func (l *Log) maxBytes(i *streamInfo) int {
	n := l.conn.MaxPayload()
	if m := int64(i.Config.MaxMsgSize); m > 0 {
		n = min(n, m)
	}
	return int(n) - headerReserve
}

// Writer implements [stream.Log].
func (l *Log) Writer(ctx context.Context, topic string, partition int, ack stream.AckFunc) (_ stream.Appender,
	err error) {
	p, err := l.place(topic, partition)
	defer p.Locate("writer", -1, &err)
	if err != nil {
		return nil, err
	}
	i, err := l.info(ctx, l.conn, &p)
	if err != nil {
		return nil, err
	}
	a := &appender{place: p, log: l, ack: ack, maxBytes: l.maxBytes(i)}
	a.replicate(i)
	if err := a.start(); err != nil {
		return nil, err
	}
	return a, nil
}
