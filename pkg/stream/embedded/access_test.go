package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/nats"
)

// user connects as one of those whom connect.json does not make the service.
func user(t *testing.T, e *embedded.Engine, options ...natsgo.Option) (conn *natsgo.Conn, refused chan error) {
	t.Helper()
	refused = make(chan error, 16)
	conn, err := natsgo.Connect(e.URL(),
		append(options, natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) {
			refused <- err
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, refused
}

// TestNobodyOverhears subscribes to all that a client may, while the service reads and
// writes its logs in this process and in another, and a named client asks: nothing of
// that arrives.
func TestNobodyOverhears(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := embedded.Options{Dir: t.TempDir(), Port: -1}
	e := open(t, o)
	defer closeEngine(t, e)
	spy, refused := user(t, e)
	var heard []string
	caught, err := spy.Subscribe("_INBOX.>", func(m *natsgo.Msg) {
		heard = append(heard, fmt.Sprintf("%s: %q", m.Subject, m.Data))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{attach.ServiceInbox + ".>", attach.ClientInbox + ".>", "_INBOX_service.*", "*.>"} {
		if _, err := spy.SubscribeSync(s); err != nil {
			t.Fatal(err)
		}
		if err := <-refused; !errors.Is(err, natsgo.ErrPermissionViolation) {
			t.Errorf("%s: %v", s, err)
		}
	}
	stop, err := e.Bus().Serve("m.decide", "q", func(m stream.Message) { _ = m.Respond([]byte("secret answer")) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := e.Log().Create(ctx, "m.contexts", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	other, err := attach.Dial(o.Dir, "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for i, l := range []*nats.Log{e.Log(), other.Log()} {
		w, err := l.Writer(ctx, "m.contexts", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(ctx, &stream.Record{Value: []byte("secret context")}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		r, err := l.Read(ctx, "m.contexts", 0, stream.Earliest)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < i+1; {
			recs, err := r.Next(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			n += len(recs)
		}
		r.Close()
	}
	named, _ := user(t, e, natsgo.UserInfo(e.Access().ClientUser, e.Access().ClientPassword),
		natsgo.CustomInboxPrefix(attach.ClientInbox))
	if m, err := named.Request("m.decide", nil, 30*time.Second); err != nil || string(m.Data) != "secret answer" {
		t.Fatal(m, err)
	}
	// The last thing to be heard is an answer to somebody without a name.
	plain, _ := user(t, e)
	if _, err := plain.Request("m.decide", nil, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	for delivered := int64(0); delivered == 0; {
		if delivered, err = caught.Delivered(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	caught.SetClosedHandler(func(string) { close(done) })
	if err := caught.Drain(); err != nil {
		t.Fatal(err)
	}
	<-done
	if len(heard) != 1 || !strings.Contains(heard[0], "secret answer") {
		t.Errorf("somebody without a name heard %q", heard)
	}
}

// TestConnectFile holds what connect.json tells, and to whom.
func TestConnectFile(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), Port: -1}
	e := open(t, o)
	defer closeEngine(t, e)
	path := filepath.Join(o.Dir, attach.ConnectFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	if c["inbox"] != attach.ServiceInbox || c["client_inbox"] != attach.ClientInbox ||
		c["password"] == c["client_password"] || len(c["password"].(string)) < 26 {
		t.Errorf("%s", text)
	}
}

// TestServerLimits holds the limits of the server under, at and over them: connections,
// bytes of a message, subscriptions of a connection, bytes of a subject.
func TestServerLimits(t *testing.T) {
	const conns = 8 // four are the engine's own
	e := open(t, embedded.Options{Dir: t.TempDir(), Port: -1, MaxConns: conns})
	defer closeEngine(t, e)
	stop, err := e.Bus().Serve("m.decide", "q", func(m stream.Message) {
		_ = m.Respond([]byte(fmt.Sprint(len(m.Data))))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var last *natsgo.Conn
	for range conns - 4 {
		last, _ = user(t, e)
	}
	if told := hear(t, e); !strings.Contains(told, "maximum connections exceeded") {
		t.Errorf("connection %d: %q", conns+1, told)
	}
	last.Close()
	var conn *natsgo.Conn
	for conn == nil { // when the server has seen that
		conn, err = natsgo.Connect(e.URL())
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	defer conn.Close()
	for _, n := range []int{1<<20 - 1, 1 << 20} {
		if m, err := conn.Request("m.decide", bytes.Repeat([]byte("x"), n), 30*time.Second); err != nil ||
			string(m.Data) != fmt.Sprint(n) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := conn.Publish("m.decide", make([]byte, 1<<20+1)); !errors.Is(err, natsgo.ErrMaxPayload) { // by the library
		t.Errorf("a MiB and a byte: %v", err)
	}
	for _, c := range []struct {
		what, send, says string
	}{
		{"a MiB and a byte", "PUB m.decide 1048577\r\n", "'Maximum Payload Violation'"},
		{"a subject of 1 KiB", "PUB m." + strings.Repeat("x", 1<<10) + " 0\r\n\r\n", "'Maximum Control Line Exceeded'"},
		{"a subject of 1 KiB without an end", "PUB m." + strings.Repeat("x", 8<<10), "'Maximum Control Line Exceeded'"},
		{"somewhat less than 1 KiB", "PUB m." + strings.Repeat("x", 1000) + " 0\r\n\r\n", "Permissions Violation"},
		{"9 parts", "SUB _INBOX" + strings.Repeat(".x", 8) + " 1\r\n", "too many tokens"},
		{"8 parts", "SUB _INBOX" + strings.Repeat(".x", 7) + " 1\r\n", "PONG"},
		{"1001 subscriptions", login(e) + subscriptions(1001), "'Maximum Subscriptions Exceeded'"},
		{"1000 subscriptions", login(e) + subscriptions(1000), "PONG"},
	} {
		conn.Close()
		if got := raw(t, e, c.send); !strings.Contains(strings.ToLower(got), strings.ToLower(c.says)) {
			t.Errorf("%s: the server says %q, want %s", c.what, got, c.says)
		}
	}
}

// TestConnectionsAreKept has a client hold every connection that it gets, and connect again
// whenever it is cut off: the service's own user connects all the same, and those of the
// client that came first stay.
func TestConnectionsAreKept(t *testing.T) {
	const conns = 64 // of which half are kept, and four of them the engine's own
	var log locked.Buffer
	o := embedded.Options{Dir: t.TempDir(), Port: -1, MaxConns: conns,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	e := open(t, o)
	defer func() {
		closeEngine(t, e)
		if text := log.String(); !strings.Contains(text, " disconnected=") || strings.Contains(text, " "+
			"disconnected=0") {
			t.Errorf("logged of those who were disconnected:\n%s", text)
		}
	}()
	var greedy sync.WaitGroup
	defer greedy.Wait()
	quit, stop := context.WithCancel(t.Context())
	defer stop()
	first, lost := user(t, e)
	hold := func() {
		for quit.Err() == nil {
			if c, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://")); err == nil {
				unhold := context.AfterFunc(quit, func() { c.Close() })
				_, _ = c.Write([]byte("CONNECT {\"verbose\":false}\r\n"))
				_, _ = io.Copy(io.Discard, c)
				unhold()
				c.Close()
			}
		}
	}
	for range conns {
		greedy.Go(hold)
	}
	for e.Server().NumClients() < conns {
		if t.Context().Err() != nil {
			t.Fatal("the server does not fill")
		}
		runtime.Gosched()
	}
	var other *nats.Client
	for limit := time.Now().Add(time.Minute); other == nil; {
		var err error
		if other, err = attach.Dial(o.Dir, "joiner", nats.Options{}); err != nil && time.Now().After(limit) {
			t.Fatalf("the service's user is kept out: %v", err)
		}
	}
	defer other.Close()
	if err := first.FlushTimeout(30 * time.Second); err != nil || len(lost) > 0 {
		t.Errorf("the first client: %v", err)
	}
}

// login says that one is the service, of which more is taken than of those without a name.
func login(e *embedded.Engine) string {
	return fmt.Sprintf("CONNECT {\"verbose\":false,\"user\":%q,\"pass\":%q}\r\n", e.Access().User, e.Access().Password)
}

func subscriptions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "SUB _INBOX.%d %d\r\n", i, i)
	}
	return b.String()
}

// raw says something to the server without a library and returns what it answers, up to
// the end or a PONG.
func raw(t *testing.T, e *embedded.Engine, text string) string {
	t.Helper()
	for { // until there is room for another connection
		c, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		got := converse(t, c, text)
		c.Close()
		if !strings.Contains(strings.ToLower(got), "maximum connections exceeded") {
			return got
		}
	}
}

func converse(t *testing.T, c net.Conn, text string) string {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "CONNECT") {
		text = "CONNECT {\"verbose\":false}\r\n" + text
	}
	_, _ = c.Write([]byte(text + "PING\r\n")) // it may hang up meanwhile
	var got []byte
	buf := make([]byte, 4096)
	for !strings.Contains(string(got), "PONG") {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	return string(got)
}

// TestLogin cuts off who connects and does not say who it is.
func TestLogin(t *testing.T) {
	t.Parallel() // it waits for the server's patience to end
	e := open(t, embedded.Options{Dir: t.TempDir(), Port: -1})
	defer closeEngine(t, e)
	if told := hear(t, e); !strings.Contains(told, "Authentication Timeout") {
		t.Errorf("%q", told)
	}
}

// hear connects, says nothing, and returns what the server says until it hangs up.
func hear(t *testing.T, e *embedded.Engine) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	told, _ := io.ReadAll(c)
	return string(told)
}
