package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
)

// begin writes a transaction of n records.
func begin(t testing.TB, brokers []string, topic, prefix string, n int) (end func(commit bool)) {
	t.Helper()
	ctx := context.Background()
	p, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("tx"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := p.ProduceSync(ctx,
			&kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s%d", prefix, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return func(commit bool) {
		t.Helper()
		defer p.Close()
		if err := p.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
			t.Fatal(err)
		}
	}
}

// Markers of transactions are passed, also where the log ends with one: who reads to
// the end that Bounds told does not wait for more.
func TestMarkersOfTransactions(t *testing.T) {
	everywhere(t, func(t *testing.T, brokers []string) {
		c := dialed(t, brokers, Options{})
		a := open(t, c, "t", 1)
		begin(t, brokers, "t", "x", 2)(true)
		fill(t, a, "a", 1)
		begin(t, brokers, "t", "y", 1)(false)
		want(t, values(t, c, "t"), "open x0 x1 a0")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, end, err := c.Log().Bounds(ctx, "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Log().Read(ctx, "t", 0, end-1) // the marker alone
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if p := r.Position(); p != end {
			t.Errorf("position %d before nothing but a marker, the end is %d", p, end)
		}
		fill(t, a, "b", 1)
		recs, err := r.Next(ctx, nil)
		if err != nil || len(recs) != 1 || recs[0].Offset != end || string(recs[0].Value) != "b0" {
			t.Errorf("after the marker: %v, %v", recs, err)
		}
	})
}

// Next returns a record's bytes that hold until the next Next, also when Position has
// looked ahead.
func TestPositionKeepsBytes(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	for i := range 40 { // more than three fetches
		_, err := a.Append(context.Background(),
			&stream.Record{Value: []byte(fmt.Sprintf("%06d", i) + strings.Repeat("x", 100_000))})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, end, err := c.Log().Bounds(context.Background(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(context.Background(), "t", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var recs []stream.Record
	for n := 0; r.Position() < end; {
		if recs, err = r.Next(context.Background(), recs[:0]); err != nil {
			t.Fatal(err)
		}
		if r.(*reader).lent == nil {
			t.Error("the memory of what was returned may be used again")
		}
		r.Position()
		for _, x := range recs {
			if string(x.Value[:6]) != fmt.Sprintf("%06d", n) {
				t.Fatalf("record %d holds %s", n, x.Value[:6])
			}
			n++
		}
	}
}

// Who reads what retention has dropped is told, and is not moved.
func TestRetention(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	ctx := context.Background()
	if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{MaxBytes: 2 << 20}); err != nil {
		t.Fatal(err)
	}
	a, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(ctx, "t", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx, nil); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := a.Append(ctx, &stream.Record{Value: make([]byte, 100_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	k.ApplyRetention()
	first, next, err := c.Log().Bounds(ctx, "t", 0)
	if err != nil || first == 0 || first == next {
		t.Fatalf("bounds [%d, %d), %v", first, next, err)
	}
	if _, err := c.Log().Read(ctx, "t", 0, first-1); !errors.Is(err, stream.ErrTruncated) {
		t.Errorf("read of what was dropped: %v", err)
	}
	var recs []stream.Record
	for pos := r.Position(); ; pos = r.Position() { // what it had fetched it may return
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			if !errors.Is(err, stream.ErrTruncated) || r.Position() != pos {
				t.Errorf("under a reader: %v, position %d, it was %d", err, r.Position(), pos)
			}
			return
		}
		if recs[0].Offset != pos {
			t.Fatalf("record %d after %d", recs[0].Offset, pos-1)
		}
	}
}

// A log that lost its tail is noticed by who was further, and one that is gone by all.
func TestTopicLost(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{AckTimeout: 100 * time.Millisecond})
	ctx := context.Background()
	a := open(t, c, "t", 1)
	fill(t, a, "a", 10)
	r, err := c.Log().Read(ctx, "t", 0, 11)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := k.DeleteTopic("t"); err != nil {
		t.Fatal(err)
	}
	delete(c.cluster.created, "t") // else it is thought to be too new to be known
	if _, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("read of a topic that is gone: %v", err)
	}
	_, _ = a.Append(ctx, &stream.Record{})
	if err := a.Flush(ctx); !errors.Is(err, stream.ErrNotFound) && !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("append to a topic that is gone: %v", err)
	}
	open(t, c, "t", 1)
	if _, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrAhead) {
		t.Errorf("read beyond the end of a new topic: %v", err)
	}
}

// Records go on being appended and read while leaders move and a broker goes away;
// nothing stops for long.
func TestLeadersMove(t *testing.T) {
	k := fake(t, kfake.NumBrokers(3))
	c := client(t, k, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a := open(t, c, "t", 1)
	r, err := c.Log().Read(ctx, "t", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx, nil); err != nil {
		t.Fatal(err)
	}
	var longest time.Duration
	for i := range 40 {
		if i%4 == 0 {
			if err := k.MoveTopicPartition("t", 0, int32(i/4)%3); err != nil {
				t.Fatal(err)
			}
		}
		if i == 38 {
			if err := k.RemoveNode(k.LeaderFor("t", 0)); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		fill(t, a, fmt.Sprint(i, "."), 1)
		recs, err := r.Next(ctx, nil)
		if err != nil || len(recs) != 1 || string(recs[0].Value) != fmt.Sprintf("%d.0", i) {
			t.Fatalf("record %d: %v, %v", i, recs, err)
		}
		longest = max(longest, time.Since(start))
	}
	t.Logf("at most %v between append and read", longest)
	if longest > 10*time.Second {
		t.Errorf("a leader's move took %v", longest)
	}
}

// A partition that cannot be read for long is told, by name, and read again afterwards.
func TestReaderIsPatient(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	c.patience = 50 * time.Millisecond
	ctx := context.Background()
	a := open(t, c, "t", 1)
	fill(t, a, "a", 3)
	for _, x := range []struct {
		err  *kerr.Error
		want error
	}{{kerr.NotLeaderForPartition, stream.ErrUnavailable}, {kerr.TopicAuthorizationFailed, ErrAuthorization},
		{kerr.KafkaStorageError, stream.ErrUnavailable}} {
		r, err := c.Log().Read(ctx, "t", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: x.err, Count: -1})
		if _, err := r.Next(ctx, nil); !errors.Is(err, x.want) || !stream.IsRetryable(err) {
			t.Errorf("%v: %v", x.err, err)
		}
		h.Remove()
		if recs, err := r.Next(ctx, nil); err != nil || len(recs) == 0 || recs[0].Offset != 1 {
			t.Errorf("after %v: %d records, %v", x.err, len(recs), err)
		}
		r.Close()
	}
}

// flip is a connection on which a bit of large answers changes, so often.
type flip struct {
	net.Conn
	times *atomic.Int64
}

func (f *flip) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if n > 10_000 && f.times.Add(-1) >= 0 {
		b[n-100] ^= 1
	}
	return n, err
}

// Damage on the way is mended by asking again; damage in the log is told.
func TestDamageIsNoticed(t *testing.T) {
	for _, times := range []int64{1, 1 << 40} {
		k := fake(t)
		var left atomic.Int64
		c := client(t, k, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			cn, err := dialNet(ctx, network, addr)
			return &flip{cn, &left}, err
		}})
		ctx := context.Background()
		a := open(t, c, "t", 1)
		if _, err := a.Append(ctx, &stream.Record{Value: make([]byte, 50_000)}); err != nil || a.Flush(ctx) != nil {
			t.Fatal(err)
		}
		r, err := c.Log().Read(ctx, "t", 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		left.Store(times)
		recs, err := r.Next(ctx, nil)
		if times == 1 && (err != nil || len(recs) != 1) {
			t.Errorf("damage on the way: %v", err)
		}
		if times > 1 && (!errors.Is(err, ErrCorrupt) || stream.IsRetryable(err)) {
			t.Errorf("damage in the log: %v", err)
		}
		r.Close()
		c.Close()
		k.Close()
	}
}

// TestDamageIsNotPassed: a record that cannot be read under a good CRC is told each time, and what is behind it is not
// read.
func TestDamageIsNotPassed(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	b := encode(some(2), -1, -1, -1, 4)
	b[batchHead+3] = 18 // the first of two is the tenth
	if err := c.atLeader(t.Context(), &a.sender.p, func(cn *conn) (int16, error) {
		answer, err := cn.produce(&a.sender.p, 1000, resum(b))
		return answer.code, err
	}); err != nil {
		t.Fatal(err)
	}
	r, err := c.Log().Read(t.Context(), "t", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if recs, err := r.Next(t.Context(), nil); !errors.Is(err, ErrCorrupt) || len(recs) > 0 || r.Position() != 1 {
			t.Errorf("read %v, %v, at %d", recs, err, r.Position())
		}
	}
}

// afterwards is a context that does something while what waits for it begins to wait.
type afterwards struct {
	context.Context
	do func()
}

func (a afterwards) Done() <-chan struct{} {
	a.do()
	return a.Context.Done()
}

// A reader that is closed while it waits says so, also if it learns first that its
// connection is gone.
func TestClosedWhileWaiting(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	open(t, c, "t", 1)
	for range 20 { // it learns of one or the other by chance
		x, err := c.Log().Read(t.Context(), "t", 0, stream.Earliest)
		if err != nil {
			t.Fatal(err)
		}
		r := x.(*reader)
		if _, err := r.Next(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		_, err = r.Next(afterwards{t.Context(), func() {
			r.cancel()
			r.f.close()
			r.f.full <- &chunk{of: r.f, err: net.ErrClosed}
		}}, nil)
		if !errors.Is(err, stream.ErrClosed) {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
