package daemon

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pipeListener accepts one connection in memory, whose time is that of a bubble.
type pipeListener struct{ conns chan net.Conn }

func (l *pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, http.ErrServerClosed
	}
	return conn, nil
}

func (*pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) Close() error {
	close(l.conns)
	return nil
}

// TestSlowClient holds that a connection is closed when its client does not finish a request, and
// when it asks nothing more.
func TestSlowClient(t *testing.T) {
	const head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
	for name, c := range map[string]struct {
		sends string
		after time.Duration
	}{
		"nothing":       {"", adminRead},
		"half a header": {head, adminRead},
		"one request":   {head + "\r\n", adminIdle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipeListener{make(chan net.Conn, 1)}
				a := &Admin{Registry: prometheus.NewRegistry(), logger: slog.New(slog.DiscardHandler)}
				a.serve(newLimitedListener(l, adminConns), Probes{well, well})
				defer a.server.Close()
				client, server := net.Pipe()
				l.conns <- server
				began := time.Now()
				if err := client.SetDeadline(began.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				go io.WriteString(client, c.sends)
				_, err := io.ReadAll(client)
				if held := time.Since(began); err != nil || held != c.after {
					t.Errorf("the connection is held for %v (%v), want %v", held, err, c.after)
				}
			})
		})
	}
}
