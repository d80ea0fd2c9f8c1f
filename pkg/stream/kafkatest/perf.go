package kafkatest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// producerProperties are what kafka-producer-perf-test is fast with. Which of them is the
// better one depends on what else the processors do.
var producerProperties = []string{
	"acks=all batch.size=16384 linger.ms=5",
	"acks=all batch.size=131072 linger.ms=5 buffer.memory=67108864",
}

var producedLine = regexp.MustCompile(`(?m)([0-9.]+) records/sec .*99.9th`)

// ProducerPerf returns how many records of so many bytes kafka-producer-perf-test appends to a topic of one partition a
// second with acks=all: the better of its settings. Each begins with warmup records that do not count.
func (c *Cluster) ProducerPerf(topic string, size, warmup, records int) float64 {
	c.t.Helper()
	// From a file the tool takes ready bytes; otherwise it draws random letters a record.
	payload := filepath.Join(c.t.TempDir(), "payload")
	if err := os.WriteFile(payload, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		c.t.Fatal(err)
	}
	best := 0.0
	for _, properties := range producerProperties {
		best = max(best, c.producerPerf(topic, payload, warmup, records, properties))
	}
	return best
}

func (c *Cluster) producerPerf(topic, payload string, warmup, records int, properties string) float64 {
	c.t.Helper()
	args := []string{"--topic", topic, "--bootstrap-server", c.Brokers()[0], "--throughput", "-1",
		"--payload-file", payload, "--num-records", strconv.Itoa(warmup + records), "--warmup-records",
		strconv.Itoa(warmup)}
	for _, p := range strings.Fields(properties) {
		args = append(args, "--command-property", p)
	}
	out, err := c.Tool(c.t.Context(), "org.apache.kafka.tools.ProducerPerformance", args...)
	if err != nil {
		c.t.Fatal(err)
	}
	m := producedLine.FindAllSubmatch(out, -1)
	if len(m) != 2 { // all, and all after the warm-up
		c.t.Fatalf("kafka-producer-perf-test said\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(m[1][1]), 64)
	if err != nil {
		c.t.Fatal(fmt.Errorf("kafka-producer-perf-test: %w", err))
	}
	return rate
}
