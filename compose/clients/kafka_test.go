package clients

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/pkg/stream/kafkatest"
)

// commands returns the commands of the page between two marks, for other brokers.
func commands(t *testing.T, mark, brokers string) string {
	t.Helper()
	page, err := os.ReadFile("../KAFKA.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- "+mark+" -->\n```sh\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok || !strings.Contains(block, "localhost:9092") {
		t.Fatalf("the page has no commands marked %q", mark)
	}
	return strings.ReplaceAll(block, "localhost:9092", brokers)
}

// TestKcat runs the commands that the page on Kafka shows: kcat writes contexts, reads
// decisions, and writes outcomes.
func TestKcat(t *testing.T) {
	for _, c := range [][]string{{"kcat", "-V"}, {"python3", "-c", "import msgpack"}} {
		if err := exec.Command(c[0], c[1:]...).Run(); err != nil {
			t.Skip("kcat or Python's msgpack is not here: apt install kcat python3-msgpack")
		}
	}
	addrs, _ := kafkatest.Fake(t, 1)
	log := startKafkaSystem(t, addrs[0])
	sh := func(mark string) string { return run(t, "sh", "-ec", commands(t, mark, addrs[0])) }
	sh("contexts")
	var out string
	eventually(t, "two decisions", func() bool { out = sh("decisions"); return strings.Count(out, "\n") == 2 })
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var d struct {
			ID, Action string
			Propensity float64
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.ID != "c1" && d.ID != "c2" || d.Action == "" || d.Propensity <= 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
	sh("outcomes")
	eventually(t, "two feedbacks", func() bool {
		s, err := replay.Summarize(t.Context(), log.Log, "shop", "none", model.Epoch)
		return err == nil && s.Rounds == 2 && s.Fates.Observed == 1 && s.Fates.Withdrawn == 1
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// startKafkaSystem runs a decider and a joiner of the model shop on brokers.
func startKafkaSystem(t *testing.T, brokers string) *engine.Engine {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(t.Context(), engine.Options{Log: "kafka://" + brokers, Requests: "none", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	m := model.Default()
	m.Name = "shop"
	source, err := modelfile.Source(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := service.CreateTopics(t.Context(), e.Log, "shop", 1, service.Retention{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- service.RunSystem(ctx, service.SystemConfig{Log: e.Log, Name: "shop", Source: source, Build: model.Epoch,
			Seed: replay.SecretSeed(1), Partitions: 1, Owner: "test", Logger: quiet}, func() { close(ready) })
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		e.Close()
	})
	return e
}
