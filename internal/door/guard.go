package door

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strings"

	"hindsight/internal/daemon"
)

// guard decides who may ask.
type guard struct {
	cross   *http.CrossOriginProtection
	origins []string // whose web pages may ask
	keys    *keys    // nil: there are none
	byCert  bool     // a client certificate that was verified lets in
	proxied bool     // a proxy stands between this and its clients
}

// open reports whether everybody who reaches the port may ask.
func (g *guard) open() bool { return g.keys == nil && !g.byCert }

// newGuard returns a guard that lets the pages of some origins ask.
func newGuard(origins []string) (guard, error) {
	g := guard{cross: http.NewCrossOriginProtection(), origins: origins}
	for _, o := range origins {
		if err := g.cross.AddTrustedOrigin(o); err != nil {
			return g, daemon.Usagef("--http-origin %s: %v; for example https://shop.example", o, err)
		}
	}
	return g, nil
}

// check refuses what a web page elsewhere may have made a browser send.
func (g *guard) check(r *http.Request) *problem {
	if g.open() && !daemon.ToLoopback(r.Host) { // the name of a page elsewhere may point here
		return newProblem(http.StatusForbidden, "the header Host names another machine: ask for localhost or a "+
			"loopback address, or start the decider with --keys")
	}
	if g.cross.Check(r) != nil {
		return newProblem(http.StatusForbidden, "a web page of another origin may not ask here: start the decider "+
			"with --http-origin to let it")
	}
	return nil
}

// share tells a browser that the page of a trusted origin may read the answer, and answers when it asks in advance.
func (g *guard) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(g.origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	for _, o := range g.origins {
		if o != origin {
			continue
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "ETag, Retry-After")
		if answered = r.Method == http.MethodOptions; answered {
			h.Set("Access-Control-Allow-Methods", "GET, POST")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Hindsight-Timeout, If-None-Match, "+
				"Ocp-Apim-Subscription-Key, Prefer, Traceparent, X-API-Key")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
		}
	}
	return answered
}

// client returns who sends a request that needs a role.
func (g *guard) client(r *http.Request, needs role) (c client, p *problem) {
	if g.keys != nil {
		if c, known := g.keys.find(keyOf(r)); known {
			if c.role&needs == 0 {
				return c, c.without(needs)
			}
			return c, nil
		}
	}
	if g.open() || g.byCert && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		return client{host, mayAll}, nil
	}
	if g.keys == nil {
		return c, newProblem(http.StatusUnauthorized, "show a client certificate that --http-ca signs")
	}
	return c, newProblem(http.StatusUnauthorized, "no such key: send the header Authorization: Bearer KEY, or "+
		"Ocp-Apim-Subscription-Key: KEY")
}

// without says that a client has not a role, or none of several.
func (c *client) without(needs role) *problem {
	one, _, _ := strings.Cut(needs.String(), " ")
	return newProblem(http.StatusForbidden, fmt.Sprintf("the key of %s has not the role %s: add one with: decider "+
		"keys add %[1]s %s", c.name, needs, one))
}

// keyOf returns the key that a request has; "": none.
func keyOf(r *http.Request) string {
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return given
	}
	return cmp.Or(r.Header.Get("Ocp-Apim-Subscription-Key"), r.Header.Get("X-Api-Key"))
}
