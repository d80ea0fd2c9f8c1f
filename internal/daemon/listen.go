package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"

	"hindsight/internal/certs"
)

// Listen listens on the address of the flag --NAME. Unless the flag was given, a free port of the same host takes the
// place of a port that another process has, and the log names it. what says what is served there.
func Listen(logger *slog.Logger, name, address string, given bool, what string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil && !given {
		host, _, splitErr := net.SplitHostPort(address)
		if splitErr != nil {
			return nil, splitErr
		}
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err == nil {
			logger.Warn("the usual address of the "+what+" is taken by another process; using another one", "taken",
				address, "used", l.Addr().String())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w; choose another address, or none", name, address, err)
	}
	return l, nil
}

// ToLoopback reports whether a request's Host names the machine itself.
func ToLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return IsLoopback(strings.Trim(host, "[]"))
}

// IsLoopback reports whether a host is only reached from the machine itself.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// serverTLS is how a server speaks TLS: with the certificate, and to the clients of the
// authorities, that the files hold when a connection begins.
type serverTLS struct {
	pair *certs.Pair
	ca   string // file; "": clients are not asked for certificates

	mu   sync.Mutex
	pool *x509.CertPool // of ca, as it could be read last
}

// Certificates returns how to speak TLS with the files of --NAME-cert, --NAME-key and --NAME-ca, nil without a
// certificate. Client certificates are asked for if ca is given, and verified if one comes.
func Certificates(name, cert, key, ca string, logger *slog.Logger) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := certs.NewPair(cert, key, logger)
	if err != nil {
		return nil, fmt.Errorf("--%s-cert and --%[1]s-key: %w", name, err)
	}
	a := &serverTLS{pair: pair, ca: ca}
	if _, err := a.current(); err != nil {
		return nil, fmt.Errorf("--%s-ca: %w", name, err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := a.current()
			if err != nil {
				logger.Warn("renewed authorities cannot be read; the last ones stay in use", "flag", "--"+name+"-ca",
					"error", err)
			}
			return c, nil
		}}, nil
}

// current returns what the files say now, in place of one that cannot be read what it said
// last. The error is that of the authorities; a pair tells of its own.
func (a *serverTLS) current() (*tls.Config, error) {
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
