package nats_test

import (
	"os"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
	"hindsight/pkg/stream/streamtest"
)

func dialServer(t testing.TB, s *natstest.Server, o nats.Options) *nats.Client {
	t.Helper()
	c, err := (&nats.Access{URL: s.URL()}).Dial("test", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closeClient(t testing.TB, c *nats.Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestLogServer runs the conformance suite on a server in a process of its own,
// which Reopen kills and starts again.
func TestLogServer(t *testing.T) {
	streamtest.TestLog(t, func(t testing.TB) *streamtest.Harness {
		s := natstest.Start(t, natstest.Options{})
		c := dialServer(t, s, nats.Options{})
		return &streamtest.Harness{
			Log: c.Log(), TooLarge: 1 << 20,
			Close: func(t testing.TB) { closeClient(t, c); s.Kill() },
			Reopen: func(t testing.TB) stream.Log {
				closeClient(t, c)
				s.Kill()
				s.Restart()
				c = dialServer(t, s, nats.Options{})
				return c.Log()
			},
		}
	})
}

func TestBusServer(t *testing.T) {
	streamtest.TestBus(t, func(t testing.TB) *streamtest.BusHarness {
		s := natstest.Start(t, natstest.Options{})
		server, client := dialServer(t, s, nats.Options{}), dialServer(t, s, nats.Options{})
		return &streamtest.BusHarness{Server: server.Bus(), Client: client.Bus(), TooLarge: 2 << 20,
			Close: func(t testing.TB) { closeClient(t, server); closeClient(t, client); s.Kill() }}
	})
}

// TestLogCluster runs the suite on three servers with three replicas.
func TestLogCluster(t *testing.T) {
	if os.Getenv("HINDSIGHT_LONG") != "1" {
		t.Skip("a cluster of three takes its time: HINDSIGHT_LONG=1")
	}
	streamtest.TestLog(t, func(t testing.TB) *streamtest.Harness {
		servers := natstest.Cluster(t, 3)
		urls := servers[0].URL() + "," + servers[1].URL() + "," + servers[2].URL()
		dial := func(t testing.TB) *nats.Client {
			c, err := (&nats.Access{URL: urls}).Dial("test", nats.Options{Replicas: 3})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := dial(t)
		return &streamtest.Harness{
			Log: c.Log(), TooLarge: 1 << 20, ForeignHoles: true,
			Close: func(t testing.TB) {
				closeClient(t, c)
				for _, s := range servers {
					s.Kill()
				}
			},
			Reopen: func(t testing.TB) stream.Log {
				closeClient(t, c)
				c = dial(t)
				return c.Log()
			},
		}
	})
}
