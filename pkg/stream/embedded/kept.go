package embedded

import (
	"context"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Others than the service's own user may hold one in othersShare of the server's connections: its limit counts all
// alike, and a client that holds them all would keep the joiner and the replayer out. Who it is that connects is known
// only afterwards, so the latest are disconnected, every so often. What is left is many, because a client can connect
// again at once, and must not fill that, too, before the service's user comes.
const (
	othersShare = 2
	keptCheck   = 100 * time.Millisecond
)

// keepConnections holds the limit of the others' connections until the context ends.
func (e *Engine) keepConnections(ctx context.Context) {
	most := e.o.MaxConns / othersShare
	tick := time.NewTicker(keptCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.server.NumClients() > most {
			e.dropLatest(most)
		}
		e.dropGuests()
	}
}

// dropLatest disconnects the latest of those who are not the service, if they are more than most.
func (e *Engine) dropLatest(most int) {
	s, dropped := e.server, 0
	all, err := s.Connz(&server.ConnzOptions{Sort: server.ByCid, Username: true, Limit: s.NumClients()})
	if err != nil { // the server ends
		return
	}
	for _, c := range all.Conns { // the oldest first
		if c.AuthorizedUser == serviceUser {
			continue
		}
		if most--; most < 0 {
			_ = s.DisconnectClientByID(c.Cid) // or it is gone by itself
			dropped++
		}
	}
	if dropped > 0 {
		e.o.Logger.Warn("clients hold more connections than they may: the latest are disconnected",
			"limit", e.o.MaxConns/othersShare, "disconnected", dropped)
	}
}
