package inject

import (
	"math"
	"strings"
	"testing"

	"hindsight/internal/access"
	"hindsight/internal/dataset/testkit"
	"hindsight/internal/delay"
	"hindsight/internal/engine"
	"hindsight/internal/logs"
	"hindsight/internal/loop"
	"hindsight/internal/replay"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/natstest"
)

func TestMain(m *testing.M) { natstest.TestMain(m) }

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

// TestForeignDecision: what somebody else wrote into decisions is passed over, as the system does, and that contexts of
// somebody else were decided is told. Of several partitions decisions may come early, and wait for those before them.
func TestForeignDecision(t *testing.T) {
	var in Injection
	if err := in.decision(t.Context(), &stream.Record{Value: []byte(`{"id":"c1","loss":0}`)}); err != nil {
		t.Error(err)
	}
	env := testLog(t, lessonText(4), logs.Mapping{Time: "at", Action: "who", Reward: "paid", ID: "id"})
	decided := func(id string) *stream.Record {
		d := &codec.Decision{ID: id, N: 7, Epoch: 1, Actions: []string{"a"},
			Propensities: []float64{1}, Context: []byte(`{"actions":["a"]}`)}
		return &stream.Record{Value: codec.AppendDecision(nil, d)}
	}
	for _, c := range []struct {
		partitions int
		ids        []string
		early      int  // of them, those that wait
		foreign    bool // the last one is
	}{{1, []string{"round-1"}, 0, true}, {1, []string{"round-3"}, 0, true}, {1, []string{"x"}, 0, true},
		{2, []string{"round-1"}, 1, false}, {2, []string{"round-2", "round-1"}, 2, false},
		{2, []string{"round-1", "round-1"}, 1, true}, {2, []string{"round-3"}, 0, true}} {
		in := Injection{Rounds: env, rounds: env.Reader(), Partitions: c.partitions, sent: 3, Rules: &loop.Rules{},
			early: map[int]stream.Record{}}
		in.Match = replay.NewMatch(env, new(delay.Delays), in.Rules.Range)
		for i, id := range c.ids {
			err := in.decision(t.Context(), decided(id))
			if foreign := c.foreign && i == len(c.ids)-1; (err != nil) != foreign || foreign &&
				!strings.Contains(err.Error(), `decision 7 is of round "`+id+`", not "round-0": someone else writes`) {
				t.Errorf("%v in %d partitions: %v", c.ids, c.partitions, err)
			}
		}
		if len(in.early) != c.early {
			t.Errorf("%v: %d wait", c.ids, len(in.early))
		}
	}
}
