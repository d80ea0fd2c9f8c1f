package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
)

// hum is a heartbeat so short that many fall between the records of a busy stream.
const hum = 100 * time.Microsecond

// write appends records to x in bursts that are acknowledged, until more says no to the
// offset of the last one, and then one that says "end".
func write(ctx context.Context, l *Log, more func(last int64) bool) error {
	last := int64(0)
	a, err := l.Writer(ctx, "x", 0, func(_ uint64, offset int64, _ error) { last = offset })
	if err != nil {
		return err
	}
	defer a.Close()
	for i := 0; more(last); i++ {
		for range 1 + i%4 {
			if _, err := a.Append(ctx, &stream.Record{Value: []byte("a record")}); err != nil {
				return err
			}
		}
		if err := a.Flush(ctx); err != nil {
			return err
		}
	}
	if _, err := a.Append(ctx, &stream.Record{Value: []byte("end")}); err != nil {
		return err
	}
	return a.Flush(ctx)
}

// follow reads x from 1 to its end, by one consumer: nothing looks as if it were missing.
func follow(ctx context.Context, l *Log, onDemand bool) error {
	r, err := l.Read(ctx, "x", 0, 1)
	if err != nil {
		return err
	}
	defer r.Close()
	r.(*reader).OnDemand(onDemand)
	inbox := r.(*reader).inbox
	var recs []stream.Record
	for next := int64(1); len(recs) == 0 || string(recs[len(recs)-1].Value) != "end"; {
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			return err
		}
		for _, rec := range recs {
			if rec.Offset != next {
				return fmt.Errorf("read %d, want %d", rec.Offset, next)
			}
			next++
		}
		if r.(*reader).inbox != inbox {
			return fmt.Errorf("at %d the consumer was given up", next)
		}
	}
	return nil
}

// listen counts the heartbeats that readers hear.
func listen(t *testing.T, url string) *atomic.Int64 {
	t.Helper()
	c := connect(t, url)
	heard := new(atomic.Int64)
	hear(t, c, "_INBOX.>", func(m *natsgo.Msg) {
		if m.Header.Get(headerStatus) == statusHeartbeat {
			heard.Add(1)
		}
	})
	return heard
}

// TestNoGap has readers at the end of a stream that is written to: what they hear between
// records never passes for missing ones.
func TestNoGap(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, l := topicX(t, Options{Heartbeat: hum})
	heard := listen(t, s.ClientURL())
	var readers sync.WaitGroup
	for i := range 3 {
		readers.Go(func() {
			if err := follow(ctx, l, i == 0); err != nil {
				t.Error(err)
			}
		})
	}
	if err := write(ctx, l, func(last int64) bool {
		return !t.Failed() && (last < 300 || heard.Load() < 500)
	}); err != nil {
		t.Error(err)
	}
	readers.Wait()
	t.Logf("%d heartbeats", heard.Load())
}

// TestNoGapOfReplicas has readers through three servers while the consumers' servers and
// the others are behind at times.
func TestNoGapOfReplicas(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader := c.leader(0)
	heard := listen(t, c.servers[leader].URL())
	var readers sync.WaitGroup
	for _, s := range c.servers {
		l := dialTest(t, s.URL(), Options{Heartbeat: hum, Replicas: 3}).Log()
		for i := range 4 {
			readers.Go(func() {
				if err := follow(ctx, l, i == 0); err != nil {
					t.Error(err)
				}
			})
		}
	}
	pauses := 0
	if err := write(ctx, c.clients[leader].Log(), func(last int64) bool {
		if last > int64(100*pauses) {
			pauses++
			s := c.servers[(leader+1+pauses%2)%3]
			s.Pause()
			time.AfterFunc(200*time.Millisecond, s.Resume)
		}
		return !t.Failed() && (pauses < 20 || heard.Load() < 10_000)
	}); err != nil {
		t.Error(err)
	}
	readers.Wait()
	t.Logf("%d heartbeats", heard.Load())
}

