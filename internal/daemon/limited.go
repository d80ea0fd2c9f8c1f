package daemon

import (
	"net"
	"sync"
	"sync/atomic"
)

// limitedListener closes connections beyond a number of open ones at once: a port that
// makes its clients wait looks like a process that hangs.
type limitedListener struct {
	net.Listener
	most int64
	open atomic.Int64
}

// Accept implements [net.Listener].
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &countedConn{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		_ = c.Close()
	}
}

// countedConn counts itself out once.
type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close implements [net.Conn].
func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
