package nats

import (
	"context"
	"errors"
	"testing"
	"time"

	"hindsight/pkg/stream"
)

// TestReadersLeaveNothing holds that a reader that is closed takes its consumer along: a
// stream has a thousand at most, and what others open for a moment must not keep the
// service's own readers out.
func TestReadersLeaveNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than the server takes by itself
	defer cancel()
	_, l := topicX(t, Options{})
	if err := writeFrom(ctx, l, 0, 10); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		n := 0
		if err := stream.Scan(ctx, l, "x", 0, 3, 6, func(*stream.Record) error { n++; return nil }); err != nil ||
			n != 3 {
			t.Fatalf("%d records, %v", n, err)
		}
	}
	var i struct {
		State struct {
			Consumers int `json:"consumer_count"`
		} `json:"state"`
	}
	for i.State.Consumers = -1; i.State.Consumers != 0; {
		if err := l.call(ctx, l.conn, "STREAM.INFO.x_0", nil, &i); err != nil {
			t.Fatalf("%d consumers are left of 20 readers: %v", i.State.Consumers, err)
		}
	}
}

// TestGet holds that one record is read without a reader, and that one that is not there is
// told as such.
func TestGet(t *testing.T) {
	ctx := t.Context()
	_, l := topicX(t, Options{})
	if err := writeFrom(ctx, l, 0, 10); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := stream.Scan(ctx, l, "x", 0, stream.Earliest, 100, func(r *stream.Record) error {
		n++
		if got, err := l.Get(ctx, "x", 0, r.Offset); err != nil || string(got) != string(r.Value) {
			t.Errorf("record %d: %q, %v; want %q", r.Offset, got, err, r.Value)
		}
		return nil
	}); err != nil || n < 10 {
		t.Fatal(n, err)
	}
	for _, topic := range []string{"x", "y"} {
		if got, err := l.Get(ctx, topic, 0, 1000); err == nil {
			t.Errorf("of %s: %q", topic, got)
		}
	}
	if _, err := stream.Get(ctx, l, "x", 0, 1000); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("a record behind the end: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get(ctx, "x", 0, 1); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("of a closed log: %v", err)
	}
}
