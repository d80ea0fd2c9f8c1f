package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Values of Options.Sync beside durations.
const (
	SyncAlways   = "always"
	SyncInterval = "interval" // DefaultSync
)

// The server itself can sync each record before it acknowledges it, one after the other, and does not sync the
// directory entry of a new block. With Sync "always" it therefore runs with an interval, and every connection to it
// passes a gate: what the server sends goes on to the client only after all that the store had written by then is on
// the disk. One sync serves all clients that wait. Acknowledgements, records that readers get and bounds are covered
// alike, whoever wrote: a record that anybody has seen is not lost, so logs that were derived from one another agree
// after a power cut.

// acceptPause follows an error of the listener.
const acceptPause = 10 * time.Millisecond

// gate holds back what a server sends until it is on the disk.
type gate struct {
	server *server.Server
	store  *changes
	log    *slog.Logger

	mu      sync.Mutex
	ended   sync.Cond // a sync ended
	running bool
	started int // syncs
	done    int
	err     error // of a sync that failed: nothing passes any more

	bridges sync.WaitGroup
}

func newGate(store *changes, log *slog.Logger) *gate {
	g := &gate{store: store, log: log}
	g.ended.L = &g.mu
	return g
}

// pass returns when a sync that began after the call has ended.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for mine := g.started + 1; g.done < mine && g.err == nil; {
		if g.running {
			g.ended.Wait()
			continue
		}
		g.running = true
		g.started++
		g.mu.Unlock()
		err := g.store.sync()
		g.mu.Lock()
		if err != nil {
			// The kernel may take the lost pages for written from now on, so trying again proves nothing.
			g.err = fmt.Errorf("embedded log: sync failed: %w", err)
			g.log.Error("the log acknowledges nothing any more: look at the disk, then restart", "error", g.err)
		}
		g.running, g.done = false, g.started
		g.ended.Broadcast()
	}
	return g.err
}

// startGate puts a gate before a server with Sync "always" that is not started yet, where
// the system tells what is written.
func (e *Engine) startGate() error {
	if !e.so.SyncAlways {
		return nil
	}
	store, err := watch(e.o.Dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("embedded log: sync always: %w", err)
	}
	e.gate = newGate(store, e.o.Logger)
	e.atClose(e.gate.close)
	e.so.SyncAlways, e.so.SyncInterval = false, time.Second
	e.so.DontListen = true
	return nil
}

// listen returns where clients connect, before the gate if there is one.
func (e *Engine) listen() (net.Addr, error) {
	if e.gate == nil {
		return e.server.Addr(), nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(e.so.Host, strconv.Itoa(max(0, e.so.Port))))
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	e.atClose(l.Close)
	e.gate.bridges.Go(func() { e.gate.serve(l) })
	return l.Addr(), nil
}

// InProcessConn implements [natsgo.InProcessConnProvider].
func (g *gate) InProcessConn() (net.Conn, error) {
	c, err := g.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return gated{c, g}, nil
}

// gated is the client's end of a connection.
type gated struct {
	net.Conn
	gate *gate
}

func (c gated) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if err := c.gate.pass(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// serve connects clients of a listener to the server until the listener is closed.
func (g *gate) serve(l net.Listener) {
	for {
		outer, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for want of a file descriptor, say
			time.Sleep(acceptPause)
			continue
		}
		inner, err := g.InProcessConn()
		if err != nil { // the server ends
			_ = outer.Close()
			continue
		}
		g.bridges.Go(func() { bridge(inner, outer) })
		g.bridges.Go(func() { bridge(outer, inner) })
	}
}

// bridge copies until one side ends, or takes nothing for too long, and ends the other.
func bridge(to, from net.Conn) {
	buf := make([]byte, 1<<15)
	for {
		n, err := from.Read(buf)
		if n > 0 && to.SetWriteDeadline(time.Now().Add(server.DEFAULT_FLUSH_DEADLINE)) == nil {
			_, writeErr := to.Write(buf[:n])
			err = cmp.Or(err, writeErr)
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}

// close waits for the connections, which the server has closed.
func (g *gate) close() error {
	g.bridges.Wait()
	return g.store.close()
}