// TestNoGapBehindRetention has readers before records that are dropped, one after another
// and many at once: those are told as dropped.
func TestNoGapBehindRetention(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, _ := runServer(t, t.TempDir(), -1)
	l := dialTest(t, s.ClientURL(), Options{Heartbeat: hum, MaxBatch: 2}).Log()
	if err := l.Create(ctx, "x", 1, stream.TopicOptions{Trimmable: true, MaxBytes: 4_000}); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	var stop atomic.Bool
	bursts := int64(0)
	writer.Go(func() {
		err := write(ctx, l, func(last int64) bool {
			if bursts++; bursts%8 == 0 {
				if err := l.Trim(ctx, "x", 0, last-bursts%3); err != nil {
					t.Error(err)
				}
			}
			return !stop.Load()
		})
		if err != nil {
			t.Error(err)
		}
	})
	for dropped := range 10 {
		from := stream.Earliest
		if dropped%2 == 0 {
			var err error
			if from, _, err = l.Bounds(ctx, "x", 0); err != nil {
				t.Error(err)
			}
		}
		r, err := l.Read(ctx, "x", 0, from)
		for err == nil {
			_, err = r.Next(ctx, nil)
		}
		if r != nil {
			_ = r.Close()
		}
		if !errors.Is(err, stream.ErrTruncated) {
			t.Error(err)
		}
	}
	stop.Store(true)
	writer.Wait()
}

// TestGapToldByLeader has a reader whose records have been dropped, of which the server
// that answers first does not know yet.
func TestGapToldByLeader(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	const info = `{"config":{"num_replicas":3},"state":{"first_seq":%d,"last_seq":3},"cluster":{"leader":"%s",` +
		`"replicas":[{"active":1},{"active":1}]}}`
	infos := 0
	play(t, player, "fake.STREAM.INFO.x_0", func() string {
		if infos++; infos <= 4 { // to make two consumers, to see what they have passed, and more
			return fmt.Sprintf(info, 1, "")
		}
		return fmt.Sprintf(info, 4, "a")
	})
	play(t, player, "x.0", func() string {
		return `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"x_0","seq":0}`
	})
	play(t, player, "fake.CONSUMER.CREATE.x_0", func() string { return `{"name":"c"}` })
	hear(t, player, "fake.CONSUMER.MSG.NEXT.x_0.c", func(m *natsgo.Msg) {
		_ = m.RespondMsg(&natsgo.Msg{Header: natsgo.Header{headerStatus: {statusHeartbeat}, headerLastSeq: {"3"}}})
	})
	r, err := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake"}).Log().Read(ctx, "x", 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx, nil); !errors.Is(err, stream.ErrTruncated) {
		t.Error(err)
	}
}

// TestStuckReplica has a consumer whose server never gets a record that the stream's leader has: the reader
// goes on at another.
func TestStuckReplica(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, _ := runServer(t, t.TempDir(), -1)
	player := connect(t, s.ClientURL())
	play(t, player, "fake.STREAM.INFO.x_0", func() string {
		return `{"config":{"num_replicas":3},"state":{"first_seq":1,"last_seq":2},"cluster":{"leader":"a"}}`
	})
	consumers := 0
	play(t, player, "fake.CONSUMER.CREATE.x_0", func() string {
		consumers++
		return fmt.Sprintf(`{"name":"c%d"}`, consumers)
	})
	hear(t, player, "fake.CONSUMER.MSG.NEXT.x_0.c1", func(m *natsgo.Msg) {
		for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-tick {
			_ = m.RespondMsg(&natsgo.Msg{Header: natsgo.Header{headerStatus: {statusHeartbeat}, headerLastSeq: {"1"}}})
		}
	})
	hear(t, player, "fake.CONSUMER.MSG.NEXT.x_0.c2", func(*natsgo.Msg) { cancel() })
	r, err := dialTest(t, s.ClientURL(), Options{APIPrefix: "fake"}).Log().Read(ctx, "x", 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.(*reader).askEvery = 0
	if recs, err := r.Next(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it does not pull from another consumer: %v %v", recs, err)
	}
}
