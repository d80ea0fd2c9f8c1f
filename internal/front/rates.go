package front

import (
	"sync"
	"time"

	"hindsight/pkg/stream"
)

// rateClients is how many clients are remembered. One that is forgotten begins anew, with a full second's worth.
const rateClients = 4096

// rates bounds how often each client asks: so many requests a second, and as many at once (a token bucket).
type rates struct {
	most float64 // a second

	mu      sync.Mutex
	clients map[string]*bucket
}

type bucket struct {
	left float64 // requests that may come now
	at   time.Time
}

// newRates returns a limit of most requests a second for each client, nil for 0.
func newRates(most int) *rates {
	if most <= 0 {
		return nil
	}
	return &rates{most: float64(most), clients: map[string]*bucket{}}
}

// limit returns h for clients that do not ask too often.
func (s *Server) limit(subject string, h func(stream.Message)) func(stream.Message) {
	if s.rates == nil {
		return h
	}
	return func(m stream.Message) {
		if !s.rates.allow(m.From, time.Now()) {
			Refuser(&m, s.Metrics, subject)(429, "this client asks too often: retry later with the same id", "")
			return
		}
		h(m)
	}
}

// allow reports whether a client may ask now. Clients that the bus cannot tell apart are "", which has no limit.
func (r *rates) allow(client string, now time.Time) bool {
	if client == "" {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.clients[client]
	if b == nil {
		if len(r.clients) >= rateClients {
			r.forget(now)
		}
		b = &bucket{left: r.most, at: now}
		r.clients[client] = b
	}
	b.left = min(r.most, b.left+r.most*max(0, now.Sub(b.at).Seconds()))
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// forget drops the clients that did not ask for a second, or all if every one did.
func (r *rates) forget(now time.Time) {
	for name, b := range r.clients {
		if now.Sub(b.at) >= time.Second {
			delete(r.clients, name)
		}
	}
	if len(r.clients) >= rateClients {
		clear(r.clients)
	}
}
