package embedded_test

import (
	"context"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/streamtest"
)

// open starts an engine for a test.
func open(t testing.TB, o embedded.Options) *embedded.Engine {
	t.Helper()
	e, err := embedded.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The engine's own log, on in-process connections.
func inProcess(t testing.TB) *streamtest.Harness {
	o := embedded.Options{Dir: t.TempDir(), DontListen: true}
	e := open(t, o)
	return &streamtest.Harness{
		Log:      e.Log(),
		TooLarge: 1 << 20,
		Close:    func(t testing.TB) { closeEngine(t, e) },
		Reopen: func(t testing.TB) stream.Log {
			closeEngine(t, e)
			e = open(t, o)
			return e.Log()
		},
	}
}

// A log over loopback, on a connection that can be cut. Its Reopen restarts the
// server under the living client.
func loopback(t testing.TB) *streamtest.Harness {
	o := embedded.Options{Dir: t.TempDir(), Port: -1}
	e := open(t, o)
	p := newProxy(t, e)
	dial := func(t testing.TB) *nats.Client {
		t.Helper()
		a := e.Access()
		o := nats.Options{AckTimeout: time.Minute} // a cut connection must be noticed, not waited out
		c, err := nats.Dial(p.url(), "test", o, userInfo(a.User, a.Password))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := dial(t)
	return &streamtest.Harness{
		Log:      c.Log(),
		TooLarge: 1 << 20,
		LoseAcks: func(testing.TB) { p.cutSoon() },
		Close: func(t testing.TB) {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			p.close()
			closeEngine(t, e)
		},
		Reopen: func(t testing.TB) stream.Log {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			closeEngine(t, e)
			e = open(t, o)
			p.to(e)
			c = dial(t)
			return c.Log()
		},
	}
}

func closeEngine(t testing.TB, e *embedded.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestLog(t *testing.T) {
	t.Run("in process", func(t *testing.T) { streamtest.TestLog(t, inProcess) })
	t.Run("loopback", func(t *testing.T) { streamtest.TestLog(t, loopback) })
}

func TestBus(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		streamtest.TestBus(t, func(t testing.TB) *streamtest.BusHarness {
			e := open(t, embedded.Options{Dir: t.TempDir(), DontListen: true})
			return &streamtest.BusHarness{Server: e.Bus(), Client: e.Bus(), TooLarge: 2 << 20,
				Close: func(t testing.TB) { closeEngine(t, e) }}
		})
	})
	t.Run("loopback", func(t *testing.T) {
		streamtest.TestBus(t, func(t testing.TB) *streamtest.BusHarness {
			e := open(t, embedded.Options{Dir: t.TempDir(), Port: -1})
			conn, err := natsgo.Connect(e.URL()) // anonymous, as a user's client is
			if err != nil {
				t.Fatal(err)
			}
			return &streamtest.BusHarness{Server: e.Bus(), Client: nats.NewBus(conn), TooLarge: 2 << 20,
				Close: func(t testing.TB) {
					conn.Close()
					closeEngine(t, e)
				}}
		})
	})
}

// A record that was lost with the connection is fetched again, though no other
// follows it.
func TestReaderAfterCut(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e := open(t, embedded.Options{Dir: t.TempDir(), Port: -1})
	defer closeEngine(t, e)
	p := newProxy(t, e)
	defer p.close()
	c, err := nats.Dial(p.url(), "test", nats.Options{}, userInfo(e.Access().User, e.Access().Password))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := e.Log().Create(ctx, "a", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := e.Log().Writer(ctx, "a", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(ctx, "a", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 3 {
		if i > 0 {
			p.cutSoon() // the next thing the server says through it is the record
		}
		if _, err := w.Append(ctx, &stream.Record{Value: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if recs, err := r.Next(ctx, nil); err != nil || len(recs) != 1 || recs[0].Value[0] != byte(i) {
			t.Fatalf("round %d: %v, %v", i, recs, err)
		}
	}
}
