package access

import (
	"crypto/tls"
	"net"
	"testing"

	"hindsight/pkg/stream/tlstest"
)

// TestRenewal holds that a client certificate that is renewed while a process runs is
// shown from the next connection on.
func TestRenewal(t *testing.T) {
	a := tlstest.NewAuthority(t)
	server, err := tls.LoadX509KeyPair(a.Issue("server"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key := a.Issue("client")
	f := Kafka{CA: a.CA, Cert: cert, Key: key}
	o, err := f.options(t.Context(), &address{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		t.Helper()
		there, here := net.Pipe()
		defer there.Close()
		defer here.Close()
		s := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{server},
			ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true})
		done := make(chan error, 1)
		go func() {
			c := o.TLS.Clone()
			c.ServerName = "127.0.0.1"
			done <- tls.Client(here, c).Handshake()
		}()
		if err := s.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return s.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := shown()
	a.Issue("client") // into the same files
	if shown() == first {
		t.Error("the certificate before its renewal is shown")
	}
}
