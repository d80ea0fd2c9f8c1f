package mem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

func ExampleNew() {
	ctx := context.Background()
	log := mem.New(mem.Options{})
	defer log.Close()
	_ = log.Create(ctx, "shop.contexts", 1, stream.TopicOptions{})
	a, _, _ := log.Open(ctx, "shop.contexts", 0,
		stream.OpenOptions{Owner: "me", Ack: func(seq uint64, offset int64, err error) {
			fmt.Println("acknowledged", seq, offset, err)
		}})
	_, _ = a.Append(ctx, &stream.Record{Value: []byte("hello")})
	r, _ := log.Read(ctx, "shop.contexts", 0, stream.Earliest)
	recs, _ := r.Next(ctx, nil)
	for _, rec := range recs {
		fmt.Printf("%d %q %q\n", rec.Offset, rec.Type, rec.Value)
	}
	// Output:
	// acknowledged 1 1 <nil>
	// 0 "open" ""
	// 1 "" "hello"
}

// newLog returns a log with the topic "t".
func newLog(t *testing.T, o mem.Options, to stream.TopicOptions) *mem.Log {
	t.Helper()
	l := mem.New(o)
	t.Cleanup(func() { l.Close() })
	if err := l.Create(context.Background(), "t", 1, to); err != nil {
		t.Fatal(err)
	}
	return l
}

// values reads everything there is.
func values(t *testing.T, l *mem.Log) []string {
	t.Helper()
	ctx := context.Background()
	first, next, err := l.Bounds(ctx, "t", 0)
	if err != nil || first == next {
		return nil
	}
	r, err := l.Read(ctx, "t", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	recs, err := r.Next(ctx, nil) // all of a short log
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rec := range recs {
		got = append(got, rec.Type+string(rec.Value))
	}
	return got
}

func TestFaults(t *testing.T) {
	tests := []struct {
		fault mem.Fault
		err   error
		log   string
		dead  bool
	}{
		{mem.StoredUnknown, stream.ErrUnknown, "[open a b]", true},
		{mem.NotStoredUnknown, stream.ErrUnknown, "[open a]", true},
		{mem.Full, stream.ErrFull, "[open a]", true},
		{mem.TooLarge, stream.ErrTooLarge, "[open a c]", false},
		{mem.None, nil, "[open a b c]", false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.fault), func(t *testing.T) {
			ctx := context.Background()
			l := newLog(t, mem.Options{OnAppend: func(_ string, _ int, r *stream.Record) mem.Fault {
				if string(r.Value) == "b" {
					return tt.fault
				}
				return mem.None
			}}, stream.TopicOptions{})
			var got error
			a, _, err := l.Open(ctx, "t", 0, stream.OpenOptions{Ack: func(_ uint64, _ int64, err error) {
				if err != nil {
					got = err
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []string{"a", "b", "c"} {
				_, err := a.Append(ctx, &stream.Record{Value: []byte(v)})
				if v == "c" && (err != nil) != tt.dead {
					t.Errorf("append after the fault: %v", err)
				}
				if err != nil && got == nil {
					got = err
				}
			}
			if !errors.Is(got, tt.err) {
				t.Errorf("got %v, want %v", got, tt.err)
			}
			if s := fmt.Sprint(values(t, l)); s != tt.log {
				t.Errorf("log holds %s, want %s", s, tt.log)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	ctx := context.Background()
	l := newLog(t, mem.Options{FirstOffset: 10, Step: 2}, stream.TopicOptions{})
	a, err := l.Writer(ctx, "t", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte{byte('a' + i)}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.Read(ctx, "t", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Truncate("t", 0, 12); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrTruncated) {
		t.Errorf("read of dropped records: %v", err)
	}
	if err := l.DropTail("t", 0, 18); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Read(ctx, "t", 0, 20); !errors.Is(err, stream.ErrAhead) {
		t.Errorf("read after the lost tail: %v", err)
	}
	err = l.Edit("t", 0, func(recs []stream.Record) []stream.Record { return append(recs[:1], recs[2:]...) })
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(values(t, l)); s != "[b d]" {
		t.Errorf("log holds %s", s)
	}
}

// The bytes of a record are gone at the next Next when StrictBytes is set.
func TestStrictBytes(t *testing.T) {
	ctx := context.Background()
	l := newLog(t, mem.Options{StrictBytes: true, MaxBatch: 1}, stream.TopicOptions{})
	a, _ := l.Writer(ctx, "t", 0, nil)
	for _, v := range []string{"one", "two"} {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := l.Read(ctx, "t", 0, 0)
	recs, err := r.Next(ctx, nil)
	if err != nil || len(recs) != 1 || string(recs[0].Value) != "one" {
		t.Fatal(recs, err)
	}
	kept := recs[0].Value
	if _, err := r.Next(ctx, recs); err != nil {
		t.Fatal(err)
	}
	if string(kept) == "one" {
		t.Error("the bytes survived")
	}
}

// Appending, acknowledging and reading allocate nothing but room for the bytes.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	l := newLog(t, mem.Options{}, stream.TopicOptions{MaxBytes: 1 << 20})
	a, _, err := l.Open(ctx, "t", 0, stream.OpenOptions{Ack: func(uint64, int64, error) {}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Read(ctx, "t", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	rec := &stream.Record{Key: []byte("key"), Value: make([]byte, 100)}
	var recs []stream.Record
	n := testing.AllocsPerRun(5000, func() {
		if _, err := a.Append(ctx, rec); err != nil {
			t.Fatal(err)
		}
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// A record on its way when another owner opens is fenced off.
func TestLateStoreIsFenced(t *testing.T) {
	ctx := context.Background()
	l := newLog(t, mem.Options{ManualAcks: true, LateStore: true}, stream.TopicOptions{})
	var acks []error
	old, _, err := l.Open(ctx, "t", 0, stream.OpenOptions{Ack: func(_ uint64, _ int64, err error) {
		acks = append(acks, err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"a", "b", "c"} {
		if _, err := old.Append(ctx, &stream.Record{Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.DeliverAcks(1); n != 1 {
		t.Fatalf("delivered %d", n)
	}
	if _, _, err := l.Open(ctx, "t", 0, stream.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	l.DeliverAcks(-1)
	if len(acks) != 3 || acks[0] != nil || !errors.Is(acks[1], stream.ErrFenced) || !errors.Is(acks[2],
		stream.ErrFenced) {
		t.Errorf("acks %v", acks)
	}
	if s := fmt.Sprint(values(t, l)); s != "[open a open]" {
		t.Errorf("log holds %s", s)
	}
}
