package kafka

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hindsight/pkg/stream"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/streamtest"
)

// Sizes of the comparison with Kafka's own tools.
const (
	perfBytes   = 200
	perfRecords = 1_000_000
	perfWarmup  = 300_000 // which the tool does not count, for its compiler
)

// BenchmarkKafkaRealTools appends and reads records of 200 bytes in one partition of a
// real broker through this package, in turn with kafka-producer-perf-test and
// kafka-consumer-perf-test, which have settings they are fast with. x-append and x-read
// are our records a second by theirs, the median of the rounds (-benchtime=5x makes 5).
func BenchmarkKafkaRealTools(b *testing.B) {
	k := kafkatest.Start(b, kafkatest.Options{HeapMB: 1024, Optimized: true})
	c, err := Dial(b.Context(), Options{Brokers: k.Brokers()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	rates := map[string][]float64{}
	add := func(name string, rate float64) { rates[name] = append(rates[name], rate) }
	var appendRatios, readRatios []float64
	round := 0
	for b.Loop() {
		topic := fmt.Sprintf("perf%d", round)
		k.CreateTopic(topic, 1, "message.timestamp.type", "LogAppendTime")
		k.CreateTopic("tool"+topic, 1, "message.timestamp.type", "LogAppendTime")
		measures := []func(){
			func() { add("append", appendMany(b, c, topic, perfRecords)) },
			func() { add("tool-append", k.ProducerPerf("tool"+topic, perfBytes, perfWarmup, perfRecords)) },
			func() { add("read", readMany(b, c, topic, perfRecords)) },
			func() { add("tool-read", toolRead(b, k, topic)) },
		}
		if round%2 == 1 { // whoever comes second finds a warmer broker
			measures[0], measures[1], measures[2], measures[3] = measures[1], measures[0], measures[3], measures[2]
		}
		for _, m := range measures {
			m()
		}
		appendRatios = append(appendRatios, rates["append"][round]/rates["tool-append"][round])
		readRatios = append(readRatios, rates["read"][round]/rates["tool-read"][round])
		k.DeleteTopic(topic)
		k.DeleteTopic("tool" + topic)
		round++
	}
	b.ReportMetric(0, "ns/op")
	for name, r := range rates {
		b.ReportMetric(medianOf(r), name+"/s")
	}
	b.ReportMetric(medianOf(appendRatios), "x-append")
	b.ReportMetric(medianOf(readRatios), "x-read")
}

// BenchmarkKafkaReal is the suite's on a real broker. The floor of tail is the trip of a
// record with another client.
func BenchmarkKafkaReal(b *testing.B) {
	k := kafkatest.Start(b, kafkatest.Options{HeapMB: 1024, Optimized: true})
	fresh := onCluster(k)
	streamtest.BenchmarkLog(b, func(t testing.TB) *streamtest.Harness {
		h := fresh(t)
		h.Floor.Tail = func(*testing.B) func([]byte) { return k.Trip("floor") }
		return h
	})
}

func medianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// appendMany returns records a second, from the first Append until all are stored. Like
// the tool's they are after others that do not count.
func appendMany(b *testing.B, c *Client, topic string, n int) float64 {
	b.Helper()
	ctx := context.Background()
	a, _, err := c.Log().Open(ctx, topic, 0, stream.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	r := &stream.Record{Value: make([]byte, perfBytes)}
	var start time.Time
	for i := range perfWarmup + n {
		if i == perfWarmup {
			if err := a.Flush(ctx); err != nil {
				b.Fatal(err)
			}
			start = time.Now()
		}
		if _, err := a.Append(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
	if err := a.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	return float64(n) / time.Since(start).Seconds()
}

// readMany returns records a second, from opening the reader.
func readMany(b *testing.B, c *Client, topic string, n int) float64 {
	b.Helper()
	start := time.Now()
	r, err := c.Log().Read(context.Background(), topic, 0, stream.Earliest)
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
	return float64(n) / time.Since(start).Seconds()
}

func toolRead(b *testing.B, k *kafkatest.Cluster, topic string) float64 {
	b.Helper()
	args := []string{"--topic", topic, "--bootstrap-server", k.Brokers()[0], "--num-records", strconv.Itoa(perfRecords),
		"--hide-header"}
	for _, p := range strings.Fields(consumerProperties) {
		args = append(args, "--command-property", p)
	}
	out, err := k.Tool(b.Context(), "org.apache.kafka.tools.ConsumerPerformance", args...)
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	cells := strings.Split(lines[len(lines)-1], ", ")
	if len(cells) != 10 {
		b.Fatalf("kafka-consumer-perf-test said\n%s", out)
	}
	return rate(b, []byte(cells[9])) // without the time of joining its group
}

func rate(b *testing.B, text []byte) float64 {
	b.Helper()
	f, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// consumerProperties are what kafka-consumer-perf-test is fast with.
const consumerProperties = "max.poll.records=5000 max.partition.fetch.bytes=4194304 fetch.min.bytes=65536"
