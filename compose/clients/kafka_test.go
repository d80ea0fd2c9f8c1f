package clients

import (
	"encoding/json"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hindsight/internal/engine"
	"hindsight/internal/model"
	"hindsight/internal/modelfile"
	"hindsight/internal/replay"
	"hindsight/internal/service"
	"hindsight/internal/testkit"
	"hindsight/internal/topics"
	"hindsight/pkg/stream/kafkatest"
)

// TestKcat runs the commands that the page on Kafka shows, with the model they name: kcat
// writes contexts, reads decisions, and writes outcomes.
func TestKcat(t *testing.T) {
	for _, c := range [][]string{{"kcat", "-V"}, {"python3", "-c", "import msgpack"}} {
		if err := exec.Command(c[0], c[1:]...).Run(); err != nil {
			t.Skip("kcat or Python's msgpack is not here: apt install kcat python3-msgpack")
		}
	}
	page := func(mark string) string { return testkit.Block(t, "../../docs/kafka.md", mark) }
	playKcat(t, page("contexts"), page("decisions"), page("outcomes"), 1, 1)
}

// playKcat runs the commands of a page: so many of its rounds are observed, so many are
// withdrawn.
func playKcat(t *testing.T, contexts, decisions, outcomes string, observed, withdrawn int) {
	addrs, _ := kafkatest.Fake(t, 1)
	log := startKafkaSystem(t, addrs[0])
	sh := func(commands string) string {
		return run(t, "sh", "-ec", "cd ../..\n"+strings.ReplaceAll(commands, "localhost:9092", addrs[0]))
	}
	rounds := observed + withdrawn
	sh(contexts)
	var out string
	eventually(t, "a decision of each context", func() bool {
		out = sh(decisions)
		return strings.Count(out, "\n") == rounds
	})
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var d struct {
			ID, Action string
			Propensity float64
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil || d.ID != "c1" && d.ID != "c2" || d.Action == "" ||
			d.Propensity <= 0 {
			t.Errorf("%s: %v", line, err)
		}
	}
	sh(outcomes)
	eventually(t, "a feedback of each", func() bool {
		s, err := replay.Summarize(t.Context(), log.Log, "shop", "none", model.Epoch)
		return err == nil && s.Rounds == int64(rounds) && s.Fates.Observed == int64(observed) &&
			s.Fates.Withdrawn == int64(withdrawn)
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

// startKafkaSystem runs a decider and a joiner of the example's model on brokers.
func startKafkaSystem(t *testing.T, brokers string) *engine.Engine {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(t.Context(), engine.Options{Log: "kafka://" + brokers, Requests: "none", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	source, err := modelfile.Load("../shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := topics.Create(t.Context(), e.Log, "shop", 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	stop, err := service.Start(t.Context(), service.SystemConfig{Log: e.Log, Name: "shop", Source: source,
		Build: model.Epoch, Seed: replay.SecretSeed(1), Partitions: 1, Owner: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		e.Close()
	})
	return e
}
