package kafka

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// Owners without any agreement on who may write: each opens when it likes, reads the
// last number and goes on with the next, while connections break, answers are lost or
// say that the outcome is unknown, and leaders move. The log holds every number once,
// in order.
func TestChaosOfOwners(t *testing.T) {
	const brokers = 3
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	last := 15_000
	if testing.Short() {
		last = 500
	}
	if os.Getenv("HINDSIGHT_LONG") != "" {
		last = 100_000
	}
	k := fake(t, kfake.NumBrokers(brokers))
	dice := rand.New(rand.NewPCG(seed, 2))
	k.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1,
		When: func(kmsg.Request) bool { return dice.Float64() < 0.02 }})
	quiet := client(t, k, Options{})
	open(t, quiet, "t", 1)
	flaky := newFlaky(seed, 0.002)
	var done atomic.Bool
	var takeovers atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		c := client(t, k, Options{Dial: flaky.dial, AckTimeout: 5 * time.Second})
		wg.Go(func() {
			defer c.Close()
			own := rand.New(rand.NewPCG(seed, uint64(10+i)))
			for !done.Load() {
				takeovers.Add(1)
				if err := ownForAWhile(c, own, last, &done); err != nil {
					t.Error(err)
					done.Store(true)
				}
			}
		})
	}
	wg.Go(func() {
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for turn := int32(0); !done.Load(); turn++ {
			_ = k.MoveTopicPartition("t", 0, turn%brokers)
			<-pace.C
		}
	})
	wg.Wait()
	all := numbers(t, quiet, "t")
	for i, n := range all {
		if n != i {
			t.Fatalf("record %d of %d holds %d", i, len(all), n)
		}
	}
	if len(all) < last {
		t.Errorf("%d records", len(all))
	}
	t.Logf("%d records, %d takeovers, %d broken connections", len(all), takeovers.Load(), flaky.cuts.Load())
}

// ownForAWhile opens, finds the last number and appends the next ones.
func ownForAWhile(c *Client, dice *rand.Rand, last int, done *atomic.Bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	harmless := func(err error) error {
		if err == nil || stream.IsRetryable(err) || errors.Is(err, stream.ErrFenced) {
			return nil
		}
		return err
	}
	a, tail, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
	if err != nil {
		return harmless(err)
	}
	defer a.Close()
	next, err := nextNumber(ctx, c, tail)
	if err != nil {
		return harmless(err)
	}
	if next >= last { // what is before the tail is stored
		done.Store(true)
	}
	for range dice.IntN(200) {
		if done.Load() {
			break
		}
		if _, err := a.Append(ctx, &stream.Record{Value: strconv.AppendInt(nil, int64(next), 10)}); err != nil {
			return harmless(err)
		}
		next++
	}
	if dice.IntN(3) == 0 {
		return nil // leaves records on their way
	}
	return harmless(a.Flush(ctx))
}

// nextNumber is one more than the last number before a tail's end.
func nextNumber(ctx context.Context, c *Client, tail stream.Tail) (next int, err error) {
	for back := int64(50); ; back *= 4 {
		from := max(tail.First, tail.Next-back)
		found := false
		err := stream.Scan(ctx, c.Log(), "t", 0, from, tail.Next, func(r *stream.Record) error {
			if r.Type == "" {
				n, err := strconv.Atoi(string(r.Value))
				next, found = n+1, true
				return err
			}
			return nil
		})
		if err != nil || found || from == tail.First {
			return next, err
		}
	}
}

