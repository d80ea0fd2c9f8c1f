package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hindsight/pkg/stream"
)

// scripted is a partition that gives its records in batches as they were put, and reuses their bytes.
type scripted struct {
	stream.Log
	batches chan []stream.Record
	fails   error // once all batches were read; nil: it waits
	pos     int64
	end     int64
	from    int64 // that it was opened at
	reads   int
	closed  bool
	buf     []byte
	bounds  error

	onDemand bool
}

func newScripted() *scripted { return &scripted{batches: make(chan []stream.Record, 100)} }

func (s *scripted) Read(_ context.Context, _ string, _ int, from int64) (stream.Reader, error) {
	s.from = from
	return s, nil
}

func (s *scripted) Bounds(context.Context, string, int) (first, next int64, err error) {
	return 0, s.end, s.bounds
}

func (s *scripted) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	s.reads++
	var batch []stream.Record
	select {
	case batch = <-s.batches:
	default:
		if s.fails != nil {
			return dst, s.fails
		}
		select {
		case batch = <-s.batches:
		case <-ctx.Done():
			return dst, ctx.Err()
		}
	}
	clear(s.buf)
	s.buf = s.buf[:0]
	for _, r := range batch {
		if s.pos = r.Offset + 1; r.Type == "hole" {
			continue
		}
		n := len(s.buf)
		s.buf = append(s.buf, r.Value...)
		r.Value, r.Key = s.buf[n:], s.buf[n:]
		dst = append(dst, r)
	}
	return dst, nil
}

func (s *scripted) OnDemand(on bool) { s.onDemand = on }

func (s *scripted) Position() int64 { return s.pos }
func (s *scripted) Close() error    { s.closed = true; return nil }

// put puts a batch of records of given log times behind those there are.
func (s *scripted) put(times ...int64) {
	var batch []stream.Record
	for _, t := range times {
		batch = append(batch, stream.Record{Offset: s.end, Time: t, Value: []byte(fmt.Sprint("v", s.end))})
		s.end++
	}
	s.batches <- batch
}

// large puts a batch of records that have so many bytes each.
func (s *scripted) large(sizes ...int) {
	var batch []stream.Record
	for _, n := range sizes {
		batch = append(batch, stream.Record{Offset: s.end, Value: make([]byte, n)})
		s.end++
	}
	s.batches <- batch
}

