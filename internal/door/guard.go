package door

import (
	"net"
	"net/http"

	"hindsight/internal/daemon"
)

// guard decides which requests are looked at.
type guard struct {
	cross *http.CrossOriginProtection
}

// check refuses what a web page elsewhere may have made a browser send.
func (g *guard) check(r *http.Request) *problem {
	if !daemon.ToLoopback(r.Host) { // the name of a page elsewhere may point here
		return newProblem(http.StatusForbidden, "the header Host names another machine: ask for localhost or a loopback address")
	}
	if g.cross.Check(r) != nil {
		return newProblem(http.StatusForbidden, "a web page of another origin may not ask here")
	}
	return nil
}

// client is who asks.
type client struct {
	name string // which --client-rate counts by
}

// client returns who sends a request.
func (g *guard) client(r *http.Request) client {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return client{name: host}
}
