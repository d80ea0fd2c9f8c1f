package inject

import (
	"math"
	"os"
	"testing"

	"hindsight/internal/access"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/engine"
	"hindsight/internal/logs"
	"hindsight/internal/replay"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) {
	natstest.Main()
	os.Exit(m.Run())
}

func testLog(t *testing.T, text string, m logs.Mapping) *replay.Rounds {
	t.Helper()
	return replay.OfTable(testkit.ParseLog(t, text, m))
}

func opened(t *testing.T, log string) stream.Log {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Options{Log: log, Listen: "127.0.0.1:0", Requests: access.None})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.Log
}

// scanned calls f with the records of a topic.
func scanned(t *testing.T, log stream.Log, topic string, f func(r *stream.Record) error) {
	t.Helper()
	err := stream.Scan(t.Context(), log, topic, 0, stream.Earliest, math.MaxInt64, func(r *stream.Record) error {
		if r.Type != "" {
			return nil
		}
		return f(r)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestForeignDecision: what somebody else wrote into decisions is passed over, as the system does.
func TestForeignDecision(t *testing.T) {
	var in Injection
	if err := in.decision(t.Context(), &stream.Record{Value: []byte(`{"id":"c1","loss":0}`)}); err != nil {
		t.Error(err)
	}
}
