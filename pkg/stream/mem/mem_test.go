package mem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	l := newLog(t, mem.Options{StrictBytes: true, MaxBatch: 2}, stream.TopicOptions{})
	a, _ := l.Writer(ctx, "t", 0, nil)
	for _, v := range []string{"one", "two", "three", "four", "five"} {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte(v + strings.Repeat(".", 99))}); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := l.Read(ctx, "t", 0, 0)
	recs, err := r.Next(ctx, nil)
	for kept := ""; err == nil && len(recs) > 0; {
		var before [][]byte
		for i := range recs {
			before = append(before, recs[i].Value)
			kept += " " + strings.TrimRight(string(recs[i].Value), ".")
		}
		if strings.Count(kept, " ") == 5 {
			if kept != " one two three four five" {
				t.Errorf("read%s", kept)
			}
			return
		}
		recs, err = r.Next(ctx, nil)
		for i := range before {
			if before[i][0] != 0 {
				t.Errorf("the bytes of %q survived", before[i])
			}
		}
	}
	t.Error(recs, err)
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

// TestLimits holds each limit, to the byte and to the nanosecond. Records have as many bytes as is said.
func TestLimits(t *testing.T) {
	for _, x := range []struct {
		name string
		o    stream.TopicOptions
		puts []int // bytes of records, appended one a nanosecond
		want string
	}{
		{"the largest record", stream.TopicOptions{}, []int{40, 41}, "[40] too large"},
		{"as much as fits", stream.TopicOptions{MaxBytes: 40, RejectWhenFull: true}, []int{20, 20, 9}, "[20 20] full"},
		{"no byte more", stream.TopicOptions{MaxBytes: 40, RejectWhenFull: true}, []int{20, 21}, "[20] full"},
		{"a byte", stream.TopicOptions{MaxBytes: 1, RejectWhenFull: true}, []int{9}, "[] full"},
		{"the oldest are dropped", stream.TopicOptions{MaxBytes: 40}, []int{10, 20, 20, 9}, "[20 9]"},
		{"no more than must be", stream.TopicOptions{MaxBytes: 40}, []int{20, 20, 20}, "[20 20]"},
		{"again and again", stream.TopicOptions{MaxBytes: 40}, []int{20, 20, 20, 20}, "[20 20]"},
		{"but not the last", stream.TopicOptions{MaxBytes: 9}, []int{9, 10}, "[10]"},
		{"none has a limit of 0", stream.TopicOptions{RejectWhenFull: true}, []int{9, 10, 11}, "[9 10 11]"},
		{"the last byte is one too many", stream.TopicOptions{MaxBytes: 1}, []int{9, 10}, "[10]"},
		{"as old as may be", stream.TopicOptions{MaxAge: 2}, []int{9, 10, 11, 12}, "[10 11 12]"},
		{"a nanosecond", stream.TopicOptions{MaxAge: 1}, []int{9, 10, 11}, "[10 11]"},
	} {
		l := newLog(t, mem.Options{MaxBytes: 40}, x.o)
		a, err := l.Writer(t.Context(), "t", 0, nil)
		for _, n := range x.puts {
			r := stream.Record{Type: "t", Key: []byte("ke"), Headers: []stream.Header{{Key: "h", Value: "va"}},
				Value: make([]byte, n-6)}
			if _, e := a.Append(t.Context(), &r); err == nil {
				err = errors.Join(e, a.Flush(t.Context()))
			}
		}
		sizes := []int{}
		if e := l.Edit("t", 0, func(recs []stream.Record) []stream.Record {
			for i := range recs {
				sizes = append(sizes, len(recs[i].Value)+6)
			}
			return nil
		}); e != nil {
			t.Fatal(e)
		}
		got := fmt.Sprint(sizes)
		switch {
		case errors.Is(err, stream.ErrFull):
			got += " full"
		case errors.Is(err, stream.ErrTooLarge):
			got += " too large"
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s; %v", x.name, got, x.want, err)
		}
		if b, e := l.Writer(t.Context(), "t", 0, nil); e == nil { // nothing is held any more
			if _, e = b.Append(t.Context(), &stream.Record{}); e != nil || b.Flush(t.Context()) != nil {
				t.Errorf("%s: after all was dropped: %v, %v", x.name, e, b.Flush(t.Context()))
			}
		}
	}
}