func open(t *testing.T, s *scripted) *Input {
	t.Helper()
	in, err := Open(t.Context(), s, "topic", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// hand checks what is in hand: values of offsets, and what is read and not taken.
func hand(t *testing.T, in *Input, consumed, next int64, offsets ...int64) {
	t.Helper()
	var got []int64
	for _, r := range in.Batch {
		if got = append(got, r.Offset); string(r.Value) != fmt.Sprint("v", r.Offset) {
			t.Errorf("offset %d holds %q", r.Offset, r.Value)
		}
	}
	if !slices.Equal(got, offsets) || in.Consumed() != consumed || in.Next != next {
		t.Errorf("in hand %v, consumed %d, next %d; want %v, %d, %d", got, in.Consumed(), in.Next, offsets,
			consumed, next)
	}
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOpenAt: a position that is none is the oldest record; any other is kept. The reader is told of what is on demand.
func TestOpenAt(t *testing.T) {
	for from, want := range map[int64]int64{0: stream.Earliest, 7: 7} {
		s := newScripted()
		in, err := Open(t.Context(), s, "topic", 0, from)
		no(t, err)
		if in.OnDemand(true); !s.onDemand {
			t.Error("the reader was not told")
		}
		if in.Close(); s.from != want || !s.closed || in.Pumped() {
			t.Errorf("opened at %d for %d, closed %v", s.from, from, s.closed)
		}
	}
}

// TestPoll: without a pump the log is read when it holds more than was read, and only when nothing is in hand.
func TestPoll(t *testing.T) {
	s, ctx := newScripted(), t.Context()
	in := open(t, s)
	no(t, in.Poll(ctx))
	hand(t, in, 0, 0)
	if s.reads != 0 || !in.Complete() {
		t.Errorf("%d reads of an empty partition", s.reads)
	}
	s.put(1, 2)
	s.put(3)
	no(t, in.Poll(ctx))
	hand(t, in, 0, 2, 0, 1)
	no(t, in.Poll(ctx))
	no(t, in.Expect(ctx))
	hand(t, in, 0, 2, 0, 1)
	if in.Complete() {
		t.Error("complete, though another record is there")
	}
	in.Batch = in.Batch[1:]
	no(t, in.Poll(ctx))
	no(t, in.Expect(ctx))
	if hand(t, in, 1, 2, 1); in.Behind() != 1 {
		t.Errorf("%d behind what was read, want 1", in.Behind())
	}
	in.Batch = in.Batch[1:]
	no(t, in.Poll(ctx))
	hand(t, in, 2, 3, 2)
	in.Batch = nil
	no(t, in.Expect(ctx)) // waits for nothing: all is read
	if hand(t, in, 3, 3); !in.Complete() || s.reads != 2 {
		t.Errorf("%d reads", s.reads)
	}
	s.put(4)
	no(t, in.Expect(ctx)) // the end that was fetched last lies before it
	hand(t, in, 3, 3)
	no(t, in.FetchEnd(ctx))
	no(t, in.Expect(ctx))
	hand(t, in, 3, 4, 3)
	s.bounds = errors.New("away")
	if err := in.FetchEnd(ctx); !errors.Is(err, s.bounds) {
		t.Error(err)
	}
	in.Batch = nil
	if err := in.Poll(ctx); !errors.Is(err, s.bounds) {
		t.Error(err)
	}
}

// TestFill: all before the end is in hand, though the reader reuses its memory; what comes later is not.
func TestFill(t *testing.T) {
	s, ctx := newScripted(), t.Context()
	in := open(t, s)
	s.put(1, 2)
	s.put(3)
	s.put(4, 5)
	no(t, in.FetchEnd(ctx))
	s.put(6)
	no(t, in.Fill(ctx))
	if hand(t, in, 0, 5, 0, 1, 2, 3, 4); !in.Complete() || s.reads != 3 {
		t.Errorf("%d reads", s.reads)
	}
	for i, r := range in.Batch[:4] { // those of the last batch are the reader's
		if string(r.Key) != fmt.Sprint("v", i) && i < 3 {
			t.Errorf("the key of %d is %q", i, r.Key)
		}
	}
	no(t, in.Fill(ctx))
	in.Batch = in.Batch[3:]
	no(t, in.FetchEnd(ctx))
	no(t, in.Fill(ctx))
	hand(t, in, 3, 6, 3, 4, 5)
	s.fails = errors.New("broken")
	s.end++
	no(t, in.FetchEnd(ctx))
	if err := in.Fill(ctx); !errors.Is(err, s.fails) {
		t.Error(err)
	}
	hand(t, in, 3, 6, 3, 4, 5)
}

// TestFillOneByOne: records that come one at a time are all in hand.
func TestFillOneByOne(t *testing.T) {
	s, ctx := newScripted(), t.Context()
	in := open(t, s)
	for i := range int64(4) {
		s.put(i)
	}
	no(t, in.FetchEnd(ctx))
	no(t, in.Fill(ctx))
	hand(t, in, 0, 4, 0, 1, 2, 3)
	in.Batch = in.Batch[3:]
	if last, any := in.Last(0); last != 3 || !any {
		t.Errorf("last %d, %v", last, any)
	}
}

// TestFillStops: no more is in hand than a cut may take, in bytes and in records.
func TestFillStops(t *testing.T) {
	s, ctx := newScripted(), t.Context()
	in := open(t, s)
	for range 4 {
		s.large(mostInHand / 2)
	}
	no(t, in.FetchEnd(ctx))
	no(t, in.Fill(ctx))
	if len(in.Batch) != 2 || in.Complete() {
		t.Errorf("%d records of half the bytes each, complete %v", len(in.Batch), in.Complete())
	}
	s = newScripted()
	in = open(t, s)
	for range 3 {
		s.put(make([]int64, mostRecords/2)...)
	}
	no(t, in.FetchEnd(ctx))
	no(t, in.Fill(ctx))
	if len(in.Batch) != mostRecords || in.Complete() {
		t.Errorf("%d records, complete %v", len(in.Batch), in.Complete())
	}
}

// TestHold: a batch is cut where it is too large, never before its first record; the rest is next in hand.
func TestHold(t *testing.T) {
	s, ctx := newScripted(), t.Context()
	in := open(t, s)
	s.large(mostInHand+1, mostInHand/2, mostInHand/2, 1)
	for _, want := range []int{1, 2, 1} {
		no(t, in.Poll(ctx))
		if len(in.Batch) != want || in.Complete() != (want == 1 && in.Consumed() == 3) || in.Next != 4 {
			t.Errorf("%d records in hand from %d, want %d", len(in.Batch), in.Consumed(), want)
		}
		in.Batch = in.Batch[want:]
	}
	if in.Consumed() != 4 || s.reads != 1 {
		t.Errorf("consumed %d after %d reads", in.Consumed(), s.reads)
	}
}

// TestBelieve: a record whose log time is not believed is not in hand, nor what lies behind it, until it is.
func TestBelieve(t *testing.T) {
	s, ctx := newScripted(), t.Context()
	in := open(t, s)
	now := int64(2)
	in.Believe = func(r *stream.Record) bool { return r.Time <= now }
	s.put(1, 2, 9, 3)
	no(t, in.Poll(ctx))
	hand(t, in, 0, 4, 0, 1)
	if in.Complete() {
		t.Error("complete, though records are held back")
	}
	no(t, in.Fill(ctx)) // what is held back does not come by reading on
	hand(t, in, 0, 4, 0, 1)
	in.Batch = nil
	hand(t, in, 2, 4)
	no(t, in.Poll(ctx))
	hand(t, in, 2, 4)
	if err := in.Await(ctx); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	if err := in.Expect(ctx); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	if err := in.Fill(ctx); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	now = 9
	no(t, in.Await(ctx))
	if hand(t, in, 2, 4, 2, 3); !in.Complete() || s.reads != 1 {
		t.Errorf("%d reads", s.reads)
	}
	in.Batch = nil
	s.put(9, 10)
	s.put(10)
	no(t, in.Poll(ctx))
	in.Batch, now = nil, 10
	no(t, in.Await(ctx)) // the one that was held back is not passed over
	hand(t, in, 5, 6, 5)
}

// TestLifted: log times are lifted to the largest before them, and to where the partition has come.
func TestLifted(t *testing.T) {
	in := &Input{Batch: []stream.Record{{Time: 5}, {Time: 3}, {Time: 8}, {Time: 7}}}
	for _, c := range []struct {
		reached, last int64
		before        map[int64]int // by limit
	}{
		{0, 8, map[int64]int{4: 0, 5: 2, 7: 2, 8: 4}},
		{6, 8, map[int64]int{5: 0, 6: 2, 8: 4}},
		{10, 10, map[int64]int{9: 0, 10: 4}},
	} {
		if last, any := in.Last(c.reached); last != c.last || !any {
			t.Errorf("last from %d: %d, %v", c.reached, last, any)
		}
		for limit, want := range c.before {
			if got := in.Before(c.reached, limit); got != want {
				t.Errorf("from %d, %d records up to %d, want %d", c.reached, got, limit, want)
			}
		}
	}
	in.Batch = nil
	if last, any := in.Last(7); last != 7 || any || in.Before(7, 100) != 0 {
		t.Errorf("of nothing: %d, %v", last, any)
	}
}

// TestPump: a goroutine reads one batch ahead, wakes the owner, and reads on when the batch before was taken.
func TestPump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newScripted(), t.Context()
		in := open(t, s)
		woken := 0
		in.Start(ctx, func() { woken++ })
		synctest.Wait()
		if no(t, in.Poll(ctx)); woken != 0 || !in.Pumped() {
			t.Errorf("woken %d times by nothing", woken)
		}
		s.put(1, 2)
		s.put(3)
		synctest.Wait()
		if woken != 1 || s.reads != 1 {
			t.Errorf("woken %d times, %d reads", woken, s.reads)
		}
		no(t, in.Poll(ctx))
		hand(t, in, 0, 2, 0, 1)
		synctest.Wait()
		no(t, in.Poll(ctx))
		if hand(t, in, 0, 2, 0, 1); s.reads != 1 {
			t.Errorf("%d reads, while a batch is in hand", s.reads)
		}
		in.Batch = nil
		no(t, in.Poll(ctx)) // lets it read on
		synctest.Wait()
		no(t, in.Poll(ctx))
		if hand(t, in, 2, 3, 2); woken != 2 {
			t.Errorf("woken %d times", woken)
		}
		in.Batch = nil
		s.batches <- []stream.Record{{Offset: 3, Type: "hole"}, {Offset: 4, Type: "hole"}}
		s.end = 5
		s.put(6)
		no(t, in.Await(ctx)) // the hole moves it on, and the pump reads on by itself
		hand(t, in, 5, 5)
		synctest.Wait()
		no(t, in.Poll(ctx))
		hand(t, in, 5, 6, 5)
		in.Batch = nil
		start := time.Now()
		if err := in.Await(ctx); !errors.Is(err, ErrHeld) || time.Since(start) != HeldWait {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		in.Close()
		if woken != 5 || !s.closed {
			t.Errorf("woken %d times, closed %v", woken, s.closed)
		}
	})
}

// TestMore: what comes is put behind what is in hand, whose bytes are kept, and the pump reads on by itself.
func TestMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx, woken := newScripted(), t.Context(), 0
		in := open(t, s)
		s.put(1, 2)
		no(t, in.More(ctx)) // without a pump nothing comes by itself
		hand(t, in, 0, 0)
		in.Start(ctx, func() { woken++ })
		defer in.Close()
		synctest.Wait()
		no(t, in.More(ctx))
		hand(t, in, 0, 2, 0, 1)
		for i := int64(2); i < 6; i++ {
			s.put(i)
			if synctest.Wait(); woken != int(i) {
				t.Errorf("woken %d times, want %d", woken, i)
			}
			no(t, in.More(ctx))
			no(t, in.More(ctx)) // nothing has come
			hand(t, in, 0, i+1, []int64{0, 1, 2, 3, 4, 5}[:i+1]...)
		}
		s.large(mostInHand - bytesOf(in.Batch))
		s.put(9)
		synctest.Wait()
		for range 2 { // the second finds too much in hand
			no(t, in.More(ctx))
			if synctest.Wait(); len(in.Batch) != 7 {
				t.Errorf("%d in hand, want 7", len(in.Batch))
			}
		}
	})
}

