package nats

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// configOf tells the configurations of a log's streams.
func configOf(t *testing.T, l *Log) StreamConfig {
	return func(name string) (map[string]any, error) {
		var i struct{ Config map[string]any }
		err := l.call(t.Context(), l.conn, "STREAM.INFO."+name, nil, &i)
		return i.Config, err
	}
}

// TestCopy holds that a copy has the records of its source, at their offsets and with their times, that it is not
// made over other records, and that its age counts when it is told to.
func TestCopy(t *testing.T) {
	dial := func() *Log {
		s, _ := runServer(t, t.TempDir(), -1)
		return dialTest(t, s.ClientURL(), Options{}).Log()
	}
	from, to, ctx := dial(), dial(), t.Context()
	if err := from.Create(ctx, "x", 2, stream.TopicOptions{MaxAge: int64(time.Hour), Trimmable: true}); err != nil {
		t.Fatal(err)
	}
	put := func(l *Log, partition int, values ...string) {
		t.Helper()
		a, _, err := l.Open(ctx, "x", partition, stream.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for _, v := range values {
			if _, err := a.Append(ctx, &stream.Record{Key: []byte("k"), Value: []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	put(from, 0, "a", "b", string(make([]byte, 3*copyChunk)))
	put(from, 1, "c")
	if err := from.Trim(ctx, "x", 0, 2); err != nil {
		t.Fatal(err)
	}
	if err := from.CopyTopic(ctx, to, "none", configOf(t, from)); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	odd := errors.New("odd")
	failing := func(string) (map[string]any, error) { return nil, odd }
	if err := from.CopyTopic(ctx, to, "x", failing); !errors.Is(err, odd) {
		t.Errorf("without a configuration: %v", err)
	}
	if err := from.KeepAges(ctx, "x", failing); !errors.Is(err, odd) {
		t.Errorf("ages without a configuration: %v", err)
	}
	wrong := func(string) (map[string]any, error) { return map[string]any{"retention": "never"}, nil }
	if err := from.CopyTopic(ctx, to, "x", wrong); err == nil {
		t.Error("a copy with a wrong configuration is made")
	}
	for range 2 { // the second time all is there
		if err := from.CopyTopic(ctx, to, "x", configOf(t, from)); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(ctx, 4*time.Second) // a copy without its end holds a server up for five
		if first, next, err := to.Bounds(soon, "x", 0); first != 2 || next != 5 || err != nil {
			t.Errorf("a copy from %d to %d, %v, and not from 2 to 5", first, next, err)
		}
		cancel()
	}
	read := func(l *Log, partition int) (all []string) {
		t.Helper()
		first, next, err := l.Bounds(ctx, "x", partition)
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Read(ctx, "x", partition, first)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for len(all) < int(next-first) {
			records, err := r.Next(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range records {
				all = append(all, fmt.Sprintf("%d %d %s %s %x", x.Offset, x.Time, x.Type, x.Key,
					sha256.Sum256(x.Value)))
			}
		}
		return all
	}
	age := func(l *Log, name string) any {
		c, err := configOf(t, l)(name)
		if err != nil {
			t.Fatal(err)
		}
		return c["max_age"]
	}
	for partition, n := range []int{3, 2} {
		name := fmt.Sprint("x_", partition)
		if a, b := read(from, partition), read(to, partition); len(a) != n || !slices.Equal(a, b) {
			t.Errorf("partition %d: %v, a copy of %v", partition, b, a)
		}
		if age(to, name) != float64(0) {
			t.Errorf("partition %d: records of a copy are dropped by age %v before all are there", partition,
				age(to, name))
		}
	}
	if err := to.KeepAges(ctx, "x", configOf(t, from)); err != nil || age(to, "x_0") != float64(time.Hour) ||
		age(to, "x_1") != float64(time.Hour) {
		t.Errorf("ages: %v", err)
	}
	if c, err := configOf(t, to)("x_0"); err != nil || c["num_replicas"] != float64(1) || c["allow_atomic"] != nil {
		t.Errorf("a copy without replicas: %v, %v", c, err)
	}
	put(from, 0, "more")
	if err := from.CopyTopic(ctx, to, "x", configOf(t, from)); !errors.Is(err, ErrOther) {
		t.Errorf("over a copy with another end: %v", err)
	}
	put(to, 0, "more")
	if err := from.Trim(ctx, "x", 0, 3); err != nil {
		t.Fatal(err)
	}
	if err := from.CopyTopic(ctx, to, "x", configOf(t, from)); !errors.Is(err, ErrOther) {
		t.Errorf("over a copy with another beginning: %v", err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := from.CopyTopic(ctx, to, "x", configOf(t, from)); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("to what is closed: %v", err)
	}
}

// TestForward holds what is done with each chunk of a backup, and with each answer to it.
func TestForward(t *testing.T) {
	s, _ := runServer(t, t.TempDir(), -1)
	l, ctx := dialTest(t, s.ClientURL(), Options{}).Log(), t.Context()
	for _, c := range []struct {
		name, data, status, answer string
		end, fails                 bool
	}{
		{"a chunk", "x", "", "", false, false},
		{"a chunk that is refused", "x", "", `{"error":{"code":500,"err_code":1}}`, false, true},
		{"a chunk that is answered with noise", "x", "", `?`, false, true},
		{"the end", "", "", `{"success":true}`, true, false},
		{"the end by its status", "", "204", `{"success":true}`, true, false},
		{"the end, refused", "", "204", `{"error":{"code":500,"err_code":1}}`, true, true},
		{"a failure", "", "500", `{"success":true}`, false, true},
		{"data with a status", "x", "500", "", false, false},
	} {
		chunks, err := l.conn.SubscribeSync("chunks." + l.conn.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		acks, err := l.conn.SubscribeSync(l.conn.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		restore, err := l.conn.Subscribe("restore", func(m *natsgo.Msg) { _ = m.Respond([]byte(c.answer)) })
		if err != nil {
			t.Fatal(err)
		}
		m := &natsgo.Msg{Subject: chunks.Subject, Reply: acks.Subject, Data: []byte(c.data), Header: natsgo.Header{}}
		if c.status != "" {
			m.Header.Set("Status", c.status)
		}
		if err := l.conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
		end, err := forward(ctx, "x_0", chunks, l, "restore")
		if (err != nil) != c.fails || err == nil && end != c.end {
			t.Errorf("%s: %v, %v", c.name, end, err)
		}
		if err := l.conn.Flush(); err != nil {
			t.Fatal(err)
		}
		if n, _, err := acks.Pending(); err != nil || (n == 1) == c.fails {
			t.Errorf("%s: %d answers to the source, %v", c.name, n, err)
		}
		for _, sub := range []*natsgo.Subscription{restore, chunks, acks} { // else the drain of the end waits for them
			_ = sub.Unsubscribe()
		}
	}
}
