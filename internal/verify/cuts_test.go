package verify

import (
	"bytes"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestVerifyCuts: a joiner that logs its cuts takes over from one that did not. What lies before its
// first mark is too old; what follows from cuts, and the decisions, are checked.
func TestVerifyCuts(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{Step: 2}), shopModel("linear", 1, "actions: [a, b, c]"))
	s.rounds(15)
	s.end()
	s.shut()
	var last codec.Feedback
	var mark codec.FeedbackMark
	s.no(stream.Scan(s.ctx, s.log, s.ts.Feedback, 0, stream.Earliest, 1<<40, func(r *stream.Record) (err error) {
		switch r.Type {
		case "":
			err = codec.ParseFeedback(&last, bytes.Clone(r.Value))
		case codec.TypeMark:
			mark, err = codec.ParseFeedbackMark(r.Value)
		}
		return err
	}))
	before := s.verify()
	if before.ExitCode() != Identical || before.Cuts.Records > 0 {
		t.Fatalf("%+v", before)
	}

	w, err := s.log.Writer(s.ctx, s.ts.Feedback, 0, nil)
	s.no(err)
	write := func(kind, key string, value []byte) {
		_, err := w.Append(s.ctx, &stream.Record{Type: kind, Key: []byte(key), Value: value})
		s.no(err)
	}
	_, decisions, err := s.log.Bounds(s.ctx, s.ts.Decisions, 0)
	s.no(err)
	_, outcomes, err := s.log.Bounds(s.ctx, s.ts.Outcomes, 0)
	s.no(err)
	pos := codec.Position{Round: before.Decisions.Records, Time: 1e12, Decisions: decisions, Outcomes: outcomes}
	m := codec.FeedbackMark{N: last.N, Time: 1e12, From: -1, Memory: -1, Remembers: last.N + 1, Era: 1,
		Eras:   []codec.EraStart{{Era: 1, N: last.N}},
		Limits: codec.Limits{Heart: 1, Pending: 100, Dedup: 100}, Positions: []codec.Position{pos},
		Epochs: mark.Epochs, Guard: mark.Guard}
	write(codec.TypeMark, "", codec.AppendFeedbackMark(nil, &m))
	write(codec.TypeCut, "", codec.AppendCut(nil, &codec.Cut{Cut: 1, Time: 1e12}))
	m.Cut, m.FromCut = 1, 1
	write(codec.TypeMark, "", codec.AppendFeedbackMark(nil, &m))
	r := s.verify()
	if r.ExitCode() != TooOld || r.Cuts != (Tally{Records: 1, Checked: 1}) ||
		r.Feedback.TooOld != before.Feedback.Records {
		t.Errorf("exit %d\n%s", r.ExitCode(), r.text())
	}
	m.Positions[0].Round++
	write(codec.TypeMark, "", codec.AppendFeedbackMark(nil, &m))
	if r := s.verify(); r.ExitCode() != Different || r.First.Field != "positions[0].round" || r.Differences != 1 {
		t.Errorf("exit %d\n%s", r.ExitCode(), r.text())
	}
	if r.Decisions != before.Decisions {
		t.Errorf("decisions %+v, were %+v", r.Decisions, before.Decisions)
	}
}
