package door

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"hindsight/internal/certs"
	"hindsight/pkg/stream/tlstest"
)

// TestTLS holds that TLS has HTTP/2, and whom client certificates let in.
func TestTLS(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Issue("localhost")
	file, keys := keyFile(t, "web decide")
	w := open(
		t, setting{flags: []string{"--http", "0.0.0.0:0", "--http-cert", cert, "--http-key", key, "--http-ca", ours.CA,
			"--keys", file}})
	pool, err := certs.ReadPool(ours.CA)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(w.door.Addr()[2:], "]:")
	w.url = "https://127.0.0.1:" + port
	good, goodKey := ours.Issue("client")
	foreign, foreignKey := theirs.Issue("client")
	old, oldKey := ours.IssueExpired("late")
	for _, c := range []struct {
		name, cert, key, header string
		status                  int // 0: there is no connection
	}{
		{"neither certificate nor key", "", "", "", 401},
		{"a key", "", "", "Authorization: Bearer " + keys["web"], 200},
		{"a certificate", good, goodKey, "", 200},
		{"a certificate of another authority", foreign, foreignKey, "", 0},
		{"an expired certificate", old, oldKey, "", 0},
	} {
		config := &tls.Config{RootCAs: pool}
		if c.cert != "" {
			pair, err := tls.LoadX509KeyPair(c.cert, c.key)
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &pair, nil
			}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/v1/decide", strings.NewReader(context1))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", typeJSON)
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		got, err := client.Do(r)
		status := 0
		if err == nil {
			if status = got.StatusCode; got.ProtoMajor != 2 {
				t.Errorf("%s: %s", c.name, got.Proto)
			}
			got.Body.Close()
		}
		if status != c.status {
			t.Errorf("%s: %d, %v; want %d", c.name, status, err, c.status)
		}
		client.CloseIdleConnections()
	}
}
