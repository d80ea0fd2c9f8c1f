package embedded

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hindsight/pkg/stream"
)

// TestGateTakesSyncs holds that the server syncs by itself, each record before the next, only where nothing else does:
// with a gate before it it has an interval, and nobody gets past the gate.
func TestGateTakesSyncs(t *testing.T) {
	for _, always := range []bool{true, false} {
		e := &Engine{o: Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}, so: &server.Options{
			SyncAlways: always, SyncInterval: time.Hour}}
		if err := e.startGate(); err != nil {
			t.Fatal(err)
		}
		if gated := e.gate != nil; gated {
			if !always || e.so.SyncAlways || e.so.SyncInterval != time.Second || !e.so.DontListen {
				t.Errorf("always %v: with a gate %+v", always, e.so)
			}
		} else if e.so.SyncAlways != always || e.so.SyncInterval != time.Hour || e.so.DontListen {
			t.Errorf("always %v: without a gate %+v", always, e.so)
		}
		for _, c := range e.closers {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestGateStaysShut holds that nothing passes a gate any more after one sync that failed.
func TestGateStaysShut(t *testing.T) {
	store, err := watch(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(store, slog.New(slog.DiscardHandler))
	defer g.close()
	if err := g.pass(); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("input/output error")
	g.err = bad
	for range 2 {
		if err := g.pass(); !errors.Is(err, bad) {
			t.Errorf("passed: %v", err)
		}
	}
}

// TestConfig holds that of the streams in a folder the one that is asked for is told, and that there may be none.
func TestConfig(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for topic, age := range map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "c": 3 * time.Hour} {
		if err := e.Log().Create(t.Context(), topic, 1, stream.TopicOptions{MaxAge: int64(age)}); err != nil {
			t.Error(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"a_0": time.Hour, "b_0": 2 * time.Hour, "c_0": 3 * time.Hour} {
		c, err := Config(o.Dir, name)
		if err != nil || c["name"] != name || c["max_age"] != float64(age) || c["Created"] != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if c, err := Config(o.Dir, "d_0"); err == nil {
		t.Errorf("a stream that is not there: %v", c)
	}
}

// oddListener fails once, and then gives the connections that it has.
type oddListener struct {
	net.Listener
	errs  []error
	conns []net.Conn
}

func (l *oddListener) Accept() (c net.Conn, err error) {
	if len(l.errs) > len(l.conns) {
		err, l.errs = l.errs[0], l.errs[1:]
		return nil, err
	}
	if len(l.conns) == 0 {
		return nil, net.ErrClosed
	}
	c, l.conns = l.conns[0], l.conns[1:]
	return c, nil
}

// TestGateGoesOn holds that a gate serves on after a connection that it could not take, and hangs up on clients of a
// server that has ended.
func TestGateGoesOn(t *testing.T) {
	e, err := Open(t.Context(), Options{Dir: t.TempDir(), Port: -1, Sync: SyncAlways})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.gate == nil {
		t.Skip("no gate here")
	}
	hears := func(errs ...error) (string, error) {
		server, client := net.Pipe()
		defer client.Close()
		e.gate.serve(&oddListener{errs: errs, conns: []net.Conn{server}})
		return bufio.NewReader(client).ReadString('\n')
	}
	if line, err := hears(errors.New("too many open files"), errors.New("again")); !strings.HasPrefix(line, "INFO ") {
		t.Errorf("heard %q, %v", line, err)
	}
	e.server.Shutdown()
	if line, err := hears(); !errors.Is(err, io.EOF) {
		t.Errorf("of a server that has ended: %q, %v", line, err)
	}
}
