package verify

import (
	"fmt"
	"strings"
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
		o := codec.Outcome{ID: id, OutcomeID: fmt.Sprint(i), Kind: codec.Loss, Value: float64(i) / (loop.MaxOutcomeIDs +
			2)}
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

// TestVerifyCutRejects verifies rejects of large outcomes: each keeps the beginning that the
// rule says, not less.
func TestVerifyCutRejects(t *testing.T) {
	log := mem.New(mem.Options{})
	s := newShop(t, log, shopModel("linear", 1, "actions: [a, b]"))
	defer s.shut()
	s.rounds(2)
	for _, n := range []int{codec.MaxRejectBytes, codec.MaxOutcomeBytes} { // of no round, and malformed
		bad := fmt.Appendf(nil, `{"id":"nobody","loss":1,"x":"%s"}`, strings.Repeat("x", n))
		_, err := s.out.Append(s.ctx, &stream.Record{Value: bad})
		s.no(err)
	}
	s.no(s.out.Flush(s.ctx))
	s.pump()
	s.rounds(12)
	r := s.verify()
	if r.ExitCode() != Identical || r.Rejects.Records < 2 || r.Rejects.Checked != r.Rejects.Records {
		t.Error(r.text())
	}
	s.no(log.Edit(s.ts.Rejects, 0, func(recs []stream.Record) []stream.Record {
		for i := range recs {
			if x, err := codec.ParseReject(recs[i].Value); recs[i].Type == "" && err == nil && x.Size > 0 {
				x.Bytes = x.Bytes[:codec.MaxRejectBytes-1]
				recs[i].Value = codec.AppendReject(nil, &x)
			}
		}
		return recs
	}))
	if r := s.verify(); r.Differences != 2 || r.First.Field != "bytes" {
		t.Error(r.text())
	}
}
