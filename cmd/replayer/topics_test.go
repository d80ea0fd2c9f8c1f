package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hindsight/internal/daemon"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/natstest"
)

// TestTopicsOfServers: topics on a server and on a broker are data like a file, and are
// followed there.
func TestTopicsOfServers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers and brokers: go test without -short does")
	}
	for _, encoding := range codec.Encodings() {
		t.Run("nats/"+encoding, func(t *testing.T) {
			t.Parallel()
			topicsOf(t, natstest.Start(t, natstest.Options{}).URL(), encoding)
		})
		t.Run("kafka/"+encoding, func(t *testing.T) {
			t.Parallel()
			addrs, _ := kafkatest.Fake(t, 1)
			topicsOf(t, "kafka://"+strings.Join(addrs, ","), encoding)
		})
	}
}

// TestKafkaRealTopics is the same on a real broker.
func TestKafkaRealTopics(t *testing.T) {
	kafkatest.Heavy(t)
	for _, encoding := range codec.Encodings() {
		topicsOf(t, "kafka://"+strings.Join(kafkatest.Shared(t).Brokers(), ","), encoding)
	}
}

// topicsOf plays to a log on servers or brokers, in two partitions, then reads its topics
// as data and follows them.
func topicsOf(t *testing.T, log, encoding string) {
	const rounds = 50 // as many as replayed looks at
	dir := t.TempDir()
	m := writeFile(t, "m.yaml", "name: from"+encoding+"\nactions: [a1, a2, a3]\nwindow: 50 rounds\n")
	r := object(t, "inject", "--env", "linear:2,3", "--rounds", fmt.Sprint(rounds), "--model", m, "--delays",
		"constant:3",
		"--partitions", "2", "--encoding", encoding, "--json", "--log", log, "--seed-file", filepath.Join(dir, "seed"))
	if got := number(t, r, "fates.observed"); got != rounds {
		t.Fatalf("%v rounds with an outcome: %v", got, r)
	}
	out := filepath.Join(dir, "log.jsonl")
	a := object(t, "convert", log, "--name", "from"+encoding, "--to", "jsonl", "--out", out, "--json")
	if number(t, a, "events") != rounds || number(t, a, "dangling") != rounds || need(t, a, "format") != "topics" {
		t.Errorf("convert: %v", a)
	}
	args := []string{"--policy", "uniform", "--policy", "logging", "--policy", "learner:greedy", "--learner", "greedy"}
	topics := replayed(t, append([]string{"--name", "from" + encoding, "--data", log}, args...)...)
	if file := replayed(t, append([]string{"--data", out}, args...)...); !reflect.DeepEqual(topics, file) {
		t.Errorf("topics: %v\nfile: %v", topics, file)
	}
	// What the log says of the policy that made it is what the learner lost.
	policies := topics["policies"].([]any)
	if loss := number(t, r, "mean_loss"); !near(number(t, policies[1].(map[string]any), "estimates.ips.value"), loss) {
		t.Errorf("logging lost %v: %v", loss, policies[1])
	}
	// A class is fitted from topics as it is from the file, and windows are priced.
	fitted := func(data ...string) any {
		o := object(t, append([]string{"fit", "--fit-rows", "40", "--functions", "6", "--out",
			filepath.Join(dir, "class.jsonl"), "--json"}, data...)...)
		if number(t, o, "rows") == 0 || len(need(t, o, "played").([]any)) == 0 {
			t.Errorf("%v", o)
		}
		return need(t, o, "functions")
	}
	if topics, file := fitted("--data", log, "--name", "from"+encoding), fitted("--data",
		out); !reflect.DeepEqual(topics, file) {
		t.Errorf("fitted from topics: %v\nfrom the file: %v", topics, file)
	}
	if o := object(t, "window", "--data", log, "--name", "from"+encoding, "--windows", "2,10", "--seeds", "1",
		"--json"); len(need(t, o, "windows").([]any)) != 2 {
		t.Errorf("window: %v", o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sum := &untilSum{t: t, want: rounds, stop: cancel}
	var stderr bytes.Buffer
	env := &daemon.Env{Args: []string{"tail", "--log", log, "--name", "from" + encoding, "--last", "-1",
		"--every", "50ms", "--json"}, Getenv: func(string) string { return "" },
		Stdin: strings.NewReader(""), Stdout: sum, Stderr: &stderr}
	if code := daemon.Run(ctx, env, command(env)); code != daemon.Done || sum.decided != rounds ||
		sum.released != rounds || sum.losses == nil {
		t.Errorf("tail: exit code %d, %v decisions and %v feedbacks of %d; %s%s", code, sum.decided,
			sum.released, rounds, &sum.text, &stderr)
	}
}

// near reports whether two figures are equal but for rounding.
func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
