package kafka

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// mustBeFenced checks that an appender can store nothing any more.
func mustBeFenced(t *testing.T, a stream.Appender) {
	t.Helper()
	ctx := context.Background()
	if _, err := a.Append(ctx, &stream.Record{Value: []byte("zombie")}); err != nil && !errors.Is(err,
		stream.ErrFenced) {
		t.Errorf("append of an earlier owner: %v", err)
	}
	if err := a.Flush(ctx); !errors.Is(err, stream.ErrFenced) {
		t.Errorf("flush of an earlier owner: %v", err)
	}
}

func want(t *testing.T, got []string, want string) {
	t.Helper()
	if g := strings.Join(got, " "); g != want {
		t.Errorf("log: %s\nwant: %s", g, want)
	}
}

// opening returns an appender that is no owner yet.
func opening(t *testing.T, c *Client, p place) *appender {
	t.Helper()
	a, err := c.log.newAppender(t.Context(), p.Topic, p.Partition, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Two that take the same epoch look like one to the broker. The second is told the
// offset of the first's open record, and must notice.
func TestSameEpoch(t *testing.T) {
	everywhere(t, func(t *testing.T, brokers []string) {
		c, d := dialed(t, brokers, Options{}), dialed(t, brokers, Options{})
		ctx := context.Background()
		a := open(t, c, "t", 1)
		rival := opening(t, d, place{Topic: "t"})
		defer rival.sender.close()
		if _, err := rival.fence(ctx, owner{a.producer, a.epoch}, stream.OpenOptions{}); !errors.Is(err, errOpenAgain) {
			t.Fatalf("open with an epoch that is taken: %v", err)
		}
		fill(t, a, "a", 1) // it is still the owner
		if _, err := rival.fence(ctx, owner{a.producer, a.epoch}, stream.OpenOptions{}); !errors.Is(err, errOpenAgain) {
			t.Fatalf("again, after more records: %v", err)
		}
		fill(t, a, "b", 10) // more batches than a broker remembers
		if _, err := rival.own(ctx, stream.OpenOptions{}); err != nil || rival.epoch != a.epoch+1 {
			t.Fatalf("open with the next epoch: %v, epoch %d after %d", err, rival.epoch, a.epoch)
		}
		mustBeFenced(t, a)
	})
}

// The last epoch closes a producer id, and the next one takes over.
func TestEpochsRunOut(t *testing.T) {
	everywhere(t, func(t *testing.T, brokers []string) {
		c := dialed(t, brokers, Options{})
		ctx := context.Background()
		first := open(t, c, "t", 1)
		last := opening(t, c, place{Topic: "t"})
		at, err := last.fence(ctx, owner{ownerID("t", 0), lastEpoch - 1}, stream.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last.producer, last.epoch, last.sequence, last.sender.search = ownerID("t", 0), lastEpoch-1, 1, at+1
		if err := last.start(); err != nil {
			t.Fatal(err)
		}
		fill(t, last, "a", 2)
		next, tail := openAcked(t, c, "t", 1, nil)
		// two records, the one that closes
		if next.producer != ownerID("t", 0)+1 || next.epoch != 0 || tail.Open != at+4 {
			t.Errorf("producer OwnerID+%d, epoch %d, tail %+v", next.producer-ownerID("t", 0), next.epoch, tail)
		}
		fill(t, next, "b", 2)
		mustBeFenced(t, last)
		mustBeFenced(t, first)
		after := open(t, c, "t", 1)
		if after.producer != ownerID("t", 0)+1 || after.epoch != 1 {
			t.Errorf("producer OwnerID+%d, epoch %d", after.producer-ownerID("t", 0), after.epoch)
		}
		fill(t, after, "c", 1)
		mustBeFenced(t, next)
		want(t, values(t, c, "t"), "open open a0 a1 open open b0 b1 open c0")
	})
}

// An opener that was slow closes an id that another has closed and left already.
func TestEpochsRunOutForTwo(t *testing.T) {
	everywhere(t, func(t *testing.T, brokers []string) {
		c := dialed(t, brokers, Options{})
		ctx := context.Background()
		open(t, c, "t", 1)
		slow := opening(t, c, place{Topic: "t"})
		defer slow.sender.close()
		if _, err := slow.fence(ctx, owner{ownerID("t", 0), lastEpoch}, stream.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		fast := open(t, c, "t", 1)
		if _, err := slow.fence(ctx, owner{ownerID("t", 0), lastEpoch}, stream.OpenOptions{}); err != nil {
			t.Fatalf("closing what is closed: %v", err)
		}
		if _, err := slow.fence(ctx, owner{ownerID("t", 0) + 1, 0}, stream.OpenOptions{}); !errors.Is(err,
			errOpenAgain) {
			t.Fatalf("opening what is open: %v", err)
		}
		fill(t, fast, "a", 1)
		want(t, values(t, c, "t"), "open open open a0")
	})
}

// foreign writes one record as any other client does.
func foreign(t *testing.T, c *Client, topic, value string, opts ...kgo.Opt) {
	t.Helper()
	opts = append([]kgo.Opt{kgo.SeedBrokers(c.o.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)
	p, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.ProduceSync(context.Background(), &kgo.Record{Topic: topic,
		Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// The owner is found behind records of other clients, and where there are no records
// left; also by brokers that cannot say who writes.
func TestOwnerIsFound(t *testing.T) {
	old := []kfake.Opt{kfake.MaxVersions(kversion.V2_7_0())} // no DescribeProducers
	for name, x := range map[string]struct {
		opts []kfake.Opt
		hide func(t *testing.T, c *Client)
	}{
		"nothing hides it": {},
		"old broker":       {opts: old},
		"foreign record": {hide: func(t *testing.T, c *Client) {
			foreign(t, c, "t", "foreign", kgo.DisableIdempotentWrite())
		}},
		"idempotent foreign": {hide: func(t *testing.T, c *Client) { foreign(t, c, "t", "foreign") }},
		"old broker, foreign record": {opts: old, hide: func(t *testing.T, c *Client) {
			foreign(t, c, "t", "foreign", kgo.DisableIdempotentWrite())
		}},
		"trimmed":             {hide: trimAll},
		"old broker, trimmed": {opts: old, hide: trimAll},
	} {
		test := func(t *testing.T, brokers []string) {
			c := dialed(t, brokers, Options{})
			var a *appender
			for range 20 { // epoch 19 has to be passed
				a = open(t, c, "t", 1)
			}
			fill(t, a, "a", 3)
			if x.hide != nil {
				x.hide(t, c)
			}
			b := open(t, c, "t", 1)
			fill(t, b, "b", 3)
			mustBeFenced(t, a)
			if all := values(t, c, "t"); len(all) < 4 || strings.Join(all[len(all)-4:], " ") != "open b0 b1 b2" {
				t.Errorf("log: %v", all)
			}
		}
		t.Run(name, func(t *testing.T) {
			if x.opts == nil {
				everywhere(t, test)
				return
			}
			k := fake(t, x.opts...)
			test(t, k.ListenAddrs())
		})
	}
}

func trimAll(t *testing.T, c *Client) {
	t.Helper()
	ctx := context.Background()
	p := place{Topic: "t", Partition: 0}
	_, end, err := c.ends(ctx, &p)
	if err == nil {
		err = c.atLeader(ctx, &p, func(cn *conn) (int16, error) { return cn.deleteRecords(&p, end, 1000) })
	}
	if err != nil {
		t.Fatal(err)
	}
	if first, next, err := c.ends(ctx, &p); err != nil || first != next {
		t.Fatalf("bounds [%d, %d), %v", first, next, err)
	}
}

// An owner whose epoch is higher, but whom the broker has forgotten, does not come back
// either: its records do not begin an epoch.
func TestForgottenOwner(t *testing.T) {
	everywhere(t, func(t *testing.T, brokers []string) {
		c := dialed(t, brokers, Options{AckTimeout: 200 * time.Millisecond})
		a := open(t, c, "t", 1)
		fill(t, a, "a", 1)
		a.epoch = 1000 // as if it were of the time before
		if _, err := a.Append(context.Background(), &stream.Record{Value: []byte("zombie")}); err != nil {
			t.Fatal(err)
		}
		if err := a.Flush(context.Background()); !errors.Is(err, stream.ErrUnknown) {
			t.Errorf("a record in the middle of an epoch: %v", err)
		}
		want(t, values(t, c, "t"), "open a0")
	})
}

// fate is what an owner is told of a record.
type fate struct {
	offset int64
	err    error
}

// fencedWhileUnknown has an owner append x and lose the answer, or the batch if it is not to
// be stored, and another one open the partition before the first can ask again. It returns
// both, what the first is told then, and where x is if it is stored.
func fencedWhileUnknown(t *testing.T, brokers []string, stored bool, o Options, then func(x int64)) (a, b *appender,
	told fate, x int64) {
	t.Helper()
	var cut, blocked atomic.Bool
	lost, again := make(chan struct{}), make(chan struct{})
	lose := func() {
		blocked.Store(true)
		close(lost)
	}
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if blocked.Load() {
			<-again
		}
		cn, err := dialNet(ctx, network, addr)
		return &gate{cn, &cut, stored, lose}, err
	}
	c, d := dialed(t, brokers, o), dialed(t, brokers, Options{})
	t.Cleanup(func() { c.Close(); d.Close() })
	fates := make(chan fate, 10)
	a, tail := openAcked(t, c, "t", 1, func(_ uint64, offset int64, err error) { fates <- fate{offset, err} })
	cut.Store(true)
	if _, err := a.Append(context.Background(), &stream.Record{Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	<-lost
	b = open(t, d, "t", 1)
	if then != nil {
		then(tail.Next)
	}
	close(again)
	return a, b, <-fates, tail.Next
}

// A batch that was stored though its answer was lost, and whose owner was fenced before
// it could ask again, is told as stored; one that was not, as fenced.
func TestFencedWhileUnknown(t *testing.T) {
	for _, stored := range []bool{true, false} {
		everywhere(t, func(t *testing.T, brokers []string) {
			a, b, f, x := fencedWhileUnknown(t, brokers, stored, Options{}, nil)
			if stored && (f.err != nil || f.offset != x) {
				t.Errorf("stored at %d, told %d, %v", x, f.offset, f.err)
			}
			if !stored && !errors.Is(f.err, stream.ErrFenced) {
				t.Errorf("not stored, told %d, %v", f.offset, f.err)
			}
			fill(t, b, "b", 1)
			mustBeFenced(t, a)
			all := values(t, b.log.c, "t")
			if slices.Contains(all, "x") != stored || slices.Contains(all, "zombie") {
				t.Errorf("log: %v", all)
			}
		})
	}
}

// A leader that has both the batch and the next owner's open record tells who asks again that
// it is fenced, though replicas lack both and nobody can read them: what is not readable is
// not missing.
func TestFencedWhileReplicating(t *testing.T) {
	for _, hides := range []int64{3, math.MaxInt64} { // so many answers
		k := fake(t)
		var left, high atomic.Int64
		k.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.KeepControl()
			q := req.(*kmsg.ListOffsetsRequest)
			if q.ReplicaID != -1 || q.Topics[0].Partitions[0].Timestamp != latest || left.Add(-1) < 0 {
				return nil, nil, false
			}
			return listed(q, high.Load()), nil, true
		})
		_, b, f, x := fencedWhileUnknown(t, k.ListenAddrs(), true, Options{RequestTimeout: time.Second / 2},
			func(x int64) {
				high.Store(x)
				left.Store(hides)
			})
		switch hidden := left.Load() > 0; {
		case hidden && !errors.Is(f.err, stream.ErrUnknown):
			t.Errorf("nobody can read what waits for replicas, told %d, %v", f.offset, f.err)
		case !hidden && (f.err != nil || f.offset != x):
			t.Errorf("stored at %d, told %d, %v", x, f.offset, f.err)
		case hidden != (hides > 3):
			t.Errorf("%d answers left of %d", left.Load(), hides)
		}
		left.Store(0)
		want(t, values(t, b.log.c, "t"), "open x open")
	}
}

// TestKafkaRealFencedWhileReplicating has a leader that alone has a batch and the next owner's
// open record, for its replicas hang: who wrote the batch is not told that it is not there.
func TestKafkaRealFencedWhileReplicating(t *testing.T) {
	kafkatest.Heavy(t)
	const limit = 4 * time.Second // after which the leader says that replicas do not answer
	k := kafkatest.Hurt(t, 3)
	k.CreateTopic("fenced", 1, "message.timestamp.type", "LogAppendTime", "min.insync.replicas", "2")
	k.InSync("fenced", 0, 3)
	c, d := dialReal(t, k, Options{RequestTimeout: limit}), dialReal(t, k, Options{RequestTimeout: time.Minute})
	fates := make(chan fate, 1)
	a, tail := openAcked(t, c, "fenced", 1, func(_ uint64, offset int64, err error) { fates <- fate{offset, err} })
	written := func(want int64) {
		t.Helper()
		for at := []int64{-1}; at[0] != want; <-time.After(10 * time.Millisecond) {
			if err := d.atLeader(t.Context(), &a.sender.p, func(cn *conn) (int16, error) {
				return cn.offsets(&a.sender.p, []position{nextWritten}, at)
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	leader := k.Leader("fenced", 0)
	others := func(do func(int)) {
		for i := 1; i <= 3; i++ {
			if i != leader {
				do(i)
			}
		}
	}
	next := opening(t, d, a.sender.p)
	defer next.sender.close()
	others(k.Pause)
	x := tail.Next - 1
	for hang := false; !hang; x++ { // on a busy machine they go on for a while
		if _, err := a.Append(t.Context(), &stream.Record{Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-fates:
		case <-time.After(limit / 4):
			hang = true
		}
	}
	written(x + 1)
	opened := make(chan error, 1)
	go func() {
		_, err := next.fence(context.WithoutCancel(t.Context()), owner{a.producer, a.epoch + 1}, stream.OpenOptions{})
		opened <- err
	}()
	written(x + 2)
	<-time.After(limit) // it has asked again
	if len(fates) > 0 {
		t.Error("told while replicas hang")
	}
	others(k.Resume)
	if f := <-fates; f.err != nil || f.offset != x {
		t.Errorf("stored at %d, told %d, %v", x, f.offset, f.err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
	all := values(t, d, "fenced")
	want(t, all[len(all)-2:], "x open")
}

// The numbers in a log written by owners that know nothing of each other.
func numbers(t *testing.T, c *Client, topic string) (all []int) {
	t.Helper()
	for _, v := range values(t, c, topic) {
		if v == stream.TypeOpen {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}
