package daemon

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// limitedListener keeps a number of connections open at once. For another one it closes the
// one that was used the longest ago, of those that are not being answered if there are any:
// a client that holds connections open keeps no probe out.
type limitedListener struct {
	net.Listener
	most int

	mu    sync.Mutex
	open  map[*limitedConn]bool
	clock int64 // counts what connections are used for
}

// limitedConn is one of the connections. Its fields are guarded by mu of the listener.
type limitedConn struct {
	net.Conn
	of       *limitedListener
	used     int64 // by clock
	answered bool  // a request is being answered
}

func newLimitedListener(l net.Listener, most int) *limitedListener {
	return &limitedListener{Listener: l, most: most, open: map[*limitedConn]bool{}}
}

// Accept implements [net.Listener].
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: conn, of: l}
	l.mu.Lock()
	var least *limitedConn
	for o := range l.open {
		if least == nil || !o.answered && least.answered || o.answered == least.answered && o.used < least.used {
			least = o
		}
	}
	full := len(l.open) >= l.most
	l.clock++
	c.used, l.open[c] = l.clock, true
	l.mu.Unlock()
	if full {
		_ = least.Close()
	}
	return c, nil
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *limitedConn) use(answered bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.clock++
	c.used, c.answered = c.of.clock, answered
}

// limitedKey is that of a request's limitedConn in its context.
type limitedKey struct{}

// withLimited is a server's ConnContext.
func withLimited(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, limitedKey{}, c)
}

// noteUse tells the listener which connections are being answered.
func noteUse(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(limitedKey{}).(*limitedConn); ok {
			c.use(true)
			defer c.use(false)
		}
		h.ServeHTTP(w, r)
	})
}
