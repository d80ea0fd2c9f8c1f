package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"hindsight/internal/testkit/locked"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/nats"
)

// One process holds a folder; a second is told who.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if who, held, err := attach.Locked(dir); held || err != nil {
		t.Errorf("a folder that is not there: %q, %v, %v", who, held, err)
	}
	if _, err := attach.Dial(dir, "test", nats.Options{}); !errors.Is(err, attach.ErrNotRunning) {
		t.Errorf("dial: %v", err)
	}
	e := open(t, embedded.Options{Dir: dir, Port: -1})
	self := fmt.Sprintf("%d (%s)", os.Getpid(), filepath.Base(os.Args[0]))
	who, held, err := attach.Locked(dir)
	if who != self || !held || err != nil {
		t.Errorf("held by %q, %v, %v; want %q", who, held, err, self)
	}
	_, err = embedded.Open(context.Background(), embedded.Options{Dir: dir, Port: -1})
	if !errors.Is(err, attach.ErrInUse) || !strings.Contains(err.Error(), "process "+self) ||
		!strings.Contains(err.Error(), "data is in use") {
		t.Errorf("second open: %v", err)
	}

	c, err := attach.Dial(dir, "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Log().Create(context.Background(), "a.b", 1, stream.TopicOptions{}); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(dir, attach.ConnectFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	closeEngine(t, e)
	if _, held, err := attach.Locked(dir); held || err != nil {
		t.Errorf("after close: %v, %v", held, err)
	}
	if _, err := os.Stat(filepath.Join(dir, attach.ConnectFile)); err == nil {
		t.Error("connect.json is still there")
	}
	closeEngine(t, open(t, embedded.Options{Dir: dir, Port: -1}))
}

// Looking whether a folder is held never keeps its owner out.
func TestLockedDoesNotDisturb(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _, _ = attach.Locked(dir)
				}
			}
		})
	}
	for range 100 {
		unlock, err := attach.Lock(dir)
		if err != nil {
			t.Error(err)
			break
		}
		_ = unlock()
	}
	close(stop)
	wg.Wait()
}

