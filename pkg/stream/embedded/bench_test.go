package embedded_test

import (
	"context"
	"slices"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/streamtest"
)

// conn is a bare connection to e, in process.
func conn(b testing.TB, e *embedded.Engine) *natsgo.Conn {
	b.Helper()
	c, err := natsgo.Connect("", natsgo.InProcessServer(e.Server()), natsgo.UserInfo(e.Access().User,
		e.Access().Password))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return c
}

// floor is bare NATS on the same server: records stored without acknowledgement,
// order or owner, and messages that pass without being stored.
func floor(e func() *embedded.Engine) streamtest.Floor {
	return streamtest.Floor{
		Append: func(b *testing.B, n int, value []byte) time.Duration { return storeUnasked(b, e(), n, value) },
		Read: func(b *testing.B, n int, value []byte) time.Duration { // through the server to a subscriber
			from, to := conn(b, e()), conn(b, e())
			got := make(chan *natsgo.Msg, 1<<16)
			if _, err := to.ChanSubscribe("floor", got); err != nil {
				b.Fatal(err)
			}
			if err := to.Flush(); err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			go func() {
				for i := range n {
					_ = from.Publish("floor", value)
					for i%1024 == 0 && len(got) > 1<<15 { // do not overrun the subscriber
						time.Sleep(time.Millisecond)
					}
				}
			}()
			for range n {
				<-got
			}
			return time.Since(start)
		},
		Tail: func(b *testing.B) func([]byte) {
			from, to := conn(b, e()), conn(b, e())
			got := make(chan *natsgo.Msg, 16)
			if _, err := to.ChanSubscribe("floor", got); err != nil {
				b.Fatal(err)
			}
			if err := to.Flush(); err != nil {
				b.Fatal(err)
			}
			return func(value []byte) {
				_ = from.Publish("floor", value)
				<-got
			}
		},
	}
}

func BenchmarkLog(b *testing.B) {
	streamtest.BenchmarkLog(b, func(t testing.TB) *streamtest.Harness {
		e := open(t, embedded.Options{Dir: t.TempDir(), DontListen: true})
		return &streamtest.Harness{
			Log:   e.Log(),
			Close: func(t testing.TB) { closeEngine(t, e) },
			Floor: floor(func() *embedded.Engine { return e }),
		}
	})
}

// storeUnasked stores n values in a stream without asking for acknowledgements.
func storeUnasked(b *testing.B, e *embedded.Engine, n int, value []byte) time.Duration {
	b.Helper()
	const part, parts = 5000, 10 // as many as a stream's queue holds without loss, some times
	ctx := context.Background()
	if err := e.Log().Create(ctx, "floor", 1, stream.TopicOptions{}); err != nil {
		b.Fatal(err)
	}
	c := conn(b, e)
	start := time.Now()
	for i := range parts {
		for range part {
			if err := c.Publish("floor.0", value); err != nil {
				b.Fatal(err)
			}
		}
		for next := int64(0); next <= int64(part*(i+1)); {
			var err error
			if _, next, err = e.Log().Bounds(ctx, "floor", 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	return time.Duration(float64(time.Since(start)) * float64(n) / (part * parts))
}

// BenchmarkFour is what the whole loop is measured against: four appenders at
// once, each record read by one reader.
func BenchmarkFour(b *testing.B) {
	ctx := context.Background()
	e := open(b, embedded.Options{Dir: b.TempDir(), DontListen: true})
	defer closeEngine(b, e)
	l := e.Log()
	if err := l.Create(ctx, "four", 4, stream.TopicOptions{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	start := time.Now()
	for b.Loop() {
		n += 4 * fourRound(b, l)
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "records/s")
	b.ReportMetric(float64(n/4)/time.Since(start).Seconds(), "rounds/s")
}

// fourRound appends to and reads from four partitions and returns how many
// records each had.
func fourRound(b *testing.B, l stream.Log) int {
	const each = 20_000
	ctx := context.Background()
	errs := make(chan error, 8)
	for p := range 4 {
		_, next, err := l.Bounds(ctx, "four", p)
		if err != nil {
			b.Fatal(err)
		}
		go func() { errs <- appendEach(ctx, l, p, each) }()
		go func() { errs <- readEach(ctx, l, p, next, each+1) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	return each
}

func appendEach(ctx context.Context, l stream.Log, p, n int) error {
	a, _, err := l.Open(ctx, "four", p, stream.OpenOptions{})
	if err != nil {
		return err
	}
	defer a.Close()
	r := &stream.Record{Value: make([]byte, 200)}
	for range n {
		if _, err := a.Append(ctx, r); err != nil {
			return err
		}
	}
	return a.Flush(ctx)
}

func readEach(ctx context.Context, l stream.Log, p int, from int64, n int) error {
	r, err := l.Read(ctx, "four", p, from)
	if err != nil {
		return err
	}
	defer r.Close()
	var recs []stream.Record
	for n > 0 {
		if recs, err = r.Next(ctx, recs[:0]); err != nil {
			return err
		}
		n -= len(recs)
	}
	return nil
}

// BenchmarkRequest is the round trip of an echo over loopback, as a user's client
// has it, against a bare subscription on the same server.
func BenchmarkRequest(b *testing.B) {
	e := open(b, embedded.Options{Dir: b.TempDir(), Port: -1})
	defer closeEngine(b, e)
	stop, err := e.Bus().Serve("shop.decide", "q", func(m stream.Message) { _ = m.Respond(m.Data) })
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	bare := conn(b, e)
	if _, err := bare.QueueSubscribe("bare.decide", "q", func(m *natsgo.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	if err := bare.Flush(); err != nil {
		b.Fatal(err)
	}
	client, err := natsgo.Connect(e.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	data := make([]byte, 300)
	took := map[string][]time.Duration{}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range []string{"shop.decide", "bare.decide"} {
			start := time.Now()
			if _, err := client.Request(s, data, 10*time.Second); err != nil {
				b.Fatal(err)
			}
			took[s] = append(took[s], time.Since(start))
		}
	}
	ours, floor := median(took["shop.decide"]), median(took["bare.decide"])
	b.ReportMetric(float64(ours.Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(ours)/float64(floor), "x-floor-p50")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkBounds is one fetch of a partition's ends, against a bare request that
// the server answers itself.
func BenchmarkBounds(b *testing.B) {
	ctx := context.Background()
	e := open(b, embedded.Options{Dir: b.TempDir(), DontListen: true})
	defer closeEngine(b, e)
	if err := e.Log().Create(ctx, "a", 1, stream.TopicOptions{}); err != nil {
		b.Fatal(err)
	}
	c := conn(b, e)
	var ours, floor time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if _, _, err := e.Log().Bounds(ctx, "a", 0); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		start = time.Now()
		if _, err := c.Request("$SYS.REQ.USER.INFO", nil, 10*time.Second); err != nil {
			b.Fatal(err)
		}
		floor += time.Since(start)
	}
	b.ReportMetric(float64(ours)/float64(floor), "x-floor")
}
