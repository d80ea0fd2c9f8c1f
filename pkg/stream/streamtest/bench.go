package streamtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"hindsight/pkg/stream"
)

// Floor is the work without which a log could not do its own: what the figures of
// [BenchmarkLog] are divided by. Each may be nil.
type Floor struct {
	Append func(b *testing.B, n int, value []byte) time.Duration // move n values to where they are stored
	Read   func(b *testing.B, n int, value []byte) time.Duration // move n values to who reads
	Tail   func(b *testing.B) func(value []byte)                 // one trip of a value from writer to reader
}

// recordBytes is the size of a benchmark's records.
const recordBytes = 200

// BenchmarkLog measures appending, reading and the delay between them.
func BenchmarkLog(b *testing.B, open func(t testing.TB) *Harness) {
	b.Run("append=writer", func(b *testing.B) { benchmarkAppend(b, open(b), false) })
	b.Run("append=owner", func(b *testing.B) { benchmarkAppend(b, open(b), true) })
	b.Run("read", func(b *testing.B) { benchmarkRead(b, open(b)) })
	b.Run("tail", func(b *testing.B) { benchmarkTail(b, open(b)) })
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func appender(b *testing.B, h *Harness, fenced bool) stream.Appender {
	b.Helper()
	ctx := context.Background()
	must(b, h.Log.Create(ctx, "bench", 1, stream.TopicOptions{}))
	var a stream.Appender
	var err error
	if fenced {
		a, _, err = h.Log.Open(ctx, "bench", 0, stream.OpenOptions{})
	} else {
		a, err = h.Log.Writer(ctx, "bench", 0, nil)
	}
	must(b, err)
	return a
}

func benchmarkAppend(b *testing.B, h *Harness, fenced bool) {
	defer h.Close(b)
	ctx := context.Background()
	a := appender(b, h, fenced)
	r := &stream.Record{Value: make([]byte, recordBytes)}
	b.ReportAllocs()
	n := 0
	start := time.Now()
	for b.Loop() {
		_, err := a.Append(ctx, r)
		must(b, err)
		n++
	}
	must(b, a.Flush(ctx))
	report(b, n, time.Since(start), h.Floor.Append)
}

func benchmarkRead(b *testing.B, h *Harness) {
	defer h.Close(b)
	ctx := context.Background()
	a := appender(b, h, true)
	r := &stream.Record{Value: make([]byte, recordBytes)}
	const stored = 100_000
	for range stored {
		_, err := a.Append(ctx, r)
		must(b, err)
	}
	must(b, a.Flush(ctx))
	b.ReportAllocs()
	n := 0
	start := time.Now()
	var rd stream.Reader
	var recs []stream.Record
	at := 0 // next of recs
	left := 0
	for b.Loop() {
		if left == 0 {
			if rd != nil {
				must(b, rd.Close())
			}
			var err error
			rd, err = h.Log.Read(ctx, "bench", 0, stream.Earliest)
			must(b, err)
			left = stored + 1
		}
		if at == len(recs) {
			var err error
			recs, err = rd.Next(ctx, recs[:0])
			must(b, err)
			at = 0
		}
		at++
		left--
		n++
	}
	must(b, rd.Close())
	report(b, n, time.Since(start), h.Floor.Read)
}

// report adds records per second and the ratio to the floor.
func report(b *testing.B, n int, took time.Duration, floor func(*testing.B, int, []byte) time.Duration) {
	b.ReportMetric(float64(n)/took.Seconds(), "records/s")
	if floor != nil && n > 1000 {
		b.ReportMetric(took.Seconds()/floor(b, n, make([]byte, recordBytes)).Seconds(), "x-floor")
	}
}

// benchmarkTail measures from before Append to after Next, one record at a time.
func benchmarkTail(b *testing.B, h *Harness) {
	defer h.Close(b)
	ctx := context.Background()
	a := appender(b, h, true)
	_, next, err := h.Log.Bounds(ctx, "bench", 0)
	must(b, err)
	rd, err := h.Log.Read(ctx, "bench", 0, next)
	must(b, err)
	r := &stream.Record{Value: make([]byte, recordBytes)}
	var recs []stream.Record
	took := make([]time.Duration, 0, 1<<16)
	for b.Loop() {
		start := time.Now()
		_, err := a.Append(ctx, r)
		must(b, err)
		recs, err = rd.Next(ctx, recs[:0])
		must(b, err)
		took = append(took, time.Since(start))
	}
	must(b, rd.Close())
	p50 := quantile(took, 0.5)
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(quantile(took, 0.99).Microseconds()), "p99-µs")
	if h.Floor.Tail != nil {
		trip := h.Floor.Tail(b)
		took = took[:0]
		for range 2000 {
			start := time.Now()
			trip(r.Value)
			took = append(took, time.Since(start))
		}
		b.ReportMetric(float64(p50)/float64(quantile(took, 0.5)), "x-floor-p50")
	}
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}
