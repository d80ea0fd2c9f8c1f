package nats_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
