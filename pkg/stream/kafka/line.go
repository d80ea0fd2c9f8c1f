package kafka

import (
	"context"
	"sync"

	"hindsight/pkg/stream"
)

// line is a connection to the leader of one partition: it is made when one is asked
// for, and given up when the leader has moved.
type line struct {
	c *Client
	p place

	mu     sync.Mutex // guards what follows; only connection sets cn
	cn     *conn
	closed bool
}

// close ends the connection, now and for good.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.cn != nil {
		_ = l.cn.Close()
		l.cn = nil
	}
}

// connection returns the present connection, or a new one to the present leader, which
// is looked up again if it must be fresh.
func (l *line) connection(ctx context.Context, fresh bool) (*conn, error) {
	l.mu.Lock()
	cn := l.cn
	l.mu.Unlock()
	if cn != nil {
		return cn, nil
	}
	addr, err := l.c.leader(ctx, &l.p, fresh)
	if err != nil {
		return nil, err
	}
	if cn, err = l.c.dial(ctx, addr); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = cn.Close()
		return nil, stream.ErrClosed
	}
	l.cn = cn
	return cn, nil
}

// drop gives up a connection.
func (l *line) drop(cn *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cn == cn {
		l.cn = nil
	}
	_ = cn.Close()
}
