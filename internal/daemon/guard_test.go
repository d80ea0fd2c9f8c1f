package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hindsight/internal/certs"
	"hindsight/pkg/stream/tlstest"
)

const testToken = "correct-horse-battery"

func secretFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAdminElsewhere holds that a port that other machines reach asks who they are.
func TestAdminElsewhere(t *testing.T) {
	file := secretFile(t, testToken+"\n", 0o600)
	for _, c := range []struct {
		args []string
		env  string
		says string // "": it is fine
	}{
		{[]string{"--admin", "0.0.0.0:0"}, "", "is reached by other machines: give --admin-token-file"},
		{[]string{"--admin", ":0"}, "", "is reached by other machines"},
		{[]string{"--admin", "[::]:0"}, "", "is reached by other machines"},
		{[]string{"--admin", "example.org:0"}, "", "is reached by other machines"},
		{[]string{"--admin", "0.0.0.0:0", "--admin-token-file", file}, "", ""},
		{[]string{"--admin", "0.0.0.0:0"}, testToken, ""},
		{[]string{"--admin", "0.0.0.0:0", "--admin-cert", "x"}, testToken, "go together"},
		{[]string{"--admin", "0.0.0.0:0", "--admin-ca", "x"}, testToken, "needs --admin-cert"},
		{[]string{"--admin", "127.0.0.1:0"}, "", ""},
		{[]string{"--admin", "none"}, "", ""},
	} {
		a := adminWith(t, c.args...)
		a.Getenv = func(string) string { return c.env }
		if err := a.Check(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.args, err, c.says)
		}
	}
	// Also where nobody checked first.
	if _, err := adminWith(t, "--admin", "0.0.0.0:0").Open(slog.New(slog.DiscardHandler), Probes{well,
		well}); err == nil {
		t.Error("a port that other machines reach was opened without a token")
	}
}