// TestTimes holds that a log without a clock counts.
func TestTimes(t *testing.T) {
	l := newLog(t, mem.Options{}, stream.TopicOptions{})
	a, _ := l.Writer(t.Context(), "t", 0, nil)
	for range 3 {
		if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	var times []int64
	if err := stream.Scan(t.Context(), l, "t", 0, 0, 9, func(r *stream.Record) error {
		times = append(times, r.Time-1e9)
		return nil
	}); err != nil || fmt.Sprint(times) != "[0 1 2]" {
		t.Errorf("%v after a second, %v", times, err)
	}
}

// TestUnknown holds what is stored, and told, of records on their way behind one that met a fault.
func TestUnknown(t *testing.T) {
	for _, x := range []struct {
		owner bool
		fault mem.Fault
		err   error
		log   string
	}{
		{false, mem.StoredUnknown, stream.ErrUnknown, "[a b c]"}, {true, mem.StoredUnknown, stream.ErrUnknown,
			"[open a b c]"},
		{false, mem.NotStoredUnknown, stream.ErrUnknown, "[a c]"},
		{true, mem.NotStoredUnknown, stream.ErrUnknown, "[open a]"},
		{false, mem.Full, stream.ErrFull, "[a]"}, {true, mem.Full, stream.ErrFull, "[open a]"},
	} {
		l := newLog(t, mem.Options{ManualAcks: true, OnAppend: func(_ string, _ int, r *stream.Record) mem.Fault {
			if string(r.Value) == "b" {
				return x.fault
			}
			return mem.None
		}}, stream.TopicOptions{})
		var told []string
		ack := func(seq uint64, offset int64, err error) {
			told = append(told, fmt.Sprint(seq, err == nil, errors.Is(err, x.err)))
		}
		a, err := l.Writer(t.Context(), "t", 0, ack)
		if x.owner {
			a, _, err = l.Open(t.Context(), "t", 0, stream.OpenOptions{Ack: ack})
		}
		for _, v := range []string{"a", "b", "c"} {
			if err == nil {
				_, err = a.Append(t.Context(), &stream.Record{Value: []byte(v)})
			}
		}
		if s := fmt.Sprint(values(t, l)); s != x.log {
			t.Errorf("%+v: before anything is delivered the log holds %s", x, s)
		}
		if n := l.DeliverAcks(-1); n != 3 || err != nil {
			t.Errorf("%+v: %d delivered, %v", x, n, err)
		}
		if fmt.Sprint(told) != "[1 true false 2 false true 3 false true]" {
			t.Errorf("%+v: told %v", x, told)
		}
		if s := fmt.Sprint(values(t, l)); s != x.log {
			t.Errorf("%+v: log holds %s", x, s)
		}
	}
}

// TestFlushWaits holds that Flush waits for acknowledgements that are held back, and for nothing once its appender is
// closed; who closes one is told nothing more.
func TestFlushWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, mem.Options{ManualAcks: true}, stream.TopicOptions{})
		told := 0
		a, _, err := l.Open(t.Context(), "t", 0, stream.OpenOptions{Ack: func(uint64, int64, error) { told++ }})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			do   func()
			want error
			told int
		}{{func() { l.DeliverAcks(1); time.Sleep(time.Second); l.DeliverAcks(1) }, nil, 2},
			{func() { a.Close(); l.DeliverAcks(-1) }, stream.ErrClosed, 2}} {
			for range 2 {
				if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
					t.Fatal(err)
				}
			}
			errs := make(chan error, 2)
			for range cap(errs) {
				go func() { errs <- a.Flush(t.Context()) }()
			}
			synctest.Wait()
			if len(errs) > 0 {
				t.Error("it does not wait")
			}
			x.do()
			for range cap(errs) {
				if err := <-errs; !errors.Is(err, x.want) {
					t.Errorf("%v, want %v", err, x.want)
				}
			}
			if told != x.told {
				t.Errorf("told %d times, want %d", told, x.told)
			}
		}
	})
}

// TestDropTailWakes holds that a reader at the end is told that the tail was lost, and that what lies behind the end
// cannot be.
func TestDropTailWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, mem.Options{}, stream.TopicOptions{})
		a, _ := l.Writer(t.Context(), "t", 0, nil)
		for range 3 {
			if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := l.Read(t.Context(), "t", 0, 3)
		if err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 1)
		go func() { _, err := r.Next(t.Context(), nil); errs <- err }()
		for _, from := range []int64{9, 3, 1} {
			synctest.Wait()
			if len(errs) > 0 {
				t.Fatal(<-errs)
			}
			if err := l.DropTail("t", 0, from); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-errs; !errors.Is(err, stream.ErrAhead) {
			t.Error(err)
		}
		if _, next, err := l.Bounds(t.Context(), "t", 0); next != 1 || err != nil {
			t.Errorf("the next offset is %d, %v", next, err)
		}
	})
}

