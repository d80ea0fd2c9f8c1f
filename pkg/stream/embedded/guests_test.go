package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hindsight/internal/testkit/locked"
)

// guest connects without a name, says something, and returns the connection once the server has
// read that, or has hung up.
func guest(t *testing.T, e *Engine, says string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_, _ = io.WriteString(c, "CONNECT {\"verbose\":false}\r\n"+says+"PING\r\n")
	for in := bufio.NewReader(c); ; {
		if line, err := in.ReadString('\n'); err != nil || line == "PONG\r\n" {
			return c
		}
	}
}

// subscribes names subjects of so many parts that nobody else has.
func subscribes(who string, subjects, parts int) string {
	var b strings.Builder
	for i := range subjects {
		fmt.Fprintf(&b, "SUB _INBOX.%s.%d%s %d\r\n", who, i, strings.Repeat(".x", parts-3), i+1)
	}
	return b.String()
}

// heap returns the bytes that are in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func openBare(t *testing.T) *Engine {
	t.Helper()
	return openLogging(t, io.Discard)
}

func openLogging(t *testing.T, log io.Writer) *Engine {
	t.Helper()
	b, err := OpenBus(context.Background(), Options{Port: -1, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// Subscriptions take little memory, however deep their subjects are, of few connections or of
// hundreds.
func TestMemoryOfSubscriptions(t *testing.T) {
	for _, c := range []struct {
		what                   string
		conns, subjects, parts int
		most                   int
	}{
		{"few connections, deep subjects", 16, guestSubs, 400, 16 << 20},
		{"few connections, the deepest subjects", 4, guestSubs, 1800, 16 << 20},
		{"hundreds of connections, as many and as deep as may be", 250, guestSubs, maxSubTokens, 128 << 20},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := openBare(t)
			before := heap()
			for i := range c.conns {
				guest(t, e, subscribes(fmt.Sprint(i), c.subjects, c.parts))
			}
			took := heap() - before
			t.Logf("%d subscriptions are held, in %d MiB", e.server.NumSubscriptions(), took>>20)
			if took > c.most {
				t.Errorf("%d MiB, the bound is %d MiB", took>>20, c.most>>20)
			}
		})
	}
}

// A client without a name that subscribes to more than its share is cut off; one that has less
// is not, nor is one with a name.
func TestGuestSubscriptions(t *testing.T) {
	var log locked.Buffer
	e := openLogging(t, &log)
	few := guest(t, e, subscribes("few", guestSubs, 4))
	many := guest(t, e, subscribes("many", guestSubs+1, 4))
	if _, err := io.ReadAll(many); err != nil { // until it is cut off
		t.Error(err)
	}
	_, _ = io.WriteString(few, "PING\r\n")
	if line, err := bufio.NewReader(few).ReadString('\n'); err != nil || line != "PONG\r\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, " with_too_many_subscriptions=1 that_do_not_read=0") {
		t.Errorf("logged of them:\n%s", text)
	}
}

// Of the connections of others as many stay as may, those that came first.
func TestLatestAreDropped(t *testing.T) {
	const most = 3
	e := openBare(t)
	_ = e.closers[len(e.closers)-1]() // ends keepConnections: what it does is done here
	service, err := natsgo.Connect(e.URL(), natsgo.UserInfo(serviceUser, e.access.Password))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	var all []net.Conn
	for range most + 2 {
		all = append(all, guest(t, e, ""))
	}
	e.dropLatest(most)
	for i, c := range all {
		_, _ = io.WriteString(c, "PING\r\n")
		if line, _ := bufio.NewReader(c).ReadString('\n'); (line == "PONG\r\n") != (i < most) {
			t.Errorf("connection %d hears %q", i, line)
		}
	}
	if err := service.Flush(); err != nil {
		t.Errorf("the service: %v", err)
	}
}

// Of clients without a name that do not read those with most to read are cut off when too much
// waits for all of them together; who reads stays.
func TestGuestsThatDoNotRead(t *testing.T) {
	var log locked.Buffer
	e := openLogging(t, &log)
	_ = e.closers[len(e.closers)-1]() // ends keepConnections: what it does is done here
	service, err := natsgo.Connect(e.URL(), natsgo.UserInfo(serviceUser, e.access.Password))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	const deaf = 24
	for range deaf {
		c := guest(t, e, "SUB _INBOX.> 1\r\n")
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10) // so that little waits elsewhere than in the server
	}
	reads := guest(t, e, "SUB _INBOX.other 1\r\n")
	unread := func() (bytes, conns int) {
		z, err := e.server.Connz(&server.ConnzOptions{Username: true, User: anonymousUser})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range z.Conns {
			bytes += c.Pending
		}
		return bytes, len(z.Conns)
	}
	answer := make([]byte, 256<<10)
	for n := 0; n <= 2*guestUnread; n, _ = unread() {
		if _, conns := unread(); conns < deaf+1 {
			t.Skip("the machine is so slow that the server has cut off some already")
		}
		if err := service.Publish("_INBOX.x", answer); err != nil {
			t.Fatal(err)
		}
		if err := service.FlushTimeout(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := unread()
	e.dropGuests()
	after, conns := unread()
	t.Logf("%d MiB waited for %d clients, then %d MiB for %d", before>>20, deaf, after>>20, conns-1)
	if after > guestUnread || conns < 2 {
		t.Errorf("%d bytes wait for %d connections", after, conns)
	}
	if text, want := log.String(), fmt.Sprint("that_do_not_read=", deaf+1-conns); !strings.Contains(text, want) {
		t.Errorf("%s, and logged:\n%s", want, text)
	}
	_, _ = io.WriteString(reads, "PING\r\n")
	if line, err := bufio.NewReader(reads).ReadString('\n'); err != nil || line != "PONG\r\n" {
		t.Errorf("who reads hears %q, %v", line, err)
	}
}
