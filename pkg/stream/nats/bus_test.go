package nats_test

import (
	"context"
	"errors"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/nats"
	"hindsight/pkg/stream/natstest"
)

// TestBusStopWithoutServer holds that who stops serving while the server is away, or
// just when it goes away, does not get requests from it when it is back: they would be
// answered by nobody until their senders give up.
func TestBusStopWithoutServer(t *testing.T) {
	s := natstest.Start(t, natstest.Options{})
	for _, c := range []struct {
		name         string
		before, then func()
	}{
		{"while it is away", s.Kill, func() {}},
		{"as it goes away", s.Pause, s.Kill}, // the end of the subscription does not reach it
	} {
		t.Run(c.name, func(t *testing.T) {
			server := dialServer(t, s, nats.Options{})
			defer closeClient(t, server)
			stop, err := server.Bus().Serve("ask", "q", func(m stream.Message) { _ = m.Respond(m.Data) })
			if err != nil {
				t.Fatal(err)
			}
			c.before()
			stopped := make(chan struct{})
			go func() { stop(); close(stopped) }()
			select {
			case <-stopped:
			case <-time.After(300 * time.Millisecond): // it waits for the server
			}
			c.then()
			s.Restart()
			<-stopped
			client := dialServer(t, s, nats.Options{})
			defer closeClient(t, client)
			awaitBus(t, server.Bus())
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if reply, _, err := client.Bus().Request(ctx, "ask", []byte("x")); !errors.Is(err, stream.ErrNoResponder) {
				t.Errorf("a request gets %q, %v; want no responder", reply, err)
			}
		})
	}
}

// TestBusOnRefused holds that requests whose reply is not wanted in an inbox are told of and
// not handed over, with a listener and without one.
func TestBusOnRefused(t *testing.T) {
	s := natstest.Start(t, natstest.Options{})
	server := dialServer(t, s, nats.Options{})
	defer closeClient(t, server)
	handed, refused := make(chan string, 10), make(chan string, 10)
	stop, err := server.Bus().Serve("ask.*", "", func(m stream.Message) { handed <- string(m.Data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client, err := natsgo.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	send := func(subject, reply, data string) {
		t.Helper()
		if err := client.PublishRequest(subject, reply, []byte(data)); err != nil {
			t.Error(err)
		}
	}
	send("ask.a", "elsewhere", "first") // nobody listens
	send("ask.a", "_INBOX.x", "second")
	if got := <-handed; got != "second" {
		t.Errorf("%q was handed over", got)
	}
	server.Bus().OnRefused(func(subject string) { refused <- subject })
	send("ask.b", "elsewhere", "third")
	send("ask.a", "_INBOX.x", "fourth")
	if got := <-handed; got != "fourth" {
		t.Errorf("%q was handed over", got)
	}
	if got := <-refused; got != "ask.b" || len(refused) > 0 {
		t.Errorf("told of %q, and %d more", got, len(refused))
	}
}

// awaitBus waits until a bus works again.
func awaitBus(t *testing.T, b *nats.Bus) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		_, _, err := b.Request(t.Context(), "nobody", nil)
		if errors.Is(err, stream.ErrNoResponder) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not connected again: %v", err)
		}
	}
}
