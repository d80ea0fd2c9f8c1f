package kafka

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"hindsight/pkg/stream"
)

// produceZeros writes a compressed batch of n records of so many zeros each.
func produceZeros(t testing.TB, brokers []string, topic string, n, size int) {
	t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(time.Minute),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(64<<20),
		kgo.BrokerMaxWriteBytes(100<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range n {
		p.Produce(t.Context(), &kgo.Record{Topic: topic, Value: make([]byte, size)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A batch of a few KB may become as much as the limit says. Beyond that each of its records is
// read as the error, and what follows is read.
func TestInflatedBeyondTheLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, brokers []string) {
		c := dialed(t, brokers, Options{})
		a := open(t, c, "t", 1)
		const few = 100 // heads of records, and more
		produceZeros(t, brokers, "t", 2, maxInflated/2-few)
		produceZeros(t, brokers, "t", 2, maxInflated/2)
		fill(t, a, "after", 1)
		_, end, err := c.Log().Bounds(t.Context(), "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var last int64
		err = stream.Scan(t.Context(), c.Log(), "t", 0, 1, end, func(r *stream.Record) error {
			v := string(r.Value)
			if len(bytes.Trim(r.Value, "\x00")) == 0 {
				v = fmt.Sprint(len(r.Value))
			}
			if got = append(got, v); r.Offset != int64(len(got)) || r.Time < last {
				t.Errorf("record %d at %d, after %d", r.Offset, r.Time, last)
			}
			last = r.Time
			return nil
		})
		size := fmt.Sprint(maxInflated/2 - few)
		want := []string{size, size, errInflated.Error(), errInflated.Error(), "after0"}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, %.200v", err, got)
		}
	})
}