// TestServersWithoutQueue holds that a request goes to each server that shares no queue.
func TestServersWithoutQueue(t *testing.T) {
	l := mem.New(mem.Options{})
	defer l.Close()
	var got []string
	for i, queue := range []string{"", "", "q", "q", "p"} {
		stop, err := l.Serve("s", queue, func(m stream.Message) {
			got = append(got, fmt.Sprint(i))
			_ = m.Respond([]byte(queue))
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	for range 2 {
		if reply, _, err := l.Request(t.Context(), "s", nil); string(reply) != "" || err != nil {
			t.Errorf("%q, %v", reply, err)
		}
	}
	if s := strings.Join(got, " "); s != "0 1 2 4 0 1 3 4" {
		t.Errorf("servers %s", s)
	}
}

// TestCloseTells holds that what is not acknowledged when a log is closed is unknown, and told once.
func TestCloseTells(t *testing.T) {
	l := newLog(t, mem.Options{ManualAcks: true}, stream.TopicOptions{})
	var told []error
	a, _ := l.Writer(t.Context(), "t", 0, func(_ uint64, _ int64, err error) { told = append(told, err) })
	for range 2 {
		if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil || l.DeliverAcks(-1) != 0 || len(told) != 2 {
		t.Fatalf("told %v, %v", told, err)
	}
	for _, err := range told {
		if !errors.Is(err, stream.ErrUnknown) || !errors.Is(err, stream.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestEditCounts holds that what an edit leaves counts against the limit.
func TestEditCounts(t *testing.T) {
	l := newLog(t, mem.Options{}, stream.TopicOptions{MaxBytes: 40, RejectWhenFull: true})
	put := func(bytes ...int) (err error) {
		a, _ := l.Writer(t.Context(), "t", 0, nil)
		for _, n := range bytes {
			if _, e := a.Append(t.Context(), &stream.Record{Value: make([]byte, n)}); err == nil {
				err = errors.Join(e, a.Flush(t.Context()))
			}
		}
		return err
	}
	if err := put(20, 20); err != nil {
		t.Fatal(err)
	}
	if err := l.Edit("t", 0, func(recs []stream.Record) []stream.Record { return recs[:1] }); err != nil {
		t.Fatal(err)
	}
	if err := put(20); err != nil {
		t.Error(err)
	}
	if err := put(1); !errors.Is(err, stream.ErrFull) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestLargest holds the largest open record, request and reply.
func TestLargest(t *testing.T) {
	for n, want := range map[int]error{10: nil, 11: stream.ErrTooLarge} {
		l := newLog(t, mem.Options{MaxBytes: 10}, stream.TopicOptions{})
		_, _, opened := l.Open(t.Context(), "t", 0, stream.OpenOptions{Value: make([]byte, n-len(stream.TypeOpen))})
		var responded error
		stop, err := l.Serve("s", "q", func(m stream.Message) {
			if responded = m.Respond(make([]byte, n)); responded != nil {
				_ = m.Respond(nil)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, asked := l.Request(t.Context(), "s", nil)
		_, _, requested := l.Request(t.Context(), "s", make([]byte, n))
		stop()
		if !errors.Is(opened, want) || !errors.Is(responded, want) || !errors.Is(requested, want) || asked != nil {
			t.Errorf("%d bytes of 10: opened %v, responded %v, requested %v, %v", n, opened, responded, requested,
				asked)
		}
	}
}

// TestReadInHole holds that a reader from behind the last record begins where the next one will be.
func TestReadInHole(t *testing.T) {
	l := newLog(t, mem.Options{Step: 3}, stream.TopicOptions{})
	a, _ := l.Writer(t.Context(), "t", 0, nil)
	for range 2 {
		if _, err := a.Append(t.Context(), &stream.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[int64]int64{1: 1, 3: 3, 4: 6, 6: 6} {
		if r, err := l.Read(t.Context(), "t", 0, from); err != nil || r.Position() != want {
			t.Errorf("from %d: at %d, %v", from, r.Position(), err)
		}
	}
}
