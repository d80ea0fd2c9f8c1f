package door

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func zipped(t testing.TB, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// refusal is a request that is refused.
type refusal struct {
	name, method, path, body string
	headers                  []string
	status                   int
	says                     string
}

const context1 = `{"id":"a","actions":["x","y"]}`

// spaces makes a body as long as this.
func spaces(body string, n int) string { return body + strings.Repeat(" ", n-len(body)) }

// TestRefusals holds that each of these is refused by name, and decides nothing.
func TestRefusals(t *testing.T) {
	w := open(t, setting{})
	depth := strings.Repeat(`{"a":`, 1e5) + "1" + strings.Repeat("}", 1e5)
	bomb := zipped(t, make([]byte, 64<<20))
	if len(bomb) > maxBody {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	for _, c := range []refusal{
		{"Host forged", "POST", "/v1/decide", context1, []string{"Host: example.org"}, 403, "ask for localhost"},
		{"Host forged, of a GET", "GET", "/v1/decide", "", []string{"Host: example.org:80"}, 403, "ask for localhost"},
		{"foreign origin", "POST", "/v1/decide", context1, []string{"Origin: http://example.org"}, 403,
			"another origin"},
		{"no origin", "POST", "/v1/outcome", context1, []string{"Origin: null"}, 403, "another origin"},
		{"cross-site", "POST", "/v1/decide", context1, []string{"Sec-Fetch-Site: cross-site"}, 403, "another origin"},
		{"same site, another port", "POST", "/v1/decide", context1, []string{"Sec-Fetch-Site: same-site"}, 403,
			"another origin"},
		{"a form", "POST", "/v1/decide", context1, []string{"Content-Type: text/plain"}, 415, "send application/json"},
		{"no content type", "POST", "/v1/outcome", context1, []string{"Content-Type: "}, 415, "send application/json"},
		{"another content type than the body's", "POST", "/v1/decide", context1,
			[]string{"Content-Type: application/msgpack"}, 400, "not what its Content-Type says"},
		{"another coding", "POST", "/v1/decide", context1, []string{"Content-Encoding: br"}, 415, "send gzip"},
		{"no gzip", "POST", "/v1/decide", context1, []string{"Content-Encoding: gzip"}, 400, "cannot be read"},
		{"half a gzip", "POST", "/v1/decide", zipped(t, []byte(context1))[:20], []string{"Content-Encoding: gzip"}, 400,
			"cannot be read"},
		{"1 MiB and a byte", "POST", "/v1/decide", spaces(context1, maxBody+1), nil, 413, "at most 1048576 bytes"},
		{"1 MiB and a byte of gzip", "POST", "/v1/decide", zipped(t, []byte(spaces(context1, maxBody+1))),
			[]string{"Content-Encoding: gzip"}, 413, "at most 1048576 bytes"},
		{"gzip bomb", "POST", "/v1/outcome", bomb, []string{"Content-Encoding: gzip"}, 413, "also when it is inflated"},
		{"1 MiB, more than a record", "POST", "/v1/decide", spaces(context1, maxBody), nil, 413, "the context is " +
			"too large"},
		{"JSON depth of 100,000", "POST", "/v1/decide", depth, nil, 400, "too deeply"},
		{"no JSON", "POST", "/v1/decide", "{", nil, 400, "the bytes end too early"},
		{"an id that is none", "POST", "/v1/decide", `{"id":7,"actions":["x"]}`, nil, 400, "id: want text"},
		{"a loss that is none", "POST", "/v1/outcome", `{"id":"a","loss":"1"}`, nil, 400, "loss: want a number"},
		{"no body", "POST", "/v1/decide", "", []string{"Content-Type: application/json"}, 400, "the body is empty"},
		{"a batch that is none", "POST", "/v1/batch", `[{"context":{}},5]`, nil, 400, ": unexpected number at byte 17"},
		{"an outcome without a value", "POST", "/v1/outcome", `{"id":"a"}`, nil, 400, ""},
		{"a timeout that is none", "POST", "/v1/decide", context1, []string{"Hindsight-Timeout: soon"}, 400, "250ms"},
		{"a preference that is none", "POST", "/v1/decide", context1, []string{"Prefer: wait=soon"}, 400, "wait=0.25"},
		{"another model", "POST", "/v1/models/other/decide", context1, nil, 404, "/v1/models/shop/decide"},
		{"another path", "POST", "/v1/decisions", context1, nil, 404, "/docs lists"},
		{"another method", "GET", "/v1/decide", "", nil, 405, "takes POST"},
	} {
		got := w.call(c.method, c.path, c.body, c.headers...)
		if p := got.problem(t); got.status != c.status || p.Status != c.status || !strings.Contains(p.Detail, c.says) ||
			p.Title != http.StatusText(c.status) || strings.Contains(p.Detail, "corrupt") {
			t.Errorf("%s: %d %+v; want %d, %q", c.name, got.status, p, c.status, c.says)
		}
		for name := range got.header {
			if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
				t.Errorf("%s: header %s", c.name, name)
			}
		}
	}
	if n := len(w.records("shop.decisions")) + len(w.records("shop.outcomes")); n != 0 {
		t.Errorf("%d records", n)
	}
	if w.door.held.Load() != 0 {
		t.Errorf("%d bytes of bodies are held", w.door.held.Load())
	}
	w.decide(spaces(context1, maxBody-16<<10)) // about the largest
}

// TestLongBodyIsNotRead holds that a body that says that it is too long is not read.
func TestLongBodyIsNotRead(t *testing.T) {
	w := open(t, setting{})
	got := w.raw("POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: 1048577\r\n\r\n", nil)
	if !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("%.200s", got)
	}
}