// Faults of every kind on the way of an append: what is acknowledged is stored once, in
// order.
func TestAmbiguousAppends(t *testing.T) {
	faults := map[string]func(k *kfake.Cluster, f *flaky){
		"request timed out, applied": func(k *kfake.Cluster, _ *flaky) {
			every(k, 3, kfake.Fault{Err: kerr.RequestTimedOut})
		},
		"not enough replicas after append": func(k *kfake.Cluster, _ *flaky) {
			every(k, 3, kfake.Fault{Err: kerr.NotEnoughReplicasAfterAppend})
		},
		"not enough replicas": func(k *kfake.Cluster, _ *flaky) {
			every(k, 3, kfake.Fault{Err: kerr.NotEnoughReplicas})
		},
		"no answer, dropped before": func(k *kfake.Cluster, _ *flaky) {
			n := 0
			k.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				n++
				return nil, errDropped, n%3 == 0
			})
		},
		"answer lost": func(_ *kfake.Cluster, f *flaky) { f.rate = 0.1 },
		"answers delayed": func(k *kfake.Cluster, _ *flaky) {
			n := 0
			k.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
				k.KeepControl()
				if n++; n%4 == 0 && n <= 12 {
					time.Sleep(600 * time.Millisecond) // longer than the request's time; SleepControl has a data race
				}
				return nil, nil, false
			})
		},
	}
	for name, inject := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := fake(t)
			f := newFlaky(1, 0)
			f.off.Store(true)
			o := Options{Dial: f.dial}
			if name == "answers delayed" {
				o.RequestTimeout = 500 * time.Millisecond // which opening has, too, on a busy machine
			}
			c := client(t, k, o)
			a := open(t, c, "t", 1)
			w, err := c.Log().Writer(context.Background(), "t", 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			inject(k, f)
			f.off.Store(false)
			const n = 30
			for i := range n { // one batch each
				fill(t, a, strconv.Itoa(i)+"a", 1)
				fill(t, w, strconv.Itoa(i)+"w", 1)
			}
			f.off.Store(true)
			quiet := client(t, k, Options{})
			all := values(t, quiet, "t")
			if len(all) != 1+2*n {
				t.Fatalf("%d records of %d", len(all), 1+2*n)
			}
			for i := range n {
				if all[1+2*i] != strconv.Itoa(i)+"a0" || all[2+2*i] != strconv.Itoa(i)+"w0" {
					t.Fatalf("records %d: %s %s", i, all[1+2*i], all[2+2*i])
				}
			}
		})
	}
}

// every answers each n-th Produce request with a fault.
func every(k *kfake.Cluster, n int, f kfake.Fault) {
	i := 0
	f.Keys, f.Count = []kmsg.Key{kmsg.Produce}, -1
	f.When = func(kmsg.Request) bool { i++; return i%n == 0 }
	k.Fault(f)
}

// When no broker takes an append for too long, it says whether the append may be
// stored.
func TestAppendGivesUp(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		err  *kerr.Error
		want error
	}{
		{kerr.NotEnoughReplicas, stream.ErrUnavailable},
		{kerr.NotLeaderForPartition, stream.ErrUnavailable},
		{kerr.RequestTimedOut, stream.ErrUnknown},
		{kerr.NotEnoughReplicasAfterAppend, stream.ErrUnknown},
		{kerr.UnknownServerError, stream.ErrUnknown},
		{kerr.TopicAuthorizationFailed, ErrAuthorization},
		{kerr.OutOfOrderSequenceNumber, stream.ErrUnknown},
		{kerr.InvalidProducerEpoch, stream.ErrFenced},
		{kerr.MessageTooLarge, stream.ErrUnavailable},
		{kerr.KafkaStorageError, stream.ErrUnavailable},
		{kerr.OffsetOutOfRange, stream.ErrUnavailable}, // 1
	} {
		k := fake(t)
		c := client(t, k, Options{AckTimeout: 50 * time.Millisecond})
		var fates []error
		a, _ := openAcked(t, c, "t", 1, func(_ uint64, _ int64, err error) { fates = append(fates, err) })
		every(k, 1, kfake.Fault{Err: x.err})
		for range 3 {
			_, _ = a.Append(context.Background(), &stream.Record{Value: []byte("x")})
		}
		err := a.Flush(context.Background())
		var place *stream.Error
		if !errors.Is(err, x.want) || !errors.As(err, &place) || place.Topic != "t" {
			t.Errorf("%v: %v, want %v", x.err, err, x.want)
		}
		if errors.Is(err, stream.ErrTooLarge) {
			t.Errorf("%v: %v says that the appender lives on", x.err, err)
		}
		for _, f := range fates {
			if !errors.Is(f, x.want) {
				t.Errorf("%v: told %v", x.err, f)
			}
		}
		if x.want == stream.ErrUnavailable && errors.Is(err, stream.ErrUnknown) {
			t.Errorf("%v: %v", x.err, err)
		}
		c.Close()
		k.Close()
	}
}

// The sequence goes on with 0 after its largest. (The fake's arithmetic is off by one
// there, so a real broker is needed.)
func TestKafkaRealSequenceWraps(t *testing.T) {
	brokers := kafkatest.Shared(t).Brokers()
	deleteTopics(t, Options{Brokers: brokers})
	c := dialed(t, brokers, Options{})
	const topic = "t"
	open(t, c, topic, 1) // brokers take any sequence of a producer they do not know where there are records
	w, err := c.Log().Writer(context.Background(), topic, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.(*appender).sequence = math.MaxInt32 - 3
	for i := range 4 {
		fill(t, w, strconv.Itoa(i)+".", 3)
	}
	want(t, values(t, c, topic), "open 0.0 0.1 0.2 1.0 1.1 1.2 2.0 2.1 2.2 3.0 3.1 3.2")
}
