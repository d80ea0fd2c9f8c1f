package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/streamtest"
)

// onCluster makes harnesses on a cluster of real brokers, each with its topics gone.
func onCluster(k *kafkatest.Cluster) func(testing.TB) *streamtest.Harness {
	o := Options{Brokers: k.Brokers(), AckTimeout: 3 * time.Second}
	dial := func(t testing.TB, o Options) *Client {
		t.Helper()
		c, err := Dial(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return func(t testing.TB) *streamtest.Harness {
		t.Helper()
		o := o
		deleteTopics(t, o)
		var l lossy
		o.Dial = l.dial
		c := dial(t, o)
		return &streamtest.Harness{
			Log:   c.Log(),
			Close: func(t testing.TB) { c.Close() },
			Reopen: func(t testing.TB) stream.Log {
				c.Close()
				c = dial(t, o)
				return c.Log()
			},
			LoseAcks:      func(testing.TB) { l.loses.Store(true) },
			TooLarge:      messageBytes,
			NoFull:        true,
			LazyRetention: true,
			Begin: func(t testing.TB, topic, prefix string, n int) func(bool) {
				return begin(t, o.Brokers, topic, prefix, n)
			},
		}
	}
}

// lossy makes connections that lose the brokers' answers to what is appended, while
// loses is true: until an open record is sent.
type lossy struct{ loses atomic.Bool }

func (l *lossy) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &lossyConn{Conn: nc, l: l}, err
}

type lossyConn struct {
	net.Conn
	l       *lossy
	appends atomic.Bool
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if len(b) > 6 && protocol.ApiKey(binary.BigEndian.Uint16(b[4:])) == protocol.Produce {
		if bytes.Contains(b, []byte(headerNonce)) {
			c.l.loses.Store(false)
		}
		c.appends.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b) // by then it is stored
	if err == nil && c.appends.Load() && c.l.loses.Load() {
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestKafkaRealLog is the suite of the log on one broker.
func TestKafkaRealLog(t *testing.T) {
	if testing.Short() {
		kafkatest.Heavy(t)
	}
	streamtest.TestLog(t, onCluster(kafkatest.Shared(t)))
}

// TestKafkaRealLogOfThree is the suite with three replicas.
func TestKafkaRealLogOfThree(t *testing.T) {
	kafkatest.Heavy(t)
	streamtest.TestLog(t, onCluster(kafkatest.Hurt(t, 3)))
}
