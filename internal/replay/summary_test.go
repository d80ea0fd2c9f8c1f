package replay

import (
	"testing"

	"hindsight/internal/service"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestSummaryForeign: what somebody else wrote into decisions or feedback is passed over in a
// summary, as the system does.
func TestSummaryForeign(t *testing.T) {
	log := mem.New(mem.Options{})
	if err := service.CreateTopics(t.Context(), log, "m", 1, service.Retention{}); err != nil {
		t.Fatal(err)
	}
	d := codec.Decision{N: 1, ID: "a", Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1}, Source: -1,
		Context: []byte(`{}`)}
	strange := stream.Record{Value: []byte(`{"id":"c1","loss":0}`)}
	for topic, r := range map[string]stream.Record{"m.decisions": {Value: codec.AppendDecision(nil, &d)},
		"m.feedback": strange} {
		w, err := log.Writer(t.Context(), topic, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []stream.Record{strange, r} {
			if _, err := w.Append(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	times, _, ids, err := readDecisions(t.Context(), log, "m.decisions", 1)
	if err != nil || len(times) != 1 || len(ids) != 1 {
		t.Errorf("%d decisions, %v", len(times), err)
	}
	var s Summary
	if err := s.readFeedback(t.Context(), log, "m", 1, nil, nil, 1); err != nil || s.Rounds != 0 || s.Pending != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
