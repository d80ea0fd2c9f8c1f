package nats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// TestClientOf holds by what clients are told apart: the subject of their connection, or their account.
func TestClientOf(t *testing.T) {
	for _, c := range []struct{ reply, info, want string }{
		{"", "", ""}, {"_INBOX", "", ""}, {"_INBOX.a", "", ""}, {"_INBOX.a.b", "", "_INBOX.a"},
		{"_INBOX.a.b.c", "", "_INBOX.a.b"}, {"_INBOX.a.", "", "_INBOX.a"}, {"..", "", "."},
		{"_INBOX.a.b", `{"acc":"A"}`, "_INBOX.a"},
		{"_R_.x.y", `{"acc":"A"}`, "_R_.A"}, {"_R_.x", `{"acc":"A","svc":"s"}`, "_R_.A"},
		{"_R_.x.y", `{"acc":""}`, "_R_.x"}, {"_R_.x.y", "what?", "_R_.x"}, {"_R_.x.y", `{"acc":"A"`, "_R_.x"},
		{"_R_.x.y", "", "_R_.x"},
	} {
		m := &natsgo.Msg{Reply: c.reply, Header: natsgo.Header{}}
		if c.info != "" {
			m.Header.Set(headerRequestInfo, c.info)
		}
		if got := client(m); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.reply, c.info, got, c.want)
		}
		if kept := m.Header.Get(headerRequestInfo) != ""; kept != (c.info != "" && !strings.HasSuffix(c.want, ".A")) {
			t.Errorf("%s with %s: the handler gets it: %v", c.reply, c.info, kept)
		}
	}
}

