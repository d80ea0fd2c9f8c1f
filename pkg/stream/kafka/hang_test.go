package kafka

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"hindsight/pkg/stream"
)

// hanging makes connections to one broker that take everything and answer nothing, as a
// stopped process does.
type hanging struct{ addr atomic.Value }

func (h *hanging) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &hangingConn{nc, h, addr}, err
}

type hangingConn struct {
	net.Conn
	h    *hanging
	addr string
}

func (c *hangingConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || c.h.addr.Load() != c.addr {
			return n, err
		}
	}
}

// A broker that hangs is left for another within seconds, however long a request may
// take: by who appends, reads, opens and asks.
func TestHungBroker(t *testing.T) {
	t.Parallel()
	k := fake(t, kfake.NumBrokers(3))
	var h hanging
	h.addr.Store("")
	c := client(t, k, Options{Dial: h.dial, RequestTimeout: time.Minute, AckTimeout: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second) // less than a request may take
	defer cancel()
	if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	a, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for i := range int32(3) {
		if err := k.MoveTopicPartition("t", 0, i); err != nil {
			t.Fatal(err)
		}
		fill(t, a, "before"+strconv.Itoa(int(i)), 1) // so that the connection is to the one that hangs
		h.addr.Store(k.ListenAddrs()[i])
		if err := k.MoveTopicPartition("t", 0, (i+1)%3); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Append(ctx, &stream.Record{Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
		if err := a.Flush(ctx); err != nil {
			t.Fatalf("append while broker %d hangs: %v", i, err)
		}
		if _, _, err := c.Log().Bounds(ctx, "t", 0); err != nil {
			t.Fatalf("bounds while broker %d hangs: %v", i, err)
		}
		if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
			t.Fatalf("check of the topic while broker %d hangs: %v", i, err)
		}
	}
	h.addr.Store("")
	if all := values(t, c, "t"); len(all) != 1+6 {
		t.Errorf("%d records", len(all))
	}
}
