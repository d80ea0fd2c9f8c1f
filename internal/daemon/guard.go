package daemon

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"hindsight/internal/secret"
)

// AdminTokenEnv is where the token of the admin pages is taken from without a file. There is no flag for it: every user
// of a machine can read the arguments of its processes.
const AdminTokenEnv = "HINDSIGHT_ADMIN_TOKEN"

// Lengths of a token in bytes. A shorter one can be guessed.
const (
	minToken = 16
	maxToken = 512
)

// guard restricts access to the admin pages. A client on loopback is admitted unless there is a token; a client
// from elsewhere needs the token, or a certificate.
type guard struct {
	token   [sha256.Size]byte // its hash, so that a comparison takes as long for any guess
	byToken bool
	byCert  bool // a client certificate that was verified lets in
}

// open reports whether every client that reaches the port is admitted.
func (g *guard) open() bool { return !g.byToken && !g.byCert }

// lets reports whether a request is admitted.
func (g *guard) lets(r *http.Request) bool {
	if g.open() {
		return true
	}
	if g.byCert && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	if !g.byToken {
		return false
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		if _, given, ok = r.BasicAuth(); !ok { // a browser asks its user; the name does not matter
			return false
		}
	}
	hash := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(hash[:], g.token[:]) == 1
}

// wrap admits requests to the pages. The probes answer every client, with one word: orchestrators that call them
// hold no secrets.
func (g *guard) wrap(pages http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	pages = crossOrigin.Handler(pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.open() && !ToLoopback(r.Host): // a page elsewhere had its name point here
			http.Error(w, "these pages are asked for as localhost or by a loopback address; give --admin-token-file "+
				"to reach them by another name", http.StatusForbidden)
		case g.lets(r), r.URL.Path == "/healthz", r.URL.Path == "/readyz":
			pages.ServeHTTP(w, r)
		default:
			noStore(w)
			if g.byToken {
				w.Header().Set("WWW-Authenticate",
					`Basic realm="hindsight: the admin token as the password", charset="UTF-8"`)
			}
			http.Error(w, "who are you? Give the header Authorization: Bearer TOKEN, or a client certificate",
				http.StatusUnauthorized)
		}
	})
}

// readToken returns the token of a file, or of the environment; "" if there is none.
func readToken(file string, getenv func(string) string) (string, error) {
	token, from := "", "environment variable "+AdminTokenEnv
	if getenv != nil {
		token = getenv(AdminTokenEnv)
	}
	if file != "" {
		var err error
		if token, err = secret.Line(file, "admin token", 2*maxToken); err != nil {
			return "", fmt.Errorf("--admin-token-file: %w", err)
		}
		from = "file " + file
	}
	if token == "" {
		return "", nil
	}
	if len(token) < minToken || len(token) > maxToken {
		return "", fmt.Errorf("the admin token in %s has %d bytes: expected %d to %d; make one with: openssl rand "+
			"-hex 24", from, len(token), minToken, maxToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("the admin token in %s holds more than printable ASCII without spaces", from)
		}
	}
	return token, nil
}
