package embedded

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Limits of guests, who are clients without a name, beside those of every client. The server
// has one limit of each kind for all, and readers of logs need many subscriptions and have
// much on its way: so guests are looked at again and again.
const (
	guestSubs   = 100      // subscriptions of a connection
	guestUnread = 64 << 20 // bytes that wait for all of them together; those with most are cut off
	guestLook   = 100 * time.Millisecond
)

// guests watches the connections of guests.
type guests struct {
	server *server.Server
	log    *slog.Logger
	stop   context.CancelFunc
	done   chan struct{}
}

func watchGuests(s *server.Server, log *slog.Logger) *guests {
	ctx, stop := context.WithCancel(context.Background())
	g := &guests{server: s, log: log, stop: stop, done: make(chan struct{})}
	go g.run(ctx)
	return g
}

func (g *guests) close() {
	g.stop()
	<-g.done
}

func (g *guests) run(ctx context.Context) {
	defer close(g.done)
	tick := time.NewTicker(guestLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.look()
		}
	}
}

// look cuts off guests that are over a limit.
func (g *guests) look() {
	z, err := g.server.Connz(&server.ConnzOptions{Username: true, User: anonymousUser, Sort: server.ByPending, Limit: 1 << 20})
	if err != nil { // the server ends
		return
	}
	unread, subs, deaf := 0, 0, 0
	for _, c := range z.Conns {
		unread += c.Pending
	}
	for _, c := range z.Conns { // those with most to read first
		switch {
		case c.NumSubs > guestSubs:
			subs++
		case unread > guestUnread:
			deaf++
		default:
			continue
		}
		unread -= c.Pending
		_ = g.server.DisconnectClientByID(c.Cid) // or it has gone
	}
	if subs+deaf > 0 {
		g.log.Warn("connections of clients without a name closed", "with_too_many_subscriptions", subs, "that_do_not_read", deaf)
	}
}
