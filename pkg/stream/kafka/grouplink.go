package kafka

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// groupLink makes the connections of a group's member and knows when the brokers were last heard: that they answered
// something we sent at that time. kafka-go does not say when a heartbeat succeeded.
type groupLink struct {
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	heard atomic.Int64 // ns since 1970

	mu    sync.Mutex
	conns map[*heardConn]struct{}
	isCut bool
}

func newGroupLink(dial func(ctx context.Context, network, address string) (net.Conn, error)) *groupLink {
	l := &groupLink{dial: dial, conns: map[*heardConn]struct{}{}}
	l.heard.Store(time.Now().UnixNano())
	return l
}

// silent is how long nothing was heard.
func (l *groupLink) silent() time.Duration { return time.Since(time.Unix(0, l.heard.Load())) }

// waits reports whether a question is out that has no answer yet: that to a join takes as long as others need to join.
func (l *groupLink) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.sent.Load() > c.heard.Load() {
			return true
		}
	}
	return false
}

func (l *groupLink) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &heardConn{Conn: conn, link: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// cut closes all connections for good: kafka-go waits for the answer to a join, which
// takes as long as a rebalance does, and cannot be told not to.
func (l *groupLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for c := range l.conns {
		_ = c.Conn.Close()
	}
}

// heardConn is a connection that tells its link when an answer comes.
type heardConn struct {
	net.Conn
	link        *groupLink
	sent, heard atomic.Int64 // heard: when what was answered had been sent
}

func (c *heardConn) Write(b []byte) (int, error) {
	c.sent.Store(time.Now().UnixNano())
	return c.Conn.Write(b)
}

func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		sent := c.sent.Load()
		for c.heard.Store(sent); ; {
			was := c.link.heard.Load()
			if was >= sent || c.link.heard.CompareAndSwap(was, sent) {
				break
			}
		}
	}
	return n, err
}

func (c *heardConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	return c.Conn.Close()
}