// TestMoreBehind: what lies behind those in hand, not believed or too large, is not read over.
func TestMoreBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx, believed := newScripted(), t.Context(), int64(1)
		in := open(t, s)
		in.Believe = func(r *stream.Record) bool { return r.Time <= believed }
		in.Start(ctx, func() {})
		defer in.Close()
		s.put(1, 2, 3)
		s.put(4)
		for ; believed <= 4; believed++ {
			for range 3 {
				synctest.Wait()
				no(t, in.More(ctx))
			}
			hand(t, in, 0, []int64{3, 3, 4, 4}[believed-1], []int64{0, 1, 2, 3}[:believed]...)
		}
		in.Batch = nil
		s.large(mostInHand, 1, 2)
		s.put(4)
		var offsets []int64
		for len(offsets) < 4 {
			synctest.Wait()
			no(t, in.More(ctx))
			for _, r := range in.Batch {
				offsets = append(offsets, r.Offset)
			}
			in.Batch = nil
		}
		if !slices.Equal(offsets, []int64{4, 5, 6, 7}) {
			t.Errorf("in hand came %v", offsets)
		}
	})
}

// TestPumpHeld: what the log holds back does not keep what is in hand from being taken.
func TestPumpHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newScripted(), t.Context()
		in := open(t, s)
		in.Start(ctx, func() {})
		defer in.Close()
		s.put(1)
		s.end = 5 // the others are those of an open transaction
		no(t, in.FetchEnd(ctx))
		no(t, in.Expect(ctx))
		hand(t, in, 0, 1, 0)
		no(t, in.Fill(ctx))
		hand(t, in, 0, 1, 0)
		in.Batch = nil
		if err := in.Fill(ctx); !errors.Is(err, ErrHeld) {
			t.Error(err)
		}
		stopped, cancel := context.WithCancel(ctx)
		cancel()
		if err := in.Await(stopped); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestPumpFails: the owner hears of the reader's error behind what was read, and is woken for it.
func TestPumpFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newScripted(), t.Context()
		s.fails = errors.New("broken")
		s.put(1)
		in := open(t, s)
		woken := 0
		in.Start(ctx, func() { woken++ })
		synctest.Wait()
		no(t, in.Poll(ctx))
		hand(t, in, 0, 1, 0)
		in.Batch = nil
		no(t, in.Poll(ctx))
		synctest.Wait()
		for range 2 {
			if err := in.Poll(ctx); !errors.Is(err, s.fails) {
				t.Error(err)
			}
			if err := in.Await(ctx); !errors.Is(err, s.fails) {
				t.Error(err)
			}
		}
		if woken != 2 {
			t.Errorf("woken %d times", woken)
		}
		in.Close()
	})
}

// TestPumpStops: a pump ends with its context, while it reads and while its batch waits.
func TestPumpStops(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newScripted()
			if waits {
				s.put(1)
			}
			ctx, cancel := context.WithCancel(t.Context())
			in := open(t, s)
			in.Start(ctx, func() {})
			synctest.Wait()
			cancel()
			synctest.Wait()
			if waits {
				no(t, in.Poll(t.Context()))
				hand(t, in, 0, 1, 0)
				in.Batch = nil
			}
			if err := in.Poll(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("waits %v: %v", waits, err)
			}
			in.Close()
		})
	}
}
