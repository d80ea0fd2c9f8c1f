package nats

import (
	"errors"
	"fmt"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// Client is a log and a bus on connections of its own: for requests, writing,
// reading and asking for bounds, so that none waits behind another.
type Client struct {
	log   *Log
	bus   *Bus
	conns []*natsgo.Conn
}

// Dial connects. name is shown by the server's tools; more holds credentials, TLS
// and the like. See [Access] for servers of one's own.
func Dial(url, name string, o Options, more ...natsgo.Option) (*Client, error) {
	c, err := dial(url, name, o, more...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w: %w", Redact(url), stream.ErrUnavailable, err)
	}
	return c, nil
}

func dial(url, name string, o Options, more ...natsgo.Option) (*Client, error) {
	c := &Client{}
	for _, role := range []string{"requests", "writing", "reading", "bounds"} {
		conn, err := natsgo.Connect(url, append(defaultOptions(name+" "+role), more...)...)
		if err == nil {
			c.conns = append(c.conns, conn)
			err = checkServer(conn.ConnectedServerVersion(), conn.HeadersSupported())
		}
		if err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	c.log, c.bus = newLog(c.conns[1], c.conns[2], c.conns[3], o), NewBus(c.conns[0])
	c.bus.logger = o.Logger
	return c, nil
}

// checkServer refuses a server without headers, and one that is too old: until 2.10 streams keep no metadata. What is
// not a version is not refused.
func checkServer(says string, headers bool) error {
	var major, minor int
	if n, _ := fmt.Sscanf(says, "%d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 10) {
		return fmt.Errorf("nats-server %s is too old: 2.10 or later is needed, for streams with replicas 2.12", says)
	}
	if !headers {
		return errors.New("the server takes no headers (no_header_support)")
	}
	return nil
}

// defaultOptions never give up reconnecting, and fail what is asked meanwhile.
func defaultOptions(name string) []natsgo.Option {
	return []natsgo.Option{
		natsgo.Name(name),
		natsgo.MaxReconnects(-1),
		natsgo.ReconnectBufSize(-1),
		natsgo.ReconnectWait(250 * time.Millisecond),
		natsgo.PingInterval(20 * time.Second),
		natsgo.SkipSubjectValidation(), // our names are checked
	}
}

// Log returns the log.
func (c *Client) Log() *Log { return c.log }

// Bus returns the bus.
func (c *Client) Bus() *Bus { return c.bus }

// Close closes the log, drains the connections (requests that arrived are still
// handled, replies are still sent) and closes them.
func (c *Client) Close() error {
	var errs []error
	if c.log != nil {
		errs = append(errs, c.log.Close())
	}
	for _, conn := range c.conns {
		errs = append(errs, drain(conn))
	}
	return errors.Join(errs...)
}

// drainLimit bounds how long draining a connection takes.
const drainLimit = 10 * time.Second

// drain drains and closes a connection and waits for it.
func drain(conn *natsgo.Conn) error {
	closed := conn.StatusChanged(natsgo.CLOSED)
	defer conn.RemoveStatusListener(closed)
	if err := conn.Drain(); err != nil {
		conn.Close()
		return nil // not connected: there is nothing to drain
	}
	if conn.IsClosed() {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-time.After(drainLimit):
		conn.Close()
		return fmt.Errorf("drain: not done after %v", drainLimit)
	}
}
