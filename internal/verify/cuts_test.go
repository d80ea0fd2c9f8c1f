package verify

import (
	"bytes"
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestVerifyCuts: what follows from cuts is too old for this program, which says why; what lies
// before the first, and the decisions, are checked.
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
	if before.ExitCode() != Identical || before.Cuts {
		t.Fatalf("%+v", before)
	}

	w, err := s.log.Writer(s.ctx, s.ts.Feedback, 0, nil)
	s.no(err)
	write := func(kind, key string, value []byte) {
		_, err := w.Append(s.ctx, &stream.Record{Type: kind, Key: []byte(key), Value: value})
		s.no(err)
	}
	write(codec.TypeCut, "", codec.AppendCut(nil, &codec.Cut{Cut: 1, Time: 1}))
	last.N++
	write("", last.ID, codec.AppendFeedback(nil, &last)) // which no cut gives
	write(codec.TypeMark, "", codec.AppendFeedbackMark(nil, &codec.FeedbackMark{N: last.N, Cut: 1, Era: 1, Eras: []codec.EraStart{{Era: 1, N: last.N}},
		Limits: codec.Limits{Heart: 1}, Positions: make([]codec.Position, 1), Epochs: mark.Epochs}))
	out, err := s.log.Writer(s.ctx, s.ts.Rejects, 0, nil)
	s.no(err)
	reject := codec.Reject{Topic: "outcomes", Offset: 1 << 30, Reason: codec.ReasonOrphan, ID: "x", Cut: 1, Era: 1}
	_, err = out.Append(s.ctx, &stream.Record{Key: []byte("x"), Value: codec.AppendReject(nil, &reject)})
	s.no(err)
	r := s.verify()
	var text bytes.Buffer
	s.no(r.Write(&text))
	if r.ExitCode() != TooOld || !r.Cuts || !strings.Contains(text.String(), "logged its cuts") {
		t.Errorf("exit %d\n%s", r.ExitCode(), &text)
	}
	if r.Feedback.TooOld != 1 || r.Feedback.Checked != before.Feedback.Checked || r.Marks.TooOld != 1 || r.Rejects.TooOld != 1 {
		t.Errorf("feedback %+v, marks %+v, rejects %+v\nwas %+v", r.Feedback, r.Marks, r.Rejects, before.Feedback)
	}
	if r.Decisions != before.Decisions {
		t.Errorf("decisions %+v, were %+v", r.Decisions, before.Decisions)
	}
}
