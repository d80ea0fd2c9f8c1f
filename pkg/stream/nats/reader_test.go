package nats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hindsight/pkg/stream"
)

// A reader goes on after the server was away, and requests fail meanwhile.
func TestReaderSurvivesRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dir := t.TempDir()
	s, stop := runServer(t, dir, -1)
	u, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	c := dialTest(t, s.ClientURL(), Options{APITimeout: time.Second})
	l := c.Log()
	if err := l.Create(ctx, "x", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := l.Read(ctx, "x", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next := 0
	for range 3 {
		if err := writeFrom(ctx, l, next, 100); err != nil {
			t.Fatal(err)
		}
		if next, err = readTo(ctx, r, next, next+100); err != nil {
			t.Fatal(err)
		}
		stop()
		for { // until the client has noticed
			// one sent as the connection breaks waits in vain
			brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			_, _, err := c.Bus().Request(brief, "x.y", nil)
			cancel()
			if errors.Is(err, stream.ErrUnavailable) {
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
		_, stop = runServer(t, dir, port)
	}
	if err := writeFrom(ctx, l, next, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := readTo(ctx, r, next, next+100); err != nil {
		t.Fatal(err)
	}
}

// writeFrom writes the values from … from+n−1, opening again while the log is away.
func writeFrom(ctx context.Context, l *Log, from, n int) error {
	var a stream.Appender
	var err error
	for {
		if a, _, err = l.Open(ctx, "x", 0, stream.OpenOptions{}); err == nil {
			break
		}
		if !stream.IsRetryable(err) || ctx.Err() != nil {
			return err
		}
	}
	defer a.Close()
	for i := range n {
		if _, err := a.Append(ctx, &stream.Record{Value: fmt.Append(nil, from+i)}); err != nil {
			return err
		}
	}
	return a.Flush(ctx)
}

func readTo(ctx context.Context, r stream.Reader, next, end int) (int, error) {
	var recs []stream.Record
	for next < end {
		var err error
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			return next, err
		}
		for _, rec := range recs {
			if rec.Type != "" {
				continue
			}
			if string(rec.Value) != strconv.Itoa(next) {
				return next, fmt.Errorf("read %q, want %d", rec.Value, next)
			}
			next++
		}
	}
	return next, nil
}

// A record that is missing inside the log is told, after what comes before it.
func TestGap(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), Options{}).Log()
	writeWithout(ctx, t, l, 10)
	r, err := l.Read(ctx, "x", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := readTo(ctx, r, 0, 8); err != nil || n != 8 { // offsets 2 … 9
		t.Errorf("before the gap: to %d, %v", n, err)
	}
	for range 2 {
		if recs, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrGap) || len(recs) != 0 || r.Position() != 10 {
			t.Errorf("at the gap: %d records, %v, position %d", len(recs), err, r.Position())
		}
	}
	after, err := l.Read(ctx, "x", 0, 11)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if n, err := readTo(ctx, after, 9, 20); err != nil || n != 20 { // offset 11 holds 9
		t.Errorf("after the gap: to %d, %v", n, err)
	}
}

// writeWithout writes a stream of 21 records, 0 … 19 at offsets 2 … 21, and deletes some.
func writeWithout(ctx context.Context, t *testing.T, l *Log, offsets ...int) {
	t.Helper()
	// not as Create makes it: records can be deleted
	c := jetstream.StreamConfig{Name: "x_0", Subjects: []string{"x.0"},
		MaxBytes: -1, MaxMsgs: -1, MaxMsgSize: -1, MaxConsumers: -1, Replicas: 1}
	if err := l.call(ctx, l.conn, "STREAM.CREATE.x_0", &c, nil); err != nil {
		t.Fatal(err)
	}
	if err := writeFrom(ctx, l, 0, 20); err != nil {
		t.Fatal(err)
	}
	for _, o := range offsets {
		if err := l.call(ctx, l.conn, "STREAM.MSG.DELETE.x_0", map[string]int{"seq": o}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Missing records are told too if none follows them, and nothing is while none is missing.
func TestGapAtEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), Options{Heartbeat: time.Millisecond}).Log()
	writeWithout(ctx, t, l, 20, 21)
	for _, from := range []int64{stream.Earliest, 20, 21} {
		r, err := l.Read(ctx, "x", 0, from)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if from == stream.Earliest {
			if n, err := readTo(ctx, r, 0, 18); err != nil || n != 18 {
				t.Errorf("before the gap: to %d, %v", n, err)
			}
		}
		for range 2 {
			if recs, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrGap) || len(recs) != 0 ||
				r.Position() != max(from, 20) {
				t.Errorf("from %d: %d records, %v, position %d", from, len(recs), err, r.Position())
			}
		}
	}
	var at *stream.Error
	if err := stream.Scan(ctx, l, "x", 0, 5, 100, func(*stream.Record) error { return nil }); !errors.As(err, &at) ||
		!errors.Is(err, stream.ErrGap) || at.Topic != "x" || at.Offset != 20 {
		t.Errorf("scan: %v", err)
	}
	r, err := l.Read(ctx, "x", 0, 22)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // of many heartbeats
	defer cancel()
	if _, err := r.Next(brief, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("at the end: %v", err)
	}
	if err := writeFrom(ctx, l, 20, 1); err != nil {
		t.Fatal(err)
	}
	if n, err := readTo(ctx, r, 20, 21); err != nil || n != 21 {
		t.Errorf("behind the gap: to %d, %v", n, err)
	}
}

// A consumer that the server lost is replaced.
func TestConsumerLost(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, l := topicX(t, Options{})
	r, err := l.Read(ctx, "x", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next := 0
	for range 3 {
		if err := writeFrom(ctx, l, next, 10); err != nil {
			t.Fatal(err)
		}
		if next, err = readTo(ctx, r, next, next+10); err != nil {
			t.Fatal(err)
		}
		name := r.(*reader).next[len(DefaultAPIPrefix+".CONSUMER.MSG.NEXT.x_0."):]
		if err := l.call(ctx, l.conn, "CONSUMER.DELETE.x_0."+name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeFrom(ctx, l, next, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := readTo(ctx, r, next, next+10); err != nil {
		t.Fatal(err)
	}
}

// A reader on demand is sent nothing before it asks, and then all there is.
func TestOnDemand(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, l := topicX(t, Options{})
	r, err := l.Read(ctx, "x", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.(*reader).OnDemand(true)
	next := 0
	for range 3 {
		if err := writeFrom(ctx, l, next, 10); err != nil {
			t.Fatal(err)
		}
		if next, err = readTo(ctx, r, next, next+10); err != nil {
			t.Fatal(err)
		}
		for { // until the server has told that this was all
			var consumer struct {
				Waiting int `json:"num_waiting"`
			}
			name := r.(*reader).consumer
			if err := l.call(ctx, l.conn, "CONSUMER.INFO.x_0."+name, nil, &consumer); err != nil {
				t.Fatal(err)
			}
			if consumer.Waiting == 0 {
				break
			}
		}
	}
}
