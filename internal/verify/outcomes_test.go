package verify

import (
	"fmt"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestVerifyOutcomeIDs verifies a log in which one round has more outcomes with ids than
// count.
func TestVerifyOutcomeIDs(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b]\noutcomes: last"))
	defer s.shut()
	s.rounds(1)
	id := s.decisions(stream.Earliest)[0].ID
	for i := range loop.MaxOutcomeIDs + 2 {
		o := codec.Outcome{ID: id, OutcomeID: fmt.Sprint(i), Kind: codec.Loss, Value: float64(i) / (loop.MaxOutcomeIDs + 2)}
		_, err := s.out.Append(s.ctx, &stream.Record{Value: codec.AppendOutcome(nil, &o)})
		s.no(err)
	}
	s.no(s.out.Flush(s.ctx))
	s.pump()
	s.rounds(12)
	if r := s.verify(); r.ExitCode() != Identical || r.Rejects.Records < 2 || r.Outcomes.Checked < loop.MaxOutcomeIDs {
		t.Error(r.text())
	}
}
