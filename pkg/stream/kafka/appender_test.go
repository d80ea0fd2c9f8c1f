package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// held keeps Produce requests from being answered, and notes how many records came in
// each.
type held struct {
	arrived chan struct{} // a request is held
	release chan struct{} // closed: go on

	mu     sync.Mutex
	counts []int
}

func hold(k *kfake.Cluster) *held {
	h := &held{arrived: make(chan struct{}, 100), release: make(chan struct{})}
	k.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		b := r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records
		h.mu.Lock()
		h.counts = append(h.counts, int(binary.BigEndian.Uint32(b[atCount:])))
		h.mu.Unlock()
		h.arrived <- struct{}{}
		<-h.release // the whole fake waits: its SleepControl has a data race
		return nil, nil, false
	})
	return h
}

// What is appended while a batch is on its way goes out as one batch, at once.
func TestNaturalBatches(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	ctx := context.Background()
	a := open(t, c, "t", 1)
	h := hold(k)
	add := func() {
		if _, err := a.Append(ctx, &stream.Record{Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	add()
	<-h.arrived
	for range 100 {
		add()
	}
	close(h.release)
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if fmt.Sprint(h.counts) != "[1 100]" {
		t.Errorf("batches of %v records", h.counts)
	}
}

// While a batch is on its way and the next is full, Append waits; its context ends that
// and nothing else, and so does Close.
func TestBackPressure(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	ctx := context.Background()
	a := open(t, c, "t", 1)
	h := hold(k)
	r := &stream.Record{Value: make([]byte, 10_000)}
	n := 0
	var err error
	for err == nil && n < 1000 {
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if _, err = a.Append(short, r); err == nil {
			n++
		}
		cancel()
	}
	if !errors.Is(err, context.DeadlineExceeded) || n > 2*softBatch/10_000 {
		t.Fatalf("%d records of 10 kB taken, %v", n, err)
	}
	close(h.release)
	if _, err := a.Append(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if all := values(t, c, "t"); len(all) != n+2 {
		t.Errorf("%d records, want %d", len(all), n+2)
	}
}

// Batches keep to the topic's limit, and a record that cannot is refused alone.
func TestLimitOfTopic(t *testing.T) {
	k := fake(t)
	const limit = 2000
	err := k.CreateTopic("t", 1, map[string]string{timestampType: "LogAppendTime", maxMessage: fmt.Sprint(limit),
		minInsync: "1"})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, k, Options{})
	ctx := context.Background()
	a := open(t, c, "t", 1)
	largest := 0
	for n := range limit + 1 { // up to the limit, byte by byte
		_, err := a.Append(ctx, &stream.Record{Value: make([]byte, n)})
		switch {
		case err == nil:
			largest = n
		case !errors.Is(err, stream.ErrTooLarge):
			t.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	all := values(t, c, "t")
	if len(all) != largest+2 || len(all[largest+1]) != largest {
		t.Errorf("%d records, the largest that was taken has %d bytes", len(all), largest)
	}
	if largest < limit-batchHead-20 {
		t.Errorf("the largest record has %d bytes", largest)
	}
}

// Open ends with its context, also while the broker says nothing.
func TestOpenIsCancelled(t *testing.T) {
	k := fake(t)
	for _, how := range []string{"context", "close"} {
		c := client(t, k, Options{})
		open(t, c, "t", 1)
		h := hold(k)
		ctx, cancel := context.WithCancel(context.Background())
		errs := make(chan error)
		go func() {
			_, _, err := c.Log().Open(ctx, "t", 0, stream.OpenOptions{})
			errs <- err
		}()
		<-h.arrived
		if how == "close" {
			c.Close()
		} else {
			cancel()
		}
		select {
		case err := <-errs:
			if err == nil {
				t.Errorf("%s: opened", how)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: Open goes on", how)
		}
		cancel()
		close(h.release)
		c.Close()
	}
}

// An owner that has long written nothing asks whether there is a later one, since the
// broker may have forgotten both.
func TestIdleOwnerAsks(t *testing.T) {
	k := fake(t)
	c := client(t, k, Options{})
	a := open(t, c, "t", 1)
	a.stirred = a.stirred.Add(-2 * idleCheck)
	fill(t, a, "a", 1) // no other is there
	if idle := wallClock().Sub(a.stirred); idle > idleCheck {
		t.Errorf("it has written nothing for %v", idle)
	}
	b := open(t, c, "t", 1)
	fill(t, b, "b", 1)
	h := hold(k)
	close(h.release)
	a.stirred = a.stirred.Add(-2 * idleCheck)
	mustBeFenced(t, a)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.counts) != 0 {
		t.Error("the broker was trusted to remember")
	}
}

// On a broker that forgets producers fast: the next owner is found by the log, and the
// one before it notices that there is one.
func TestKafkaRealForgets(t *testing.T) {
	kafkatest.Heavy(t)
	t.Parallel() // on a cluster of its own
	k := kafkatest.Start(t, kafkatest.Options{Properties: map[string]string{
		"producer.id.expiration.ms": "5000", "producer.id.expiration.check.interval.ms": "50"}})
	c := dialed(t, k.Brokers(), Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a := open(t, c, "t", 1)
	fill(t, a, "a", 1)
	b := open(t, c, "t", 1)
	fill(t, b, "b", 1)
	forgotten := func() {
		for known := true; known; {
			err := c.atLeader(ctx, &place{Topic: "t", Partition: 0}, func(cn *conn) (int16, error) {
				all, code, err := cn.producers(&place{Topic: "t", Partition: 0})
				known = len(all) > 0
				return code, err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	forgotten()
	fill(t, b, "c", 1) // the owner goes on, though it is not known any more
	forgotten()
	a.stirred = a.stirred.Add(-2 * idleCheck)
	mustBeFenced(t, a)
	forgotten()
	if last := open(t, c, "t", 1); last.epoch != b.epoch+1 {
		t.Errorf("epoch %d after %d", last.epoch, b.epoch)
	}
	mustBeFenced(t, b)
	want(t, values(t, c, "t"), "open a0 open b0 c0 open")
}