// TestWatcher holds what is logged of connections: each change once, and nothing of one that is closed in order.
func TestWatcher(t *testing.T) {
	var log bytes.Buffer
	h := natsgo.GetDefaultOptions()
	for _, o := range watcher(slog.New(slog.NewTextHandler(&log, nil))) {
		if err := o(&h); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := runServer(t, t.TempDir(), -1)
	closed := connect(t, s.ClientURL())
	closed.Close()
	conn, forbidden := &natsgo.Conn{}, fmt.Errorf("%w: x", natsgo.ErrPermissionViolation)
	for i, c := range []struct {
		what func()
		says string
	}{
		{func() { h.DisconnectedErrCB(conn, nil) }, ""},
		{func() { h.DisconnectedErrCB(closed, io.EOF) }, ""},
		{func() { h.DisconnectedErrCB(conn, io.EOF) }, "connection to the log lost"},
		{func() { h.DisconnectedErrCB(conn, io.EOF) }, ""},
		{func() { h.ReconnectErrCB(conn, io.EOF) }, ""},
		{func() { h.ReconnectErrCB(conn, natsgo.ErrAuthorization) }, "refuse to reconnect"},
		{func() { h.ReconnectErrCB(conn, natsgo.ErrAuthorization) }, ""},
		{func() { h.ReconnectErrCB(conn, io.EOF) }, ""},
		{func() { h.ReconnectedCB(conn) }, "connected to the log again"},
		{func() { h.ReconnectedCB(conn) }, ""},
		{func() { h.AsyncErrorCB(conn, nil, natsgo.ErrSlowConsumer) }, ""},
		{func() { h.AsyncErrorCB(conn, nil, forbidden) }, "forbid something"},
		{func() { h.AsyncErrorCB(conn, nil, forbidden) }, ""},
		{func() { h.DisconnectedErrCB(conn, io.EOF) }, "connection to the log lost"},
	} {
		log.Reset()
		if c.what(); !strings.Contains(log.String(), c.says) || c.says == "" && log.Len() > 0 {
			t.Errorf("%d: logged %q, want %q", i, &log, c.says)
		}
	}
}

// TestDialOptions holds how connections behave that are lost, and where what they tell goes.
func TestDialOptions(t *testing.T) {
	var o natsgo.Options
	for _, set := range defaultOptions("name") {
		if err := set(&o); err != nil {
			t.Fatal(err)
		}
	}
	if o.Name != "name" || o.MaxReconnect >= 0 || o.ReconnectBufSize >= 0 || o.ReconnectWait != 250*time.Millisecond ||
		o.PingInterval != 20*time.Second || !o.SkipSubjectValidation {
		t.Errorf("%+v", o)
	}
	s, _ := runServer(t, t.TempDir(), -1)
	own, given := slog.New(slog.DiscardHandler), slog.New(slog.DiscardHandler)
	for _, logger := range []*slog.Logger{nil, given} {
		c, err := (&Access{URL: s.ClientURL(), Log: own}).Dial("test", Options{Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		want := own
		if logger != nil {
			want = logger
		}
		if c.bus.conn != c.conns[0] || c.log.conn != c.conns[1] || c.log.readConn != c.conns[2] ||
			c.log.boundsConn != c.conns[3] {
			t.Error("requests, writing, reading and bounds do not have a connection each")
		}
		if c.bus.logger != want || c.log.o.Logger != want {
			t.Errorf("given %p, own %p: the bus logs to %p, the log to %p", logger, own, c.bus.logger, c.log.o.Logger)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOldServerIsLeft holds that a server that is too old is refused when it is dialled, and that no connection to it
// is kept.
func TestOldServerIsLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	left := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			left <- err
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "INFO {\"version\":\"2.9.25\",\"headers\":true,\"max_payload\":1000}\r\n")
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				left <- nil
				return
			}
			if bytes.Contains(buf[:n], []byte("PING")) {
				_, _ = io.WriteString(c, "PONG\r\n")
			}
		}
	}()
	if _, err := Dial("nats://"+l.Addr().String(), "test", Options{}); !errors.Is(err, stream.ErrUnavailable) ||
		!strings.Contains(err.Error(), "2.9.25 is too old") {
		t.Errorf("dialled: %v", err)
	}
	select {
	case err := <-left:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a connection is kept")
	}
}

// TestStopAnswers holds that requests which have arrived when serving is stopped, or the client closed, get their
// replies.
func TestStopAnswers(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	asker := connect(t, s.ClientURL())
	for _, how := range []string{"stop", "close"} {
		c := dialTest(t, s.ClientURL(), Options{})
		begun, release := make(chan struct{}, 2), make(chan struct{})
		stop, err := c.Bus().Serve("ask", "q", func(m stream.Message) {
			begun <- struct{}{}
			<-release
			_ = m.Respond(m.Data)
		})
		if err != nil {
			t.Fatal(err)
		}
		replies, err := asker.SubscribeSync(asker.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := asker.PublishRequest("ask", replies.Subject, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(asker.Flush(), c.conns[0].Flush()); err != nil { // both have arrived
			t.Fatal(err)
		}
		<-begun
		subscriptions, done := s.NumSubscriptions(), make(chan struct{})
		go func() {
			defer close(done)
			if how == "stop" {
				stop()
			} else if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		for s.NumSubscriptions() >= subscriptions && t.Context().Err() == nil { // until it has begun to end
			_ = asker.Flush()
		}
		close(release)
		<-done
		for n := range 2 {
			if _, err := replies.NextMsg(10 * time.Second); err != nil {
				t.Errorf("%s: reply %d: %v", how, n, err)
				break
			}
		}
	}
}

// TestStopAway holds that serving ends at once while the server is away, and is not taken up again.
func TestStopAway(t *testing.T) {
	s, shutdown := runServer(t, t.TempDir(), -1)
	c := dialTest(t, s.ClientURL(), Options{})
	conn := c.conns[0]
	before := conn.NumSubscriptions()
	stop, err := c.Bus().Serve("ask", "", func(stream.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	away := conn.StatusChanged(natsgo.RECONNECTING)
	shutdown()
	<-away
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the server")
	}
	if n := conn.NumSubscriptions(); n != before {
		t.Errorf("%d subscriptions are left", n-before)
	}
}

// cutAt dials connections that break as soon as so much is written.
type cutAt string

func (at cutAt) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return cutConn{c, string(at)}, err
}

type cutConn struct {
	net.Conn
	at string
}

func (c cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.at)) {
		c.Close()
	}
	return c.Conn.Write(b)
}

// TestServeFails holds that who could not begin to serve gets no requests when the connection is back.
func TestServeFails(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	conn, err := natsgo.Connect(s.ClientURL(), natsgo.SetCustomDialer(cutAt("SUB ask")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if stop, err := NewBus(conn).Serve("ask", "q", func(stream.Message) {}); stop != nil || err == nil ||
		conn.NumSubscriptions() != 0 {
		t.Errorf("%v, with %d subscriptions", err, conn.NumSubscriptions())
	}
}

// TestStopAcrossReconnect: where a reconnect comes while the last requests are answered, the server may have taken the
// subscription anew: another reconnect ends it there.
func TestStopAcrossReconnect(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	c, asker := dialTest(t, s.ClientURL(), Options{}), connect(t, s.ClientURL())
	begun, release, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	stop, err := c.Bus().Serve("ask", "q", func(stream.Message) { close(begun); <-release })
	if err == nil {
		err = errors.Join(asker.PublishRequest("ask", asker.NewInbox(), nil), asker.Flush())
	}
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	subscriptions := s.NumSubscriptions()
	go func() { stop(); close(stopped) }()
	for s.NumSubscriptions() >= subscriptions && t.Context().Err() == nil { // until it has begun to end
		_ = asker.Flush()
	}
	back := c.conns[0].StatusChanged(natsgo.CONNECTED)
	defer c.conns[0].RemoveStatusListener(back)
	if err := c.conns[0].ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	<-back
	close(release)
	<-stopped
	select {
	case <-back:
	case <-time.After(20 * time.Second):
		t.Error("the server may still send requests here")
	}
}

// TestLives holds that each loss of the connection ends what waits for a reply over it.
func TestLives(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	b := dialTest(t, s.ClientURL(), Options{}).bus
	for n := range 3 {
		back, life := b.conn.StatusChanged(natsgo.CONNECTED), b.life.Load()
		if err := b.conn.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-life.ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("loss %d is not noticed", n)
		}
		<-back
		b.conn.RemoveStatusListener(back)
	}
}

// TestHeadersInOrder holds that headers come in the order of their names, whatever that in the map is.
func TestHeadersInOrder(t *testing.T) {
	h := natsgo.Header{"a": {"1"}, "b": {"3", "2"}, "c": {"4"}, "d": {"5"}}
	for range 20 {
		if got := fmt.Sprint(fromHeader(h)); got != "[{a 1} {b 3} {b 2} {c 4} {d 5}]" {
			t.Fatal(got)
		}
	}
}