// A taken port is an error at once if it must be that one, and no obstacle else.
func TestPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	start := time.Now()
	_, err = embedded.Open(context.Background(), embedded.Options{Dir: t.TempDir(), Port: port, StrictPort: true})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("taken port: %v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	var logged locked.Buffer
	e := open(t, embedded.Options{Dir: t.TempDir(), Port: port, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	defer closeEngine(t, e)
	if strings.HasSuffix(e.URL(), fmt.Sprint(":", port)) {
		t.Errorf("listens on the taken port: %s", e.URL())
	}
	if warned := fmt.Sprintf("taken=%s used=%s", l.Addr(), e.URL()); !strings.Contains(logged.String(), "level=WARN") ||
		!strings.Contains(logged.String(), warned) {
		t.Errorf("the log has no warning %q: %s", warned, logged.String())
	}
}

// What cannot work is refused with its reason, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	before := goleak.IgnoreCurrent()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// a folder whose store cannot be made: the server says so only in its log
	blocked := t.TempDir()
	if err := os.WriteFile(filepath.Join(blocked, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		o    embedded.Options
		want string
	}{
		{embedded.Options{}, "no folder given"},
		{embedded.Options{Dir: filepath.Join(file, "x")}, "cannot be made"},
		{embedded.Options{Dir: "/proc"}, "not writable"},
		{embedded.Options{Dir: blocked}, "embedded server: "},
		{embedded.Options{Dir: t.TempDir(), Host: "0.0.0.0"}, "not a loopback address"},
		{embedded.Options{Dir: t.TempDir(), Sync: "sometimes"}, `sync "sometimes"`},
		{embedded.Options{Dir: t.TempDir(), Sync: "-1s"}, `sync "-1s"`},
	}
	for _, tt := range tests {
		tt.o.Port = -1
		e, err := embedded.Open(context.Background(), tt.o)
		if err == nil {
			closeEngine(t, e)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want …%s…", tt.o, err, tt.want)
		}
	}
	if _, held, _ := attach.Locked(blocked); held {
		t.Error("the lock was kept")
	}
	goleak.VerifyNone(t, before)
}

// Without a name, or as client, one can ask and report, and nothing else.
func TestClientPermissions(t *testing.T) {
	ctx := context.Background()
	var logged locked.Buffer
	e := open(t, embedded.Options{Dir: t.TempDir(), Port: -1, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	defer closeEngine(t, e)
	if err := e.Log().Create(ctx, "shop.decisions", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"shop.decide", "shop.decide.0", "shop.outcome"} {
		stop, err := e.Bus().Serve(s, "q", func(m stream.Message) { _ = m.Respond([]byte("ok")) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	a := e.Access()
	for name, option := range map[string]natsgo.Option{
		"anonymous": natsgo.Name("anonymous"),
		"client":    natsgo.UserInfo(a.ClientUser, a.ClientPassword),
	} {
		refused := make(chan error, 16)
		conn, err := natsgo.Connect(e.URL(), option,
			natsgo.ErrorHandler(func(_ *natsgo.Conn, _ *natsgo.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, s := range []string{"shop.decide", "shop.decide.0", "shop.outcome"} {
			if _, err := conn.Request(s, nil, 30*time.Second); err != nil {
				t.Errorf("%s may not ask %s: %v", name, s, err)
			}
		}
		for _, reply := range []string{"shop.decisions.0", "$JS.API.STREAM.DELETE.shop_decisions_0", "x"} {
			// the service could
			if err := conn.PublishRequest("shop.decide", reply, nil); err != nil {
				t.Error(err)
			}
			if _, err := conn.Request("shop.decide", nil, 30*time.Second); err != nil { // by now it had
				t.Errorf("%s may not ask: %v", name, err)
			}
		}
		for _, s := range []string{"$JS.API.STREAM.DELETE.shop_decisions_0", "$SRV.PING", "$JS.API.INFO",
			"shop.decisions.0", "$JS.API.STREAM.INFO.shop_decisions_0"} {
			if err := conn.PublishRequest(s, conn.NewInbox(), []byte("x")); err != nil {
				t.Error(err)
			}
			if err := <-refused; !errors.Is(err, natsgo.ErrPermissionViolation) {
				t.Errorf("%s, %s: %v", name, s, err)
			}
		}
		for _, s := range []string{"shop.decisions.*", ">", "$JS.>"} {
			if _, err := conn.SubscribeSync(s); err != nil {
				t.Error(err)
			}
			if err := <-refused; !errors.Is(err, natsgo.ErrPermissionViolation) {
				t.Errorf("%s, %s: %v", name, s, err)
			}
		}
	}
	if _, err := natsgo.Connect(e.URL(), natsgo.UserInfo(a.User, "wrong")); err == nil {
		t.Error("a wrong password was taken")
	}
	if n := strings.Count(logged.String(), "request refused"); n != 6 { // three of each
		t.Errorf("%d refusals are in the log:\n%s", n, logged.String())
	}
	if first, next, err := e.Log().Bounds(ctx, "shop.decisions", 0); first != 1 || next != 1 || err != nil {
		t.Errorf("bounds [%d, %d), %v", first, next, err)
	}
}

// The whole store being full is ErrFull, and what was acknowledged is there.
func TestStoreFull(t *testing.T) {
	ctx := context.Background()
	o := embedded.Options{Dir: t.TempDir(), DontListen: true, MaxBytes: 1 << 20}
	e := open(t, o)
	if err := e.Log().Create(ctx, "a", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	acked := 0
	a, _, err := e.Log().Open(ctx, "a", 0, stream.OpenOptions{Ack: func(_ uint64, _ int64, err error) {
		if err == nil {
			acked++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4000 {
		if _, err = a.Append(ctx, &stream.Record{Value: make([]byte, 1000)}); err != nil {
			break
		}
	}
	if err := a.Flush(ctx); !errors.Is(err, stream.ErrFull) {
		t.Fatalf("flush: %v", err)
	}
	if _, _, err := e.Log().Open(ctx, "a", 0, stream.OpenOptions{}); !errors.Is(err, stream.ErrFull) {
		t.Errorf("open: %v", err)
	}
	first, next, err := e.Log().Bounds(ctx, "a", 0)
	if err != nil || next-first != int64(acked)+1 || acked < 500 {
		t.Errorf("bounds [%d, %d), %v; %d acknowledged", first, next, err, acked)
	}
	closeEngine(t, e)
	o.MaxBytes = 2 << 20 // with more room it goes on
	e = open(t, o)
	defer closeEngine(t, e)
	b, tail, err := e.Log().Open(ctx, "a", 0, stream.OpenOptions{})
	if err != nil || tail.Open != next {
		t.Fatalf("open with more room: %+v, %v", tail, err)
	}
	if _, err := b.Append(ctx, &stream.Record{}); err != nil {
		t.Error(err)
	}
	if err := b.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// The limit is chosen once, at creation. What a crash has left does not outlive it.
func TestLimitIsKept(t *testing.T) {
	dir := t.TempDir()
	crashed := filepath.Join(dir, attach.ConnectFile)
	if err := os.WriteFile(crashed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, open(t, embedded.Options{Dir: dir, DontListen: true}))
	if _, err := os.Stat(crashed); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that crashed is still told of: %v", err)
	}
	name := filepath.Join(dir, "limit")
	first, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := json.Unmarshal(first, &n); err != nil || n < 1<<20 {
		t.Errorf("limit %q", first)
	}
	if err := os.WriteFile(name, []byte("5000000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t, embedded.Options{Dir: dir, DontListen: true})
	defer closeEngine(t, e)
	if got := e.Server().JetStreamConfig().MaxStore; got != 5000000 {
		t.Errorf("the server's limit is %d", got)
	}
}

// With sync always an append still works, and the server was told.
func TestSyncAlways(t *testing.T) {
	ctx := context.Background()
	e := open(t, embedded.Options{Dir: t.TempDir(), DontListen: true, Sync: "always"})
	defer closeEngine(t, e)
	if err := e.Log().Create(ctx, "a", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	a, _, err := e.Log().Open(ctx, "a", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// The store says what it holds, what it may, and what is free beside it.
func TestUsage(t *testing.T) {
	e, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), DontListen: true, MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before, limit, free, err := e.Usage()
	if err != nil || limit != 64<<20 || free <= 0 {
		t.Fatalf("limit %d, free %d: %v", limit, free, err)
	}
	if err := e.Log().Create(t.Context(), "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := e.Log().Writer(t.Context(), "t", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Append(t.Context(), &stream.Record{Value: make([]byte, 1<<19)}); err != nil ||
		w.Flush(t.Context()) != nil {
		t.Fatal(err)
	}
	if after, _, _, err := e.Usage(); err != nil || after < before+1<<19 {
		t.Errorf("%d bytes, and %d before half a megabyte more: %v", after, before, err)
	}
}
