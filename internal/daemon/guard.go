package daemon

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"hindsight/internal/certs"
	"hindsight/internal/secret"
)

// AdminTokenEnv is where the token of the admin pages is taken from without a file.
// There is no flag for it: everybody on a machine can read the arguments of its
// processes.
const AdminTokenEnv = "HINDSIGHT_ADMIN_TOKEN"

// Lengths of a token in bytes. A shorter one can be guessed.
const (
	minToken = 16
	maxToken = 512
)

// guard decides who sees the admin pages. Whoever reaches them over loopback is let in
// unless there is a token; from elsewhere one needs the token, or a certificate.
type guard struct {
	token   [sha256.Size]byte // its hash, so that a comparison takes as long for any guess
	byToken bool
	byCert  bool // a client certificate that was verified lets in
}

// open reports whether everybody who reaches the port is let in.
func (g *guard) open() bool { return !g.byToken && !g.byCert }

// lets reports whether a request comes from somebody who belongs.
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

// wrap lets pages be seen by those who belong. The probes answer anybody, with a word:
// those who ask them have no secrets to show.
func (g *guard) wrap(pages, probes http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	pages = crossOrigin.Handler(pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.open() && !toLoopback(r.Host): // a page elsewhere had its name point here
			http.Error(w, "these pages are asked for as localhost or by a loopback address; give --admin-token-file to reach "+
				"them by another name", http.StatusForbidden)
		case g.lets(r):
			pages.ServeHTTP(w, r)
		case r.URL.Path == "/healthz" || r.URL.Path == "/readyz":
			probes.ServeHTTP(w, r)
		default:
			noStore(w)
			if g.byToken {
				w.Header().Set("WWW-Authenticate", `Basic realm="hindsight: the admin token as the password", charset="UTF-8"`)
			}
			http.Error(w, "who are you? Give the header Authorization: Bearer TOKEN, or a client certificate",
				http.StatusUnauthorized)
		}
	})
}

// toLoopback reports whether a request's Host names the machine itself.
func toLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return isLoopback(strings.Trim(host, "[]"))
}

// isLoopback reports whether a host is only reached from the machine itself.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
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
		return "", fmt.Errorf("the admin token in %s has %d bytes: expected %d to %d; make one with: openssl rand -hex 24",
			from, len(token), minToken, maxToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("the admin token in %s holds more than printable ASCII without spaces", from)
		}
	}
	return token, nil
}

// adminTLS is how the pages speak TLS: with the certificate, and to the clients of the
// authorities, that the files hold when a connection begins.
type adminTLS struct {
	pair *certs.Pair
	ca   string // file; "": clients are not asked for certificates

	mu   sync.Mutex
	pool *x509.CertPool // of ca, as it could be read last
}

// certificates returns how to speak TLS, nil if not at all. Client certificates are
// asked for if ca is given, and verified if one comes.
func certificates(cert, key, ca string, logger *slog.Logger) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := certs.NewPair(cert, key, logger)
	if err != nil {
		return nil, fmt.Errorf("--admin-cert and --admin-key: %w", err)
	}
	a := &adminTLS{pair: pair, ca: ca}
	if _, err := a.current(); err != nil {
		return nil, fmt.Errorf("--admin-ca: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := a.current()
		if err != nil {
			logger.Warn("renewed authorities cannot be read; the last ones stay in use", "flag", "--admin-ca", "error", err)
		}
		return c, nil
	}}, nil
}

// current returns what the files say now, in place of one that cannot be read what it said
// last. The error is that of the authorities; a pair tells of its own.
func (a *adminTLS) current() (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &tls.Config{Certificates: []tls.Certificate{*a.pair.Current()}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"}}
	if a.ca == "" {
		return c, nil
	}
	pool, err := certs.ReadPool(a.ca)
	if err == nil {
		a.pool = pool
	}
	c.ClientCAs, c.ClientAuth = a.pool, tls.VerifyClientCertIfGiven
	return c, err
}