// raw sends bytes, and what more says when the request is under way, and returns what comes until the connection ends.
func (w *world) raw(sent string, more func(c net.Conn)) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.door.Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, sent); err != nil {
		w.t.Fatal(err)
	}
	if more != nil {
		more(c)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil && len(b) == 0 {
		w.t.Fatal(err)
	}
	if got, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil); err == nil &&
		got.Header.Get("Content-Type") == typeProblem { // ours, and not the server's
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		if err != nil {
			w.t.Error(err)
		}
		r, err := http.NewRequestWithContext(w.t.Context(), "POST", w.url+"/v1/decide", nil)
		if err != nil {
			w.t.Fatal(err)
		}
		promised().check(w.t, r, reply{got.StatusCode, got.Header, body})
	}
	return string(b)
}

// TestSlowSender holds that one who sends slowly is cut off, before and in the body, and holds nothing then.
func TestSlowSender(t *testing.T) {
	w := open(t, setting{slow: 50 * time.Millisecond})
	if got := w.raw("POST /v1/decide HTTP/1.1\r\nHost: loc", nil); got != "" && !strings.HasPrefix(got,
		"HTTP/1.1 408 ") {
		t.Errorf("in the header: %.200s", got)
	}
	got := w.raw("POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+
		"900000\r\n\r\n{", nil)
	if !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, "too slowly") {
		t.Errorf("in the body: %.400s", got)
	}
	if w.door.held.Load() != 0 {
		t.Errorf("%d bytes of bodies are held", w.door.held.Load())
	}
}

// TestSmuggling holds that requests whose end two programs may see at two places are refused.
func TestSmuggling(t *testing.T) {
	w := open(t, setting{})
	const (
		line    = "POST /v1/decide HTTP/1.1\r\n"
		named   = line + "Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
		sized   = named + "Content-Length: 30\r\n"
		chunked = named + "Transfer-Encoding: chunked\r\n\r\n"
		end     = "\r\n0\r\n\r\n"
	)
	if len(context1) != 30 {
		t.Fatal(len(context1))
	}
	for name, sent := range map[string]string{
		"two lengths":         sized + "Content-Length: 31\r\n\r\n" + context1,
		"a list of lengths":   named + "Content-Length: 30, 30\r\n\r\n" + context1,
		"a signed length":     named + "Content-Length: +30\r\n\r\n" + context1,
		"a coding of its own": named + "Transfer-Encoding: xchunked\r\n\r\n" + context1,
		"two codings":         named + "Transfer-Encoding: chunked, identity\r\n\r\n1e\r\n" + context1 + end,
		"a coding twice": named + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n" +
			context1 + end,
		"a coding behind another space": named + "Transfer-Encoding:\vchunked\r\n\r\n1e\r\n" + context1 + end,
		"a coding in HTTP/1.0": strings.Replace(chunked, "HTTP/1.1", "HTTP/1.0", 1) + "1e\r\n" +
			context1 + end,
		"a space in a name":     named + "Content-Length : 30\r\n\r\n" + context1,
		"a space before a name": line + " A: b\r\n" + strings.TrimPrefix(sized, line) + "\r\n" + context1,
		"a bare CR":             named + "A: b\rContent-Length: 3\r\nContent-Length: 30\r\n\r\n" + context1,
		"a NUL":                 sized + "A: \x00\r\n\r\n" + context1,
		"two hosts":             sized + "Host: example.org\r\n\r\n" + context1,
		"no host": line + strings.TrimPrefix(sized, line+"Host: localhost\r\n") +
			"\r\n" + context1,
		"a chunk that LF ends":         chunked + "1e\n" + context1 + end,
		"a chunk's extension, with LF": chunked + "1e;a\n" + context1 + end,
		"data that LF ends":            chunked + "1e\r\n" + context1 + "\n0\r\n\r\n",
		"data longer than its chunk":   chunked + "1e\r\n" + context1 + "x" + end,
		"a chunk's size with a sign":   chunked + "+1e\r\n" + context1 + end,
		"a chunk's size with 0x":       chunked + "0x1e\r\n" + context1 + end,
		"a chunk of more than 64 bits": chunked + "1000000000000001e\r\n" + context1 + end,
		"a length in the trailer": named + "Trailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n" +
			context1 + "\r\n0\r\nContent-Length: 5\r\n\r\n",
	} {
		got := w.raw(sent, nil)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") && !strings.HasPrefix(got, "HTTP/1.1 501 ") &&
			!strings.HasPrefix(got, "HTTP/1.0 400 ") {
			t.Errorf("%s: %.200s", name, got)
		}
	}
	if n := len(w.records("shop.decisions")); n != 0 {
		t.Errorf("%d decisions", n)
	}
}

