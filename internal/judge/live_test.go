package judge

import (
	"testing"
	"time"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestLive: policies are judged on what a live system decided from one log time to another.
func TestLive(t *testing.T) {
	now := int64(0)
	log := mem.New(mem.Options{Clock: func() int64 { now++; return now }})
	judge := func(from, to int64) (*OffPolicy, error) {
		return Live(t.Context(), log, "m", time.Unix(0, from), time.Unix(0, to), loop.Range{Min: -1, Max: 3})
	}
	if _, err := judge(0, 9); err == nil {
		t.Error("a log without topics is judged on")
	}
	for _, topic := range []string{"m.decisions", "m.outcomes", "m.rejects"} {
		if err := log.Create(t.Context(), topic, 1, stream.TopicOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put := func(topic string, value []byte) {
		w, err := log.Writer(t.Context(), topic, 0, nil)
		if err == nil {
			_, err = w.Append(t.Context(), &stream.Record{Value: value})
		}
		if err == nil {
			err = w.Flush(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	for n, id := range []string{"a", "b", "c"} { // at times 1, 3 and 5
		d := codec.Decision{N: int64(n + 1), ID: id, Epoch: 1, Actions: []string{"x", "y"},
			Propensities: []float64{.5, .5}, Context: codec.AppendContext(nil, &codec.Context{ID: id})}
		put("m.decisions", codec.AppendDecision(nil, &d))
		put("m.outcomes", codec.AppendOutcome(nil, &codec.Outcome{ID: id, Kind: codec.Reward, Value: float64(n)}))
	}
	if _, err := judge(8, 9); err == nil {
		t.Error("there is nothing to judge on")
	}
	o, err := judge(3, 6)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := o.Evaluate("always:x", o.Options()); err != nil || e.Rows != 2 || e.Estimates.Get("ips").Value != 3 ||
		o.Settings(o.Options()).Interval.Right != AnyTimeInterval || o.Options().Range.Max != 3 {
		t.Errorf("%+v, %v", e, err)
	}
}
