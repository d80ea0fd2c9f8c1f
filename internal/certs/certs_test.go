package certs

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"

	"hindsight/pkg/stream/tlstest"
)

// TestPair holds that a renewed pair is used, the last one while the files are none, and
// the same one as long as they are the same.
func TestPair(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Issue("client")
	var log bytes.Buffer
	p, err := NewPair(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := p.Current()
	if p.Current() != first {
		t.Error("the same files are another pair")
	}
	was, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.Current() != first || !strings.Contains(log.String(), "stays in use") {
		t.Errorf("beside an empty key it is another pair; logged %q", &log)
	}
	if p.logger = nil; p.Current() != first {
		t.Error("without a logger it is another pair")
	}
	p.logger = slog.New(slog.NewTextHandler(&log, nil))
	a.Issue("client")
	renewed, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  []byte // beside the renewed certificate; nil: no file
		want bool   // a new pair
	}{{was, false}, {nil, false}, {renewed, true}} {
		log.Reset()
		if err := os.Remove(key); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if c.key != nil {
			if err := os.WriteFile(key, c.key, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if now := p.Current(); (now != first) != c.want || strings.Contains(log.String(), "stays in use") == c.want {
			t.Errorf("%d bytes of a key: a new pair %v, want %v; logged %q", len(c.key), now != first, c.want, &log)
		}
	}
	if _, err := NewPair(cert, a.CA, nil); err == nil || !strings.Contains(err.Error(), a.CA) {
		t.Errorf("a certificate for a key: %v", err)
	}
	nowhere, empty := key+"x", key+"e"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewPair(empty, empty, nil); err == nil {
		t.Error("two empty files are a pair")
	}
	_, noCert := NewPair(nowhere, key, nil)
	_, noKey := NewPair(cert, nowhere, nil)
	_, noPool := ReadPool(nowhere)
	for _, err := range []error{noCert, noKey, noPool} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of no file: %v", err)
		}
	}
	if _, err := ReadPool(key); err == nil || !strings.Contains(err.Error(), "no certificate in PEM") {
		t.Errorf("a key for authorities: %v", err)
	}
}

// TestForServer holds that a client shows its certificate to those only who trust its
// authority.
func TestForServer(t *testing.T) {
	ours := tlstest.NewAuthority(t)
	cert, key := ours.Issue("client")
	p, err := NewPair(cert, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, serverKey := ours.Issue("server")
	server, err := tls.LoadX509KeyPair(other, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := ReadPool(ours.CA)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		trusts string
		shown  int
	}{{ours.CA, 1}, {other, 0}} {
		pool, err := ReadPool(c.trusts)
		if err != nil {
			t.Fatal(err)
		}
		there, here := net.Pipe()
		s := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequestClientCert,
			ClientCAs: pool})
		done := make(chan error, 1)
		go func() {
			done <- tls.Client(here, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1",
				GetClientCertificate: p.ForServer}).Handshake()
		}()
		if err := s.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := len(s.ConnectionState().PeerCertificates); n != c.shown {
			t.Errorf("the client showed %d certificates, want %d", n, c.shown)
		}
		there.Close()
		here.Close()
	}
}
