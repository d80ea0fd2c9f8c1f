// Package certs reads certificates from files that are renewed while a process runs: each
// new connection uses what lies there then.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"

	"hindsight/internal/bounded"
)

// Pair is a certificate with its key. Its methods are called from many goroutines.
type Pair struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu        sync.Mutex
	cert, key []byte // of last, as PEM
	last      *tls.Certificate
}

// NewPair reads a certificate and its key, both PEM. logger, which may be nil, is told when renewed files are none.
func NewPair(certFile, keyFile string, logger *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, logger: logger}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// read takes what is in the files, if that is a pair.
func (p *Pair) read() error {
	cert, err := bounded.Read(p.certFile, bounded.Certificate)
	if err != nil {
		return err
	}
	key, err := bounded.Read(p.keyFile, bounded.Certificate)
	if err != nil {
		return err
	}
	if p.last != nil && bytes.Equal(cert, p.cert) && bytes.Equal(key, p.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", p.certFile, p.keyFile, err)
	}
	p.cert, p.key, p.last = cert, key, &pair
	return nil
}

// Current returns the pair in the files. While they are none, between the writing of one
// and of the other say, it is the last that was one. The same pair is the same pointer.
func (p *Pair) Current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.read(); err != nil && p.logger != nil {
		p.logger.Warn("a renewed certificate cannot be read; the last one stays in use", "error", err)
	}
	return p.last
}

// ForServer is a client's [tls.Config.GetClientCertificate]. A server that trusts other
// authorities only is shown none, as by a fixed certificate.
func (p *Pair) ForServer(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert := p.Current()
	if asked.SupportsCertificate(cert) != nil {
		return new(tls.Certificate), nil
	}
	return cert, nil
}

// ReadPool returns the authorities in a file of certificates in PEM.
func ReadPool(file string) (*x509.CertPool, error) {
	text, err := bounded.Read(file, bounded.Certificate)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}
