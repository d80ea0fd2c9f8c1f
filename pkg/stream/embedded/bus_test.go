package embedded_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// TestBusAlone asks over a server without a log: a client may ask and nothing else,
// nothing is written to disk, and nothing is left of it.
func TestBusAlone(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	t.Chdir(dir)
	b, err := embedded.OpenBus(t.Context(), embedded.Options{Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := b.Bus().Serve("m.decide", "decider", func(m stream.Message) {
		m.Respond(append([]byte("to "), m.Data...))
	})
	if err != nil {
		t.Fatal(err)
	}
	violations := make(chan error, 10)
	conn, err := natsgo.Connect(b.URL(),
		natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { violations <- err }))
	if err != nil {
		t.Fatal(err)
	}
	m, err := conn.Request("m.decide", []byte("ask"), natsgo.DefaultTimeout)
	if err != nil || string(m.Data) != "to ask" {
		t.Errorf("%v %v", m, err)
	}
	if _, err := conn.SubscribeSync("m.decide"); err != nil {
		t.Error(err)
	}
	if err := <-violations; !strings.Contains(err.Error(), "Permissions Violation") {
		t.Error(err)
	}
	conn.Close()
	stop()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("it wrote %v %v", files, err)
	}
	goleak.VerifyNone(t, before)
}

// TestBusesAtOnce starts servers with one port in the same instant: each answers, at most one of them there.
func TestBusesAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	for range 5 {
		var g errgroup.Group
		var all [6]*embedded.Engine
		for i := range all {
			g.Go(func() (err error) {
				all[i], err = embedded.OpenBus(t.Context(), embedded.Options{Port: port})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		urls := map[string]bool{}
		for _, b := range all {
			if b != nil {
				urls[b.URL()] = true
				b.Close()
			}
		}
		if len(urls) != len(all) {
			t.Errorf("%d servers at %v", len(all), urls)
		}
	}
}

// TestBusPort holds what becomes of a port that is taken.
func TestBusPort(t *testing.T) {
	a, err := embedded.OpenBus(t.Context(), embedded.Options{Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := embedded.OpenBus(t.Context(), embedded.Options{Host: "0.0.0.0"}); err == nil ||
		!strings.Contains(err.Error(), "not a loopback address") {
		t.Error(err)
	}
	before := goleak.IgnoreCurrent()
	twice := []embedded.Requester{{Name: "a", Password: "b"}, {Name: "a", Password: "c"}}
	if e, err := embedded.OpenBus(t.Context(), embedded.Options{Port: -1, Requesters: twice}); err == nil {
		t.Error("two requesters have one name")
		e.Close()
	}
	goleak.VerifyNone(t, before)
}

// TestNameIsShown holds which process the server's tools show: the one with the name, or the command.
func TestNameIsShown(t *testing.T) {
	for name, shown := range map[string]string{"decider": "decider", "": filepath.Base(os.Args[0])} {
		b, err := embedded.OpenBus(t.Context(), embedded.Options{Port: -1, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		all, err := b.Server().Connz(nil)
		if err != nil || len(all.Conns) == 0 || !strings.HasPrefix(all.Conns[0].Name, shown) {
			t.Errorf("%q: %q, %v", name, all.Conns[0].Name, err)
		}
		b.Close()
	}
}
