package nats

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/natstest"
)

// resolver dials a name of ours while there is somebody to ask for it.
type resolver struct {
	name, addr string
	gone       atomic.Bool
	asked      atomic.Int64 // while gone
}

func (r *resolver) Dial(network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host != r.name || r.gone.Load() {
		r.asked.Add(1)
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host,
			IsNotFound: true}}
	}
	return net.Dial(network, r.addr)
}

// TestNameGone takes the servers' name away. Who starts is told which name; who is
// connected goes on; who loses its connection fails by name at once, waits, and goes on
// when the name is back.
func TestNameGone(t *testing.T) {
	s := natstest.Start(t, natstest.Options{})
	names := &resolver{name: "broker.test", addr: s.Addr()}
	dial := func(host string) (*Client, error) {
		return Dial("nats://"+host+":4222", "test", Options{}, natsgo.SetCustomDialer(names))
	}
	if _, err := dial("other.test"); !errors.Is(err, stream.ErrUnavailable) || !strings.Contains(err.Error(),
		"other.test") {
		t.Errorf("a name that nobody knows: %v", err)
	}
	c, err := dial("broker.test")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.Log().Create(ctx, "m.x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	bounds := func() error { _, _, err := c.Log().Bounds(ctx, "m.x", 0); return err }
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	names.gone.Store(true)
	if err := bounds(); err != nil {
		t.Errorf("the name is gone under a connection: %v", err)
	}
	s.Kill()
	s.Restart()
	for names.asked.Load() < 10 { // each connection some times
		if err := bounds(); !stream.IsRetryable(err) {
			t.Fatalf("without a connection: %v", err)
		}
		if ctx.Err() != nil {
			t.Fatal("nobody asked for the name")
		}
		<-tick.C
	}
	if _, _, err := c.Bus().Request(ctx, "m.decide", nil); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("a request: %v", err)
	}
	names.gone.Store(false)
	for err := bounds(); err != nil; err = bounds() {
		if !stream.IsRetryable(err) {
			t.Fatal(err)
		}
		<-tick.C
	}
}

// TestNameToldOnce holds that what goes wrong again and again while connecting is logged
// once, with the name.
func TestNameToldOnce(t *testing.T) {
	var log locked.Buffer
	handlers := natsgo.GetDefaultOptions()
	for _, o := range watcher(slog.New(slog.NewTextHandler(&log, nil))) {
		if err := o(&handlers); err != nil {
			t.Fatal(err)
		}
	}
	gone := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "broker.test",
		IsNotFound: true}}
	for range 100 {
		handlers.DisconnectedErrCB(&natsgo.Conn{}, gone)
	}
	if n := bytes.Count([]byte(log.String()), []byte("broker.test")); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}
