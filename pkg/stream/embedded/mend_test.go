package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
)

// TestStoreMended tells an engine that its store is out of room, by the server's own line:
// until there is room what appends is told so at once and reading goes on; then appends and
// readings of before go on, and no connection was lost.
func TestStoreMended(t *testing.T) {
	ctx := t.Context()
	o := embedded.Options{Dir: t.TempDir(), Port: -1}
	e := open(t, o)
	defer closeEngine(t, e)
	client, _ := user(t, e)
	l := e.Log()
	for _, topic := range []string{"a", "b"} {
		if err := l.Create(ctx, topic, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	one, other := owner(t, l, "a"), owner(t, l, "b")
	old := reader(t, l)
	add(t, one, old, "before")
	js, err := conn(t, e).JetStream()
	if err == nil {
		_, err = js.AddConsumer("a_0", &natsgo.ConsumerConfig{Name: "kept", MemoryStorage: true,
			InactiveThreshold: time.Hour})
	}
	if err != nil {
		t.Fatal(err)
	}

	noRoom := filepath.Join(o.Dir, "room") // where the engine looks whether there is room
	if err := os.Mkdir(noRoom, 0o700); err != nil {
		t.Fatal(err)
	}
	e.Server().Errorf("Filestore [%s] Critical write error: %v", "a_0", syscall.ENOSPC)
	await(t, "the fault is seen", func() bool { return l.Held() != nil })
	_, err = other.Append(ctx, &stream.Record{Value: []byte("x")})
	_, _, opened := l.Open(ctx, "a", 0, stream.OpenOptions{})
	_, wrote := l.Writer(ctx, "a", 0, nil)
	for what, err := range map[string]error{"append": err, "open": opened, "writer": wrote, "held": l.Held()} {
		if !errors.Is(err, stream.ErrFull) || !strings.Contains(err.Error(), "no space left on device: make room") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := next(t, reader(t, l), 2); got != "before" {
		t.Errorf("read %q", got)
	}

	if err := os.Remove(noRoom); err != nil {
		t.Fatal(err)
	}
	await(t, "the store is open again", func() bool { return l.Held() == nil })
	if _, err := js.ConsumerInfo("a_0", "kept"); !errors.Is(err, natsgo.ErrConsumerNotFound) {
		t.Errorf("what the store that failed had in memory: %v", err)
	}
	add(t, one, old, "after")
	again := owner(t, l, "a")
	if _, err := one.Append(ctx, &stream.Record{Value: []byte("late")}); err != nil {
		t.Fatal(err)
	}
	if err := one.Flush(ctx); !errors.Is(err, stream.ErrFenced) {
		t.Error(err)
	}
	if got := next(t, old, 1); got != "" { // the open record
		t.Errorf("read %q", got)
	}
	add(t, again, old, "by another owner")
	if n := client.Stats().Reconnects; n > 0 || !client.IsConnected() {
		t.Errorf("a client lost its connection %d times", n)
	}
}

func owner(t *testing.T, l stream.Log, topic string) stream.Appender {
	t.Helper()
	a, _, err := l.Open(t.Context(), topic, 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func reader(t *testing.T, l stream.Log) stream.Reader {
	t.Helper()
	r, err := l.Read(t.Context(), "a", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// add appends a value and reads on with r until it comes.
func add(t *testing.T, a stream.Appender, r stream.Reader, value string) {
	t.Helper()
	if _, err := a.Append(t.Context(), &stream.Record{Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for next(t, r, 1) != value {
	}
}

// next reads n records and returns the value of the last.
func next(t *testing.T, r stream.Reader, n int) string {
	t.Helper()
	var recs []stream.Record
	for len(recs) < n {
		var err error
		if recs, err = r.Next(t.Context(), recs); err != nil {
			t.Fatal(err)
		}
	}
	return string(recs[len(recs)-1].Value)
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
