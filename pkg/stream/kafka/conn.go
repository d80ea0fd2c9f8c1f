package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"

	"hindsight/pkg/stream"
)

// maxFrame is more than any response we ask for.
const maxFrame = 256 << 20

// conn is one connection to one broker. Requests and responses whose layout matters for speed are written by hand into
// out and read from in; for the others call uses kafka-go's protocol package. Not safe for concurrent use, but Close
// may be called at any time.
type conn struct {
	net.Conn
	addr     string
	clientID string
	versions map[protocol.ApiKey][2]int16 // that the broker speaks, from and to
	corr     int32
	out, in  []byte // reused
	ahead    []byte // of in: what arrived behind the last response
}

// lostError is an error of a connection, which can be used no more.
type lostError struct {
	addr string
	err  error
}

func (e *lostError) Error() string {
	return fmt.Sprintf("broker %s: %v: %v", e.addr, stream.ErrUnavailable, e.err)
}

func (e *lostError) Unwrap() []error { return []error{stream.ErrUnavailable, e.err} }

func (cn *conn) lost(err error) error {
	if isLost(err) {
		return err
	}
	return &lostError{cn.addr, err}
}

// isLost reports whether an error is the connection's.
func isLost(err error) bool {
	var e *lostError
	return errors.As(err, &e)
}

// dial connects to a broker: TCP, TLS, versions, SASL. Its error says which of them failed.
func (c *Client) dial(ctx context.Context, addr string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.RequestTimeout)
	defer cancel()
	nc, err := c.o.Dial(ctx, "tcp", addr)
	if err != nil {
		return nil, &lostError{addr, err}
	}
	defer until(ctx, nc)()
	cn, err := c.shake(ctx, nc, addr)
	if err != nil {
		_ = nc.Close()
		if !isLost(err) {
			err = &lostError{addr, err}
		}
		return nil, err
	}
	return cn, nil
}

// shake does what comes before the first request.
func (c *Client) shake(ctx context.Context, nc net.Conn, addr string) (*conn, error) {
	if c.o.TLS != nil {
		t := c.o.TLS
		if t.ServerName == "" {
			t = t.Clone()
			t.ServerName, _, _ = net.SplitHostPort(addr)
		}
		tc := tls.Client(nc, t)
		if err := tc.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w%s", ErrTLS, err, tlsHint(err))
		}
		nc = tc
	}
	cn := &conn{Conn: nc, addr: addr, clientID: c.o.ClientID}
	if err := cn.askVersions(); err != nil {
		return nil, err
	}
	if c.o.SASL != nil {
		if err := cn.authenticate(ctx, c.o.SASL); err != nil {
			return nil, err
		}
	}
	return cn, nil
}

func tlsHint(err error) string {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) || errors.Is(err, io.EOF) {
		return " (does this port of the broker speak TLS?)"
	}
	return ""
}

func (cn *conn) askVersions() error {
	m, err := cn.call(&apiversions.Request{})
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w (does it expect TLS?)", err)
		}
		return err
	}
	r := m.(*apiversions.Response)
	if r.ErrorCode != 0 {
		return kafkago.Error(r.ErrorCode)
	}
	cn.versions = make(map[protocol.ApiKey][2]int16, len(r.ApiKeys))
	for _, k := range r.ApiKeys {
		cn.versions[protocol.ApiKey(k.ApiKey)] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	for key, v := range needed {
		if !cn.speaks(key, v) {
			return fmt.Errorf("it does not speak version %d of %v: Kafka %s or later is needed", v, key, leastKafka)
		}
	}
	return nil
}

// speaks reports whether the broker speaks a version of a question.
func (cn *conn) speaks(key protocol.ApiKey, version int16) bool {
	has, ok := cn.versions[key]
	return ok && has[0] <= version && version <= has[1]
}

// call asks with a message of kafka-go's, at the highest version that both know.
func (cn *conn) call(m protocol.Message) (protocol.Message, error) {
	key := m.ApiKey()
	var version int16
	if key != protocol.ApiVersions {
		has, ok := cn.versions[key]
		if !ok || has[0] > key.MaxVersion() || has[1] < key.MinVersion() {
			return nil, fmt.Errorf("%w: the broker at %s does not speak a version of %v that this program knows",
				stream.ErrUnavailable, cn.addr, key)
		}
		version = min(has[1], key.MaxVersion())
	}
	if p, ok := m.(protocol.PreparedMessage); ok {
		p.Prepare(version)
	}
	cn.corr++
	var frame bytes.Buffer
	if err := protocol.WriteRequest(&frame, version, cn.corr, cn.clientID, m); err != nil {
		return nil, err
	}
	if _, err := cn.Write(frame.Bytes()); err != nil {
		return nil, cn.lost(err)
	}
	raw, err := cn.frame()
	if err != nil {
		return nil, err
	}
	id, answer, err := protocol.ReadResponse(bytes.NewReader(raw), key, version)
	if err == nil && id != cn.corr {
		err = fmt.Errorf("answer %d to question %d", id, cn.corr)
	}
	if err != nil {
		return nil, cn.lost(err)
	}
	return answer, nil
}

// until makes reads and writes fail when the context ends.
func until(ctx context.Context, nc net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
}

// begin starts a request in out. The versions we write by hand have a header of version 1.
func (cn *conn) begin(key protocol.ApiKey, version int16) {
	cn.corr++
	b := append(cn.out[:0], 0, 0, 0, 0)
	b = appendInt16(appendInt16(b, int16(key)), version)
	cn.out = appendString(appendInt32(b, cn.corr), cn.clientID)
}

// send sends the request in out.
func (cn *conn) send() error {
	binary.BigEndian.PutUint32(cn.out, uint32(len(cn.out)-4))
	if _, err := cn.Write(cn.out); err != nil {
		return cn.lost(err)
	}
	return nil
}

// receive returns the body of the next response, which must be to question corr. It is valid until the next call.
func (cn *conn) receive(corr int32) ([]byte, error) {
	b, err := cn.frame()
	if err != nil {
		return nil, err
	}
	f := fields{b: b[4:]}
	if id := f.int32(); id != corr || f.bad {
		return nil, cn.lost(fmt.Errorf("answer %d to question %d", id, corr))
	}
	return f.b, nil
}

// frame reads one response with its size in front.
func (cn *conn) frame() ([]byte, error) {
	if cn.in == nil {
		cn.in = make([]byte, 4<<10)
	}
	have := copy(cn.in, cn.ahead)
	cn.ahead = nil
	if have < 4 {
		n, err := io.ReadAtLeast(cn.Conn, cn.in[have:], 4-have)
		if have += n; err != nil {
			return nil, cn.lost(err)
		}
	}
	size := binary.BigEndian.Uint32(cn.in)
	if size>>16 == 0x1503 {
		return nil, cn.lost(fmt.Errorf("%w: the broker expects TLS on this port", ErrTLS))
	}
	if size < 4 || size > maxFrame {
		return nil, cn.lost(fmt.Errorf("a response of %d bytes: this is no Kafka broker, or it speaks TLS", size))
	}
	total := int(size) + 4
	if total > len(cn.in) {
		cn.in = append(make([]byte, 0, total), cn.in[:have]...)[:total]
	}
	if have < total {
		if _, err := io.ReadFull(cn.Conn, cn.in[have:total]); err != nil {
			return nil, cn.lost(err)
		}
	} else {
		cn.ahead = cn.in[total:have]
	}
	return cn.in[:total], nil
}