// TestAdminTokenRefused holds which tokens are none, and that no error shows one.
func TestAdminTokenRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		mode os.FileMode
		says string
	}{
		{strings.Repeat("s", minToken), 0o600, ""},
		{strings.Repeat("s", minToken-1), 0o600, "15 bytes: expected 16"},
		{strings.Repeat("s", maxToken), 0o600, ""},
		{strings.Repeat("s", maxToken+1), 0o600, "513 bytes"},
		{strings.Repeat("s", 2*maxToken+3), 0o600, "not a file of at most"},
		{"", 0o600, "is empty"},
		{"ssss ssss ssss ssss", 0o600, "without spaces"},
		{"ssss\nssss\nssss\nssss", 0o600, "without spaces"},
		{strings.Repeat("s", minToken), 0o644, "chmod 600"},
	} {
		token, err := readToken(secretFile(t, c.text, c.mode), nil)
		if c.says == "" {
			if err != nil || token != c.text {
				t.Errorf("%d bytes: %v", len(c.text), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "sss") {
			t.Errorf("%d bytes, mode %o: %v, want %q", len(c.text), c.mode, err, c.says)
		}
	}
	if _, err := readToken(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	short := func(string) string { return "sssss" }
	if _, err := readToken("", short); err == nil || !strings.Contains(err.Error(), AdminTokenEnv) ||
		strings.Contains(err.Error(), "sss") {
		t.Error(err)
	}
}

// TestCertificatesRefused holds that files which are no certificate, key or authority are told by their flags.
func TestCertificatesRefused(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Issue("server")
	for _, c := range []struct{ cert, key, ca, says string }{{"", key, a.CA, ""}, {cert, key, "", ""},
		{cert, key, a.CA, ""}, {key, cert, a.CA, "--door-cert and --door-key: "}, {cert, key, key, "--door-ca: "}} {
		got, err := Certificates("door", c.cert, c.key, c.ca, nil)
		if (got != nil) != (c.says == "" && c.cert != "") || (err != nil) != (c.says != "") ||
			err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// ask sends one request as somebody.
func ask(t *testing.T, client *http.Client, method, url string, as func(*http.Request)) (code int, body string,
	header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if as != nil {
		as(r)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

func nobody(*http.Request)        {}
func bearer(r *http.Request)      { r.Header.Set("Authorization", "Bearer "+testToken) }
func password(r *http.Request)    { r.SetBasicAuth("anybody", testToken) }
func guesser(r *http.Request)     { r.Header.Set("Authorization", "Bearer "+testToken[1:]) }
func beginner(r *http.Request)    { r.Header.Set("Authorization", "Bearer "+testToken[:8]) }
func empty(r *http.Request)       { r.Header.Set("Authorization", "Bearer ") }
func otherScheme(r *http.Request) { r.Header.Set("Authorization", testToken) }

// TestAdminToken holds who sees what with a token. What is sick is told only to those
// who have it.
func TestAdminToken(t *testing.T) {
	f := adminWith(t, "--admin", "127.0.0.1:0", "--admin-token-file", secretFile(t, testToken+"\n", 0o600))
	sick := func() error { return errors.New("broker-7 is away") }
	acted := 0
	a, err := f.Open(slog.New(slog.DiscardHandler), Probes{well, sick},
		Page{Path: "/page", Answer: func(w http.ResponseWriter, _ *http.Request) { acted++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, c := range []struct {
		path string
		as   func(*http.Request)
		code int
		says string
	}{
		{"/metrics", bearer, 200, "go_goroutines"},
		{"/metrics", password, 200, "go_goroutines"},
		{"/metrics", nobody, 401, "who are you?"},
		{"/metrics", guesser, 401, "who are you?"},
		{"/metrics", beginner, 401, "who are you?"},
		{"/metrics", empty, 401, "who are you?"},
		{"/metrics", otherScheme, 401, "who are you?"},
		{"/page", nobody, 401, "who are you?"},
		{"/nothing", nobody, 401, "who are you?"}, // not even what there is
		{"/healthz", nobody, 200, "alive\n"},
		{"/readyz", nobody, 503, "not ready\n"},
		{"/readyz", bearer, 503, "broker-7 is away\n"},
	} {
		code, body, header := ask(t, http.DefaultClient, "GET", "http://"+a.Addr()+c.path, c.as)
		if code != c.code || !strings.Contains(body, c.says) || strings.Contains(body, testToken) {
			t.Errorf("%s: %d %q, want %d %q", c.path, code, body, c.code, c.says)
		}
		if asks := header.Get("WWW-Authenticate"); (code == 401) != strings.HasPrefix(asks, "Basic ") {
			t.Errorf("%s: %d asks for %q", c.path, code, asks)
		}
	}
	if acted != 0 {
		t.Errorf("a page answered %d strangers", acted)
	}
}

// TestAdminCertificate holds who sees what with mutual TLS.
func TestAdminCertificate(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Issue("server")
	f := adminWith(t, "--admin", "0.0.0.0:0", "--admin-cert", cert, "--admin-key", key, "--admin-ca", ours.CA)
	a := openAdmin(t, f, Probes{well, well})
	_, port, _ := net.SplitHostPort(a.Addr())
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(ours.CA)
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	client := func(by *tlstest.Authority) *http.Client {
		c := &tls.Config{RootCAs: roots}
		if by != nil {
			cert, key := by.Issue("client")
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			// whoever is asked for
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		tr := &http.Transport{TLSClientConfig: c}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	url := "https://127.0.0.1:" + port
	if code, body, _ := ask(t, client(ours), "GET", url+"/metrics", nobody); code != 200 ||
		!strings.Contains(body, "go_goroutines") {
		t.Errorf("our client: %d %q", code, body)
	}
	if code, _, _ := ask(t, client(nil), "GET", url+"/metrics", bearer); code != 401 {
		t.Errorf("no certificate: %d", code)
	}
	if code, body, _ := ask(t, client(nil), "GET", url+"/readyz", nobody); code != 200 || body != "ready\n" {
		t.Errorf("a probe: %d %q", code, body)
	}
	if r, err := client(theirs).Get(url + "/metrics"); err == nil {
		r.Body.Close()
		t.Errorf("a client that others vouch for: %d", r.StatusCode)
	}
	old := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if c, err := tls.Dial("tcp", "127.0.0.1:"+port, old); err == nil {
		c.Close()
		t.Errorf("%s is spoken", tls.VersionName(c.ConnectionState().Version))
	} else if !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.1 is refused with: %v", err)
	}
	if r, err := http.Get("http://127.0.0.1:" + port + "/metrics"); err == nil {
		defer r.Body.Close()
		if text, _ := io.ReadAll(r.Body); r.StatusCode != 400 || strings.Contains(string(text), "go_goroutines") {
			t.Errorf("without TLS: %d %q", r.StatusCode, text)
		}
	}
}

// TestAdminBrowser holds that a page of somebody else, open in the operator's browser,
// cannot use a port that asks for no token: not by a name of its own that points here,
// nor by sending a form.
func TestAdminBrowser(t *testing.T) {
	a := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0"), Probes{well, well})
	url := "http://" + a.Addr() + "/metrics"
	as := func(host, site string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = host
			if site != "" {
				r.Header.Set("Sec-Fetch-Site", site)
			}
		}
	}
	_, port, _ := net.SplitHostPort(a.Addr())
	for _, c := range []struct {
		method, host, site string
		code               int
	}{
		{"GET", "evil.example", "", 403},
		{"GET", "evil.example:" + port, "", 403},
		{"GET", "127.0.0.1.evil.example", "", 403},
		{"GET", "localhost:" + port, "", 200},
		{"GET", "[::1]:" + port, "", 200},
		{"GET", "127.0.0.1", "cross-site", 200}, // it cannot read the answer
		{"POST", "127.0.0.1", "cross-site", 403},
		{"POST", "127.0.0.1", "same-origin", 405}, // the page takes no POST
		{"POST", "127.0.0.1", "", 405},            // no browser
	} {
		if code, _, _ := ask(t, http.DefaultClient, c.method, url, as(c.host, c.site)); code != c.code {
			t.Errorf("%s to %s, %s: %d, want %d", c.method, c.host, c.site, code, c.code)
		}
	}
}

// TestAdminProfiles holds that profiles are there when asked for, to those who belong.
func TestAdminProfiles(t *testing.T) {
	a := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0", "--pprof", "--admin-token-file",
		secretFile(t, testToken, 0o600)), Probes{well, well})
	url := "http://" + a.Addr() + "/debug/pprof/"
	if code, _, _ := ask(t, http.DefaultClient, "GET", url, nobody); code != 401 {
		t.Error(code)
	}
	if code, body, _ := ask(t, http.DefaultClient, "GET", url+"goroutine?debug=1", bearer); code != 200 ||
		!strings.Contains(body, "goroutine profile") {
		t.Errorf("%d %q", code, body)
	}
}

// TestAdminLimits holds what the port takes: at its limits, and over them.
func TestAdminLimits(t *testing.T) {
	f := adminWith(t, "--admin", "127.0.0.1:0")
	var got int64
	a, err := f.Open(slog.New(slog.DiscardHandler), Probes{well, well},
		Page{Path: "/page", Answer: func(w http.ResponseWriter, r *http.Request) {
			var err error
			if got, err = io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	tr := &http.Transport{DisableKeepAlives: true}
	send := func(size, header int) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+a.Addr()+"/page",
			strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", strings.Repeat("x", header))
		answer, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	for _, c := range []struct{ size, header, code int }{
		{adminBody - 1, 0, 200}, {adminBody, 0, 200}, {adminBody + 1, 0, 413},
		{0, adminHeader - 1000, 200}, {0, adminHeader + 8<<10, 431}, // net/http adds 4 KiB to its limit
	} {
		if code := send(c.size, c.header); code != c.code || code == 200 && got != int64(c.size) {
			t.Errorf("%d bytes, a header of %d: %d after %d bytes, want %d", c.size, c.header, code, got, c.code)
		}
	}
}

// TestAdminConnections holds that the port has adminConns connections at once, and that
// probes and scrapes get through whatever else holds them: connections that are idle, that
// send a request slowly, or that wait for an answer. The one that was used the longest ago
// makes room, and one that is being answered only where all are.
func TestAdminConnections(t *testing.T) {
	for _, c := range []struct {
		name, says string
		answers    bool
	}{
		{"silent", "", false},
		{"idle", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", true},
		{"slow", "GET /healthz HTTP/1.1\r\nHost: local", false},
		{"waiting", "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n", false},
	} {
		t.Run(c.name, func(t *testing.T) { fillConnections(t, c.says, c.answers) })
	}
}

func fillConnections(t *testing.T, says string, answers bool) {
	entered, release := make(chan struct{}, 2*adminConns), make(chan struct{})
	slow := Page{Path: "/slow", Answer: func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}}
	a, err := adminWith(t, "--admin", "127.0.0.1:0").Open(slog.New(slog.DiscardHandler), Probes{well, well}, slow)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer close(release)
	// dial opens a connection and waits until the server has heard what is said.
	dial := func(says string, answers bool) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, says); err != nil {
			t.Fatal(err)
		}
		if answers {
			if _, err := c.Read(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
		} else if strings.Contains(says, "/slow") {
			<-entered
		}
		return c
	}
	served := dial("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n", false)
	conns := []net.Conn{}
	defer func() { // or Close waits for them
		for _, c := range conns {
			c.Close()
		}
	}()
	for range adminConns - 1 {
		conns = append(conns, dial(says, answers))
	}
	for range 3 {
		for _, page := range []string{"/healthz", "/readyz", "/metrics"} {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if code, text, _ := ask(t, client, "GET", "http://"+a.Addr()+page, nobody); code != http.StatusOK {
				t.Fatalf("%s: %d, %s", page, code, text)
			}
		}
		for range adminConns / 2 {
			conns = append(conns, dial(says, answers))
		}
	}
	isOpen := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded)
	}
	if isOpen(conns[0]) {
		t.Error("the longest unused connection is there")
	}
	if waits := strings.Contains(says, "/slow"); isOpen(served) == waits {
		t.Errorf("the connection that is being answered is gone: %v", !waits)
	}
	if !isOpen(conns[len(conns)-1]) {
		t.Error("the last connection is gone")
	}
}

// TestAdminRenewal holds that certificates and authorities that are renewed under a running
// server are used from the next connection on, and that broken files are not.
func TestAdminRenewal(t *testing.T) {
	ours, theirs := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Issue("server")
	roots, err := certs.ReadPool(ours.CA)
	if err != nil {
		t.Fatal(err)
	}
	old, err := tls.LoadX509KeyPair(ours.Issue("client"))
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := tls.LoadX509KeyPair(theirs.Issue("client"))
	if err != nil {
		t.Fatal(err)
	}
	a := openAdmin(t, adminWith(t, "--admin", "127.0.0.1:0", "--admin-cert", cert, "--admin-key", key, "--admin-ca",
		ours.CA), Probes{well, well})
	var sessions tls.ClientSessionCache // nil: each connection shows its certificates
	// connect returns the serial number of the server's certificate, and whether the client
	// is let in.
	connect := func(client *tls.Certificate) (serial string, in bool) {
		t.Helper()
		tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots,
			ClientSessionCache:   sessions,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return client, nil }}}
		r, err := (&http.Client{Transport: tr}).Get("https://" + a.Addr() + "/metrics")
		if err != nil {
			return err.Error(), false
		}
		r.Body.Close()
		return r.TLS.PeerCertificates[0].SerialNumber.String(), r.StatusCode == http.StatusOK
	}
	first, in := connect(&old)
	if !in {
		t.Fatalf("the client is not let in: %s", first)
	}
	ours.Issue("server") // into the same files
	second, in := connect(&old)
	if !in || second == first {
		t.Errorf("after the renewal the certificate is %s, as before %s (let in: %v)", second, first, in)
	}
	rewrite := func(path string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(key, []byte("half a file"))
	if serial, in := connect(&old); !in || serial != second {
		t.Errorf("with a broken key the certificate is %s, and was %s (let in: %v)", serial, second, in)
	}
	text, err := os.ReadFile(theirs.CA)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(ours.CA, []byte("half a file"))
	ours.Issue("server")
	if third, in := connect(&old); !in || third == second {
		t.Errorf("with a broken file of authorities the certificate is %s, as before its renewal %s (let in: %v)",
			third, second, in)
	}
	sessions = tls.NewLRUClientSessionCache(0) // one that was begun with the authority before does not outlive it
	if serial, in := connect(&old); !in {
		t.Errorf("with a broken file of authorities the client is not let in: %s", serial)
	}
	rewrite(ours.CA, text)
	if serial, in := connect(&old); in {
		t.Errorf("a client of the authority before is let in: %s", serial)
	}
	if serial, in := connect(&renewed); !in {
		t.Errorf("a client of the new authority is not let in: %s", serial)
	}
}
