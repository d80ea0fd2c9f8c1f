package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// runServer starts a server on dir; stop stops it.
func runServer(t *testing.T, dir string, port int) (s *server.Server, stop func()) {
	t.Helper()
	return startServer(t, &server.Options{Port: port, JetStream: true, StoreDir: dir, JetStreamMaxStore: 1 << 30,
		JetStreamMaxMemory: 1 << 20})
}

// startServer runs a server until the test ends, or stop is called.
func startServer(t *testing.T, o *server.Options) (s *server.Server, stop func()) {
	t.Helper()
	o.Host, o.NoSigs, o.NoLog = "127.0.0.1", true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
	}
	t.Cleanup(stop)
	return s, stop
}

// connect returns a connection of the test's own.
func connect(t *testing.T, url string) *natsgo.Conn {
	t.Helper()
	c, err := natsgo.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// topicX returns a server and a log there with the empty topic x.
func topicX(t *testing.T, o Options) (*server.Server, *Log) {
	t.Helper()
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), o).Log()
	if err := l.Create(t.Context(), "x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	return s, l
}

func dialTest(t *testing.T, url string, o Options) *Client {
	t.Helper()
	c, err := Dial(url, t.Name(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// fates collects acknowledgements.
type fates struct {
	mu      sync.Mutex
	offsets []int64
	errs    []error
}

func (f *fates) ack(_ uint64, offset int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offsets, f.errs = append(f.offsets, offset), append(f.errs, err)
}

// silentStream opens an appender on a partition whose server never answers: the
// test plays it. published returns what was sent.
func silentStream(t *testing.T, o Options, fenced bool) (a *appender, f *fates, answer func(i int, data string),
	c *natsgo.Conn) {
	t.Helper()
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), o).Log()
	c = connect(t, s.ClientURL())
	sub, err := c.SubscribeSync("x.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	f = &fates{}
	p, err := newPlace("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	a = &appender{place: p, log: l, fenced: fenced, ack: f.ack, maxBytes: 1000, prefix: "1.a-", lastID: "1.a-0",
		first: 2}
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	var sent []*natsgo.Msg
	return a, f, func(i int, data string) {
		t.Helper()
		for len(sent) <= i {
			m, err := sub.NextMsg(10 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, m)
		}
		if err := c.Publish(sent[i].Reply, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}, c
}

// Every bad answer kills the appender, and says of each append what is known.
func TestBadAnswers(t *testing.T) {
	const wrongID = `{"error":{"code":400,"err_code":10070,"description":"wrong last msg ID"},"stream":"x_0","seq":0}`
	const full = `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"x_0","seq":0}`
	const busy = `{"error":{"code":429,"err_code":10167,"description":"too many requests"},"stream":"x_0","seq":0}`
	const large = `{"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},` +
		`"stream":"x_0","seq":0}`
	tests := []struct {
		name        string
		fenced      bool
		second      string
		third, dead error // fate of the second append, then of the third and of the appender
		fourth      error
	}{
		{"fenced", true, wrongID, stream.ErrFenced, stream.ErrFenced, stream.ErrFenced},
		{"full, owner", true, full, stream.ErrFull, stream.ErrFull, stream.ErrFull},
		{"full, writer", false, full, stream.ErrFull, stream.ErrFull, stream.ErrUnknown},
		{"busy, owner", true, busy, stream.ErrUnavailable, stream.ErrUnavailable, stream.ErrUnavailable},
		{"busy, writer", false, busy, stream.ErrUnavailable, stream.ErrUnavailable, stream.ErrUnknown},
		{"large", true, large, stream.ErrTooLarge, stream.ErrUnknown, stream.ErrUnknown},
		{"wrong place, owner", true, `{"stream":"x_0","seq":9}`, stream.ErrUnknown, stream.ErrUnknown,
			stream.ErrUnknown},
		{"duplicate", false, `{"stream":"x_0","seq":3,"duplicate": true}`, stream.ErrUnknown, stream.ErrUnknown,
			stream.ErrUnknown},
		{"noise", true, `what?`, stream.ErrUnknown, stream.ErrUnknown, stream.ErrUnknown},
		{"empty", true, ``, stream.ErrUnknown, stream.ErrUnknown, stream.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			a, f, answer, _ := silentStream(t, Options{}, tt.fenced)
			for i := range 3 {
				if _, err := a.Append(ctx, &stream.Record{Value: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
			answer(0, `{"stream":"x_0","seq":2}`)
			answer(1, tt.second)
			answer(2, `{"stream":"x_0","seq":4}`) // what comes after is not believed
			if err := a.Flush(ctx); !errors.Is(err, tt.third) {
				t.Errorf("flush: %v", err)
			}
			if _, err := a.Append(ctx, &stream.Record{}); !errors.Is(err, tt.dead) {
				t.Errorf("append afterwards: %v, want %v", err, tt.dead)
			}
			if len(f.errs) != 3 || f.errs[0] != nil || f.offsets[0] != 2 || f.offsets[1] != 0 || f.offsets[2] != 0 ||
				!errors.Is(f.errs[1], tt.third) || !errors.Is(f.errs[2], tt.fourth) {
				t.Errorf("told %v at %v", f.errs, f.offsets)
			}
			if !tt.fenced || tt.fourth == stream.ErrUnknown {
				if errors.Is(f.errs[2], stream.ErrFenced) || errors.Is(f.errs[2], stream.ErrFull) {
					t.Errorf("an unknown fate is told as known: %v", f.errs[2])
				}
			}
		})
	}
}

// A lost acknowledgement shows at the next one; one that comes twice is noticed.
func TestLostAndRepeatedAnswers(t *testing.T) {
	for name, order := range map[string][]int{"lost": {0, 2}, "repeated": {0, 0}, "swapped": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			a, f, answer, _ := silentStream(t, Options{}, false)
			for i := range 3 {
				if _, err := a.Append(ctx, &stream.Record{Value: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range order {
				answer(i, fmt.Sprintf(`{"stream":"x_0","seq":%d}`, i+2))
			}
			if err := a.Flush(ctx); !errors.Is(err, stream.ErrUnknown) {
				t.Errorf("flush: %v", err)
			}
			good := 0
			for _, err := range f.errs {
				if err == nil {
					good++
				}
			}
			if want := 1; len(f.errs) != 3 || (name != "swapped" && good != want) || (name == "swapped" && good != 0) {
				t.Errorf("told %v", f.errs)
			}
		})
	}
}

// Without answers the appender dies of old age, and a waiting Append with it.
func TestNoAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, f, _, _ := silentStream(t, Options{AckTimeout: 100 * time.Millisecond, Window: 4}, true)
	sent := 0
	var err error
	for ; err == nil; sent++ {
		_, err = a.Append(ctx, &stream.Record{})
	}
	if !errors.Is(err, stream.ErrUnknown) || sent != 5 {
		t.Errorf("append %d: %v", sent, err)
	}
	if err := a.Flush(ctx); !errors.Is(err, stream.ErrUnknown) || len(f.errs) != 4 {
		t.Errorf("flush: %v; told %v", err, f.errs)
	}
}

// An append waits for room no longer than its context, and that does not kill.
func TestWindow(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, f, answer, _ := silentStream(t, Options{Window: 4}, true)
	for range 4 {
		if _, err := a.Append(ctx, &stream.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
	defer stop()
	if _, err := a.Append(short, &stream.Record{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append without room: %v", err)
	}
	if err := a.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("flush while four are on their way: %v", err)
	}
	for i := range 4 {
		answer(i, fmt.Sprintf(`{"stream":"x_0","seq":%d}`, i+2))
	}
	if seq, err := a.Append(ctx, &stream.Record{}); seq != 5 || err != nil {
		t.Errorf("append with room: %d, %v", seq, err)
	}
	answer(4, `{"stream":"x_0","seq":6}`)
	if err := a.Flush(ctx); err != nil || len(f.errs) != 5 {
		t.Errorf("flush: %v; told %v", err, f.errs)
	}
}

// The chain holds when the server has forgotten its message ids: after the
// duplicate window and after a restart.
func TestChainOutlivesDuplicateWindow(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	s, stop := runServer(t, dir, -1)
	l := dialTest(t, s.ClientURL(), Options{}).Log()
	if err := l.Create(ctx, "x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	open, _, err := l.Open(ctx, "x", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := open.(*appender)
	next, _, err := l.Open(ctx, "x", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opened, one, _ := strings.Cut(a.prefix, ".")
	a = next.(*appender)
	reopened, other, _ := strings.Cut(a.prefix, ".")
	if opened != "1" || reopened != "2" || len(one) != 13 || len(other) != 13 || one == other {
		t.Errorf("chains %s.%s and %s.%s", opened, one, reopened, other)
	}
	put := func(a *appender) error {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte("x")}); err != nil {
			return err
		}
		return a.Flush(ctx)
	}
	if err := put(a); err != nil {
		t.Fatal(err)
	}
	<-time.After(3 * duplicateWindow) // the server's own clock: nothing else can tell
	if err := put(a); err != nil {
		t.Fatal(err)
	}
	id, first := a.lastID, a.first

	stop()
	s, _ = runServer(t, dir, -1)
	l = dialTest(t, s.ClientURL(), Options{}).Log()
	p, _ := newPlace("x", 0)
	resume := func(lastID string, seq uint64) *appender { // as if the old appender had not noticed
		b := &appender{place: p, log: l, fenced: true, maxBytes: 1000, prefix: a.prefix, lastID: lastID, first: first}
		if err := b.start(); err != nil {
			t.Fatal(err)
		}
		b.sent.Store(seq)
		b.acked.Store(seq)
		return b
	}
	if err := put(resume(a.prefix+"1", 2)); !errors.Is(err, stream.ErrFenced) {
		t.Errorf("a broken chain after the restart: %v", err)
	}
	good := resume(id, 2)
	if err := put(good); err != nil {
		t.Errorf("the chain after the restart: %v", err)
	}
	if _, _, err := l.Open(ctx, "x", 0, stream.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := put(good); !errors.Is(err, stream.ErrFenced) {
		t.Errorf("after another open: %v", err)
	}
}

// Beside what the client library needs, an append allocates its message id and
// nothing else, and an acknowledgement nothing.
func TestAllocations(t *testing.T) {
	p, err := newPlace("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	a := &appender{place: p, fenced: true, prefix: "1.0123456789ab-", lastID: "1.0123456789ab-0",
		header: natsgo.Header{}, ids: [2][]string{{""}, {""}}}
	r := &stream.Record{Value: make([]byte, 100)}
	seq := uint64(0)
	n := testing.AllocsPerRun(1000, func() {
		seq++
		if err := a.encode(r, seq); err != nil {
			t.Fatal(err)
		}
		a.lastID = a.ids[0][0]
	})
	if n > 1 {
		t.Errorf("%v allocations to encode a record", n)
	}
	for _, seq := range []uint64{1, 1234567} {
		ack := fmt.Appendf(nil, `{"stream":"x_0","seq":%d}`, seq)
		if n := testing.AllocsPerRun(1000, func() {
			if a, err := parseAck(ack); err != nil || a.Sequence != seq {
				t.Fatal(a, err)
			}
		}); n > 0 {
			t.Errorf("%v allocations to parse an acknowledgement of %d", n, seq)
		}
	}
}

// An owner that always writes between our question and our open record does not
// keep us out. One that does not write is asked about once.
func TestOpenGivesUpPoliteness(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, _ := runServer(t, t.TempDir(), -1)
	busy := dialTest(t, s.ClientURL(), Options{}).Log()
	if err := busy.Create(ctx, "x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := busy.Writer(ctx, "x", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	const before = 9 // so that numbers have two digits
	for range before {
		if _, err := w.Append(ctx, &stream.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	c := connect(t, s.ClientURL())
	asked := 0
	hear(t, c, "late.STREAM.INFO.x_0", func(m *natsgo.Msg) {
		asked++
		answer, err := c.Request(DefaultAPIPrefix+".STREAM.INFO.x_0", nil, 10*time.Second)
		if err == nil && asked <= politeOpens+1 {
			_, err = w.Append(ctx, &stream.Record{})
		}
		if err == nil {
			err = w.Flush(ctx)
		}
		if err != nil {
			t.Error(err)
			return
		}
		_ = m.Respond(answer.Data) // out of date by one record
	})
	l := dialTest(t, s.ClientURL(), Options{APIPrefix: "late"}).Log()
	a, tail, err := l.Open(ctx, "x", 0, stream.OpenOptions{})
	if err != nil || asked != politeOpens+1 || tail.Open != before+politeOpens+2 {
		t.Fatalf("asked %d times, tail %+v, %v", asked, tail, err)
	}
	if _, err := a.Append(ctx, &stream.Record{}); err != nil {
		t.Error(err)
	}
	if err := a.Flush(ctx); err != nil {
		t.Error(err)
	}
	if _, _, err := l.Open(ctx, "x", 0, stream.OpenOptions{}); err != nil || asked != politeOpens+2 {
		t.Errorf("when nobody writes: asked %d times, %v", asked-politeOpens-1, err)
	}
}

// TestWindowTold holds how many records an appender says that it takes at once.
func TestWindowTold(t *testing.T) {
	for replicas, want := range map[int]int{1: DefaultWindow, 3: 64} {
		a := &appender{log: &Log{o: Options{}.withDefaults()}, window: DefaultWindow}
		i := &streamInfo{}
		i.Config.Replicas = replicas
		a.replicate(i)
		if a.Window() != want {
			t.Errorf("with %d replicas: %d, and not %d", replicas, a.Window(), want)
		}
	}
}
