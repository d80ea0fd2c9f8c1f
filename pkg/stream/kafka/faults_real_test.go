package kafka

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

func dialReal(t *testing.T, k *kafkatest.Cluster, o Options) *Client {
	t.Helper()
	o.Brokers = k.Brokers()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// readOthers reads the values of a partition with another client, without ours that
// mark owners.
func readOthers(t *testing.T, k *kafkatest.Cluster, topic string, next int64) (values []string) {
	t.Helper()
	cl := k.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for at := int64(0); at < next; {
		fetched := cl.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			for _, h := range r.Headers {
				if h.Key == stream.HeaderType {
					return
				}
			}
			values = append(values, string(r.Value))
		})
	}
	return values
}

// TestKafkaRealChaos has owners that know nothing of each other on three brokers that are
// killed, stopped, paused and lose their leadership: the log holds every number once, in
// order, as another client reads it.
func TestKafkaRealChaos(t *testing.T) {
	kafkatest.Heavy(t)
	rounds := 2
	if os.Getenv("HINDSIGHT_LONG") != "" {
		rounds = 25
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	k := kafkatest.Hurt(t, 3)
	k.DeleteTopic("t") // of another run
	k.CreateTopic("t", 1, "message.timestamp.type", "LogAppendTime", "min.insync.replicas", "2")
	quiet := dialReal(t, k, Options{})
	f := newFlaky(seed, 0.002)
	var done atomic.Bool
	var takeovers atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer done.Store(true)
	for i := range 3 {
		c := dialReal(t, k, Options{Dial: f.dial, AckTimeout: 15 * time.Second})
		wg.Go(func() {
			own := rand.New(rand.NewPCG(seed, uint64(10+i)))
			for !done.Load() {
				takeovers.Add(1)
				if err := ownForAWhile(c, own, 1<<30, &done); err != nil {
					t.Error(err)
					done.Store(true)
				}
				// brokers that others work with can serve more, but not on two processors
				<-time.After(50 * time.Millisecond)
			}
		})
	}
	progress := func(what string) {
		t.Helper()
		start := time.Now()
		before := int64(-1) // not known yet
		for next := int64(0); (before < 0 || next < before+500) && !done.Load(); <-time.After(5 * time.Millisecond) {
			_, n, err := quiet.Log().Bounds(t.Context(), "t", 0)
			if err == nil {
				if next = n; before < 0 {
					before = n
				}
			} else if !stream.IsRetryable(err) {
				t.Fatal(err)
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("after %s: no progress from %d, at %d: %v", what, before, next, err)
			}
		}
	}
	dice := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		for _, fault := range []string{"kill", "stop", "pause", "move"} {
			k.InSync("t", 0, 3)
			progress("coming together")
			leader := k.Leader("t", 0)
			start := time.Now()
			switch fault {
			case "kill":
				k.Kill(leader)
				progress(fault)
				k.Restart(leader)
			case "stop":
				k.Stop(leader)
				progress(fault)
				k.Restart(leader)
			case "pause":
				k.Pause(leader)
				progress(fault) // so it is beyond the session's time
				k.Resume(leader)
			case "move":
				k.MoveLeader("t", 0, (leader+dice.IntN(2))%3+1)
				progress(fault)
			}
			t.Logf("%s of broker %d: %v", fault, leader, time.Since(start).Round(time.Millisecond))
		}
	}
	progress("all faults")
	done.Store(true)
	wg.Wait()
	_, next, err := quiet.Log().Bounds(t.Context(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	all := readOthers(t, k, "t", next)
	for i, v := range all {
		if v != strconv.Itoa(i) {
			t.Fatalf("record %d of %d holds %s", i, len(all), v)
		}
	}
	t.Logf("%d records, %d takeovers, %d broken connections", len(all), takeovers.Load(), f.cuts.Load())
}

// TestKafkaRealDiskFull fills the broker's disk under an owner: it is told, nothing that
// was acknowledged is lost, and with room again the next owner goes on.
func TestKafkaRealDiskFull(t *testing.T) {
	kafkatest.Heavy(t)
	t.Parallel() // on a cluster of its own
	k := kafkatest.Start(t, kafkatest.Options{DiskMB: 64})
	c := dialReal(t, k, Options{AckTimeout: 2 * time.Second})
	ctx := t.Context()
	if err := c.Log().Create(ctx, "t", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	var acked atomic.Int64
	a, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{Ack: func(_ uint64, _ int64, err error) {
		if err == nil {
			acked.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ballast := filepath.Join(k.DataDir(1), "ballast")
	if err := os.WriteFile(ballast, make([]byte, 40<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	pad := make([]byte, 5000)
	for n := 0; err == nil; n++ {
		_, err = a.Append(ctx, &stream.Record{Key: strconv.AppendInt(nil, int64(n), 10), Value: pad})
	}
	t.Logf("after %d acknowledged: %v", acked.Load(), err)
	if !stream.IsRetryable(err) {
		t.Error("the error is not one that may pass")
	}
	<-k.Ended(1) // a broker without a folder that it can write to ends
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	k.Restart(1)
	b, tail, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	n := 0
	err = stream.Scan(ctx, c.Log(), "t", 0, tail.First, tail.Next, func(r *stream.Record) error {
		if r.Type == "" {
			if string(r.Key) != strconv.Itoa(n) {
				t.Fatalf("record %d has number %s", n, r.Key)
			}
			n++
		}
		return nil
	})
	if err != nil || int64(n) < acked.Load() {
		t.Errorf("%d records, %d were acknowledged: %v", n, acked.Load(), err)
	}
}

// TestKafkaRealTopicDeleted deletes a topic under its owner and its reader.
func TestKafkaRealTopicDeleted(t *testing.T) {
	kafkatest.Heavy(t)
	k := kafkatest.Shared(t)
	c := dialReal(t, k, Options{AckTimeout: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// one that we had made ourselves would be waited for
	k.CreateTopic("doomed", 1, "message.timestamp.type", "LogAppendTime")
	a, tail, err := c.Log().Open(ctx, "doomed", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r, err := c.Log().Read(ctx, "doomed", 0, tail.Next)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	k.DeleteTopic("doomed")
	for err = nil; err == nil; {
		if _, err = a.Append(ctx, &stream.Record{Value: []byte("x")}); err == nil {
			err = a.Flush(ctx)
		}
	}
	t.Logf("append: %v", err)
	if !errors.Is(err, stream.ErrNotFound) {
		t.Error("the appender is not told that there is no such topic")
	}
	for err = nil; err == nil; {
		_, err = r.Next(ctx, nil)
	}
	t.Logf("read: %v", err)
	if !errors.Is(err, stream.ErrNotFound) {
		t.Error("the reader is not told that there is no such topic")
	}
}

// TestKafkaRealRetention lets the broker drop records that a reader stands before.
func TestKafkaRealRetention(t *testing.T) {
	kafkatest.Heavy(t)
	k := kafkatest.Shared(t)
	k.CreateTopic("short", 1, "message.timestamp.type", "LogAppendTime", "segment.bytes", "1048576",
		"retention.bytes", "2097152")
	c := dialReal(t, k, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, tail, err := c.Log().Open(ctx, "short", 0, stream.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r, err := c.Log().Read(ctx, "short", 0, stream.Earliest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx, nil); err != nil {
		t.Fatal(err)
	}
	first, next := tail.First, tail.Next
	for pad := make([]byte, 10_000); first == tail.First; {
		if _, err := a.Append(ctx, &stream.Record{Value: pad}); err != nil {
			t.Fatal(err)
		}
		if first, next, err = c.Log().Bounds(ctx, "short", 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the log now begins at %d and ends at %d", first, next)
	if _, err := c.Log().Read(ctx, "short", 0, tail.Next); !errors.Is(err, stream.ErrTruncated) {
		t.Errorf("a reader from %d: %v", tail.Next, err)
	}
	var recs []stream.Record
	at := tail.Next
	for err = nil; err == nil; { // what it had fetched ahead it may still return
		recs, err = r.Next(ctx, recs[:0])
		for _, rec := range recs {
			if rec.Offset != at {
				t.Fatalf("record %d follows %d: records were skipped in silence", rec.Offset, at-1)
			}
			at++
		}
		if at >= next {
			t.Skip("the reader had fetched all of it ahead")
		}
	}
	if !errors.Is(err, stream.ErrTruncated) {
		t.Errorf("the reader at %d: %v", at, err)
	}
}