// TestSmugglingBehindProxy holds that what is behind a body in chunks is no request where a proxy may have taken it for
// the body.
func TestSmugglingBehindProxy(t *testing.T) {
	w := open(t, setting{flags: []string{"--http-plain"}})
	const head = "POST /v1/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	hidden := head + "Content-Length: 30\r\n\r\n" + strings.Replace(context1, "a", "b", 1)
	body := "1e\r\n" + context1 + "\r\n0\r\n\r\n" + hidden
	both := fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(body))
	got := w.raw(head+both+body, nil)
	if !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Count(got, "HTTP/1.1 ") != 1 ||
		len(w.records("shop.decisions")) != 1 {
		t.Errorf("%d decisions: %s", len(w.records("shop.decisions")), got)
	}
}

// TestBodiesTogether holds that bodies that are being read hold no more than they may together.
func TestBodiesTogether(t *testing.T) {
	w := open(t, setting{})
	w.door.held.Store(maxHeld - 100)
	got := w.call("POST", "/v1/decide", context1)
	if p := got.problem(t); got.status != 503 || got.header.Get("Retry-After") != "1" ||
		!strings.Contains(p.Detail, "retry") {
		t.Errorf("%d %+v", got.status, p)
	}
	w.door.held.Store(0)
	w.decide(context1)
}

// TestHTTPAddress holds that --http is what it says, or is refused by name.
func TestHTTPAddress(t *testing.T) {
	for _, c := range []struct{ address, says string }{{"8080", "expected HOST:PORT"},
		{"127.0.0.1:", "expected HOST:PORT"},
		{"0.0.0.0:0", "is reached by other machines"}, {":0", "is reached by other machines"},
		{"example.org:80", "is reached by other machines"}, {"none", ""}, {"[::1]:0", ""}, {"localhost:0", ""}} {
		f := Flags{address: c.address}
		if err := f.Check(); (err == nil) != (c.says == "") || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v; want %q", c.address, err, c.says)
		}
	}
}

// TestHTTPConnections holds that headers and connections are bounded, and that connections that end make room.
func TestHTTPConnections(t *testing.T) {
	w := open(t, setting{})
	if got := w.raw("GET / HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 32<<10)+"\r\n\r\n",
		nil); !strings.HasPrefix(
		got, "HTTP/1.1 431 ") {
		t.Errorf("a long header: %.100s", got)
	}
	eventually(t, "connections end", func() bool { return w.door.conns.Load() == 0 })
	w.door.conns.Store(maxConns)
	c, err := net.Dial("tcp", w.door.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") // it may be closed already
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection too many is sent %d bytes", n)
	}
	eventually(t, "it is no longer counted", func() bool { return w.door.conns.Load() == maxConns })
	w.door.conns.Store(0)
	w.decide(context1)
}

// TestNoAnswer holds that an answer is not waited for without end, and that one that comes late is nobody else's.
func TestNoAnswer(t *testing.T) {
	w := open(t, setting{})
	e := exchanges.Get().(*exchange)
	if p := e.answered(t.Context(), time.Nanosecond); p == nil || p.Status != 503 ||
		!strings.Contains(p.Detail, "unknown") {
		t.Errorf("%+v", p)
	}
	if err := e.message.Respond([]byte("late")); err != nil {
		t.Error(err)
	}
	w.decide(context1)
}
