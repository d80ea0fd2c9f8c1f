package embedded_test

import (
	"errors"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/attach"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/nats"
)

// Who joined a folder finds its next server, though port and passwords are others.
func TestDialFollows(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), Port: -1}
	e := open(t, o)
	c, err := attach.Dial(o.Dir, "test", nats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Log().Create(t.Context(), "a.b", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(t.Context(), "a.b", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 3 {
		was := e.Access()
		closeEngine(t, e)
		e = open(t, o)
		if now := e.Access(); now.URL == was.URL && now.Password == was.Password {
			t.Fatal("the same server")
		}
		appendWhenBack(t, c.Log())
		if got, err := r.Next(t.Context(), nil); err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	closeEngine(t, e)
}

// appendWhenBack appends one record as soon as the log is there again.
func appendWhenBack(t *testing.T, log stream.Log) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		w, err := log.Writer(t.Context(), "a.b", 0, nil)
		if err == nil {
			defer w.Close()
			if _, err := w.Append(t.Context(), &stream.Record{Value: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, stream.ErrUnavailable) {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("still %v", err)
		}
	}
}
