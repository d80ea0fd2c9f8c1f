package kafka

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
)

// BenchmarkFetch reads records of 200 bytes with our reader and with kafka-go's
// Client.Fetch in turn. x-client is how many times as long the latter takes.
func BenchmarkFetch(b *testing.B) {
	b.Run("fake", func(b *testing.B) {
		k := fake(b)
		benchmarkFetch(b, k.ListenAddrs())
	})
	b.Run("real", func(b *testing.B) {
		brokers := kafkatest.Shared(b).Brokers()
		deleteTopics(b, Options{Brokers: brokers})
		benchmarkFetch(b, brokers)
	})
}

func benchmarkFetch(b *testing.B, brokers []string) {
	const stored = 200_000
	c := dialed(b, brokers, Options{})
	ctx := context.Background()
	a := open(b, c, "t", 1)
	r := &stream.Record{Key: []byte("0123456789abcdef"), Value: make([]byte, 200)}
	for range stored {
		if _, err := a.Append(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(brokers...), Timeout: 10 * time.Second, Transport: transport}
	var own, theirs time.Duration
	rounds := 0
	for b.Loop() {
		start := time.Now()
		readOwn(b, c, stored+1)
		own += time.Since(start)
		start = time.Now()
		readClient(b, client, stored+1)
		theirs += time.Since(start)
		rounds++
	}
	b.ReportMetric(float64(rounds*stored)/own.Seconds(), "records/s")
	b.ReportMetric(theirs.Seconds()/own.Seconds(), "x-client")
}

func readOwn(b *testing.B, c *Client, n int) {
	b.Helper()
	r, err := c.Log().Read(context.Background(), "t", 0, stream.Earliest)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	var recs []stream.Record
	for got := 0; got < n; got += len(recs) {
		if recs, err = r.Next(context.Background(), recs[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// readClient reads in the way that is fastest with Client.Fetch: into one buffer.
func readClient(b *testing.B, client *kafkago.Client, n int) {
	b.Helper()
	buf := make([]byte, 0, 1024)
	for offset := int64(0); offset < int64(n); {
		f, err := client.Fetch(context.Background(), &kafkago.FetchRequest{Topic: "t", Offset: offset, MinBytes: 1,
			MaxBytes: readBytes, MaxWait: time.Second})
		if err != nil || f.Error != nil {
			b.Fatal(err, f)
		}
		for {
			rec, err := f.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			for _, part := range []io.Reader{rec.Key, rec.Value} {
				if part != nil {
					for k, err := 0, error(nil); err == nil; {
						k, err = part.Read(buf[:cap(buf)])
						_ = k
					}
				}
			}
			offset = rec.Offset + 1
		}
	}
}
