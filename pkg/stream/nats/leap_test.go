package nats

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// TestLeapFences: of a stream that is fenced by sequences, an earlier owner had sent a whole window of records
// when another opened the log. None of them is stored, whatever sequence it expects.
func TestLeapFences(t *testing.T) {
	_, l := topicX(t, Options{})
	ctx := t.Context()
	p, err := l.place("x", 0)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Config map[string]any }
	if err := l.call(ctx, l.conn, "STREAM.INFO."+p.stream, nil, &made); err != nil {
		t.Fatal(err)
	}
	made.Config["allow_atomic"] = true
	if err := l.call(ctx, l.conn, "STREAM.UPDATE."+p.stream, made.Config, &made); err != nil {
		t.Fatal(err)
	}
	open := func() *appender {
		a, _, err := l.Open(ctx, "x", 0, stream.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		return a.(*appender)
	}
	old := open()
	if !old.replicated || old.window > leap {
		t.Fatalf("replicated %v, a window of %d", old.replicated, old.window)
	}
	w, err := l.Writer(ctx, "x", 0, nil)
	if err != nil || w.(*appender).Window() != leap || !w.(*appender).replicated {
		t.Errorf("a writer: %v", err)
	}
	leaps, err := l.readConn.SubscribeSync(p.subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.readConn.Flush(); err != nil {
		t.Fatal(err)
	}
	now := open()
	for n := range leap + 1 {
		m, err := leaps.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		fill, last := m.Header.Get(stream.HeaderType) == typeFill, strconv.FormatUint(old.first-1, 10)
		if fill != (n < leap) || m.Header.Get(headerExpectedSeq) != map[int]string{0: last}[n] {
			t.Errorf("%d of a leap behind %s: %v", n, last, m.Header)
		}
	}
	if err := leaps.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	for n := range old.window {
		m := &natsgo.Msg{Subject: p.subject, Data: []byte("v"), Header: natsgo.Header{
			headerExpectedSeq: {strconv.FormatUint(old.first+uint64(n)-1, 10)}}}
		reply, err := l.conn.RequestMsgWithContext(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Error json.RawMessage }
		if err := json.Unmarshal(reply.Data, &answer); err != nil || answer.Error == nil {
			t.Fatalf("record %d of the earlier owner is stored: %s", n, reply.Data)
		}
	}
	if _, err := now.Append(ctx, &stream.Record{Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if err := now.Flush(ctx); err != nil {
		t.Error("the owner: ", err)
	}
}

// TestLargestRecord: a stream takes what its server does, or less if it says so.
func TestLargestRecord(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), Options{}).Log()
	most := int(l.conn.MaxPayload())
	for said, want := range map[int]int{-1: most, 0: most, 1: 1, 1000: 1000, most - 1: most - 1, most + 1: most} {
		var i streamInfo
		if err := json.Unmarshal([]byte(`{"config":{"max_msg_size":`+strconv.Itoa(said)+`}}`), &i); err != nil {
			t.Fatal(err)
		}
		if got := l.maxBytes(&i); got != want-headerReserve {
			t.Errorf("max_msg_size %d: %d, want %d", said, got, want-headerReserve)
		}
	}
}
