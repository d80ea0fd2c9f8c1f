package kafka

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
)

func dialNet(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// gate is a connection that can be cut, once: when the next answer has arrived, or
// before the next request goes out.
type gate struct {
	net.Conn
	cut     *atomic.Bool
	arrives bool   // the request before the cut arrives
	lost    func() // called then
}

var errGate = errors.New("the test cuts this connection")

func (g *gate) cuts() bool {
	if !g.cut.CompareAndSwap(true, false) {
		return false
	}
	_ = g.Close()
	g.lost()
	return true
}

func (g *gate) Write(b []byte) (int, error) {
	if !g.arrives && g.cuts() {
		return 0, errGate
	}
	return g.Conn.Write(b)
}

func (g *gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if g.arrives && g.cuts() {
		return 0, errGate
	}
	return n, err
}

// flaky makes connections that break now and then: before what is written goes out, or
// after an answer has arrived.
type flaky struct {
	mu   sync.Mutex
	rand *rand.Rand
	rate float64 // of reads and writes
	off  atomic.Bool
	cuts atomic.Int64
}

func newFlaky(seed uint64, rate float64) *flaky {
	return &flaky{rand: rand.New(rand.NewPCG(seed, 1)), rate: rate}
}

func (f *flaky) breaks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off.Load() || f.rand.Float64() >= f.rate {
		return false
	}
	f.cuts.Add(1)
	return true
}

func (f *flaky) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	cn, err := dialNet(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &flakyConn{cn, f}, nil
}

type flakyConn struct {
	net.Conn
	f *flaky
}

func (c *flakyConn) Write(b []byte) (int, error) {
	if c.f.breaks() {
		_ = c.Close()
	}
	return c.Conn.Write(b)
}

func (c *flakyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.f.breaks() {
		_ = c.Close()
		return 0, errors.New("the test breaks this connection")
	}
	return n, err
}
