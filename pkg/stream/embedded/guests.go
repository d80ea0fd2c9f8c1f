package embedded

import "github.com/nats-io/nats-server/v2/server"

// Limits of guests, who are clients without a name, beside those of every client. The server
// has one limit of each kind for all, and readers of logs need many subscriptions and have
// much on its way: so guests are looked at every so often (keptCheck).
const (
	guestSubs   = 100      // subscriptions of a connection
	guestUnread = 64 << 20 // bytes that wait for all of them together; those with most are cut off
)

// dropGuests disconnects guests that are over a limit.
func (e *Engine) dropGuests() {
	s, unread, subs, deaf := e.server, 0, 0, 0
	o := server.ConnzOptions{Username: true, User: anonymousUser, Sort: server.ByPending, Limit: s.NumClients() + 1}
	guests, err := s.Connz(&o)
	if err != nil { // the server ends
		return
	}
	for _, c := range guests.Conns {
		unread += c.Pending
	}
	for _, c := range guests.Conns { // those with most to read first
		switch {
		case c.NumSubs > guestSubs:
			subs++
		case unread > guestUnread:
			deaf++
		default:
			continue
		}
		unread -= c.Pending
		_ = s.DisconnectClientByID(c.Cid) // or it is gone by itself
	}
	if subs+deaf > 0 {
		e.o.Logger.Warn("clients without a name are disconnected", "with_too_many_subscriptions", subs,
			"that_do_not_read", deaf)
	}
}
