package verify

import (
	"slices"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// withoutCuts makes a log what a joiner left that did not log its cuts: its cuts are gone, and its marks
// are read as such.
func (s *shopRig) withoutCuts() {
	s.Helper()
	s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func(recs []stream.Record) (out []stream.Record) {
		for _, r := range recs {
			if r.Type == codec.TypeMark {
				m, err := codec.ParseFeedbackMark(r.Value)
				s.no(err)
				m.Limits, m.Cut = codec.Limits{}, 0
				r.Value = codec.AppendFeedbackMark(nil, &m)
			}
			if r.Type != codec.TypeCut {
				out = append(out, r)
			}
		}
		return out
	}))
}

// TestVerifyWithoutCuts holds what is checked of a log without cuts: all but fates, which are too old. That
// feedback is what was learned, decisions and snapshots tell.
func TestVerifyWithoutCuts(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{Step: 2}), shopModel("linear", 1, "actions: [a, b, c]\norder: fifo"))
	s.rounds(25)
	s.end()
	s.shut()
	whole := s.verify()
	if whole.ExitCode() != Identical || whole.Cuts.Checked == 0 {
		t.Fatal(whole.text())
	}
	s.withoutCuts()
	r := s.verify()
	if r.ExitCode() != TooOld || r.Cuts.Records > 0 || r.Feedback.TooOld != whole.Feedback.Records ||
		r.Marks.TooOld == 0 {
		t.Fatalf("exit %d\n%s", r.ExitCode(), r.text())
	}
	if r.Decisions != whole.Decisions || r.Snapshots != whole.Snapshots || r.Epochs != whole.Epochs {
		t.Errorf("%+v\n%+v", r, whole)
	}
	w := s.log.(*mem.Log)
	for what, change := range map[string]func(f *codec.Feedback){
		"n": func(f *codec.Feedback) { f.N++ }, "loss": func(f *codec.Feedback) { f.Loss = 1 - f.Loss },
		"fate":    func(f *codec.Feedback) { f.Fate = codec.Skipped },
		"context": func(f *codec.Feedback) { f.Context = []byte(`{"id":"other","features":{"x":7}}`) },
	} {
		var was []stream.Record
		s.no(w.Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
			was = recs
			recs, n := slices.Clone(recs), 0
			for i := range recs {
				if n++; recs[i].Type != "" {
					n--
				} else if n == 13 {
					var f codec.Feedback
					s.no(codec.ParseFeedback(&f, recs[i].Value))
					change(&f)
					recs[i].Value = codec.AppendFeedback(nil, &f)
				}
			}
			return recs
		}))
		if r := s.verify(); r.ExitCode() != Different {
			t.Errorf("%s of a feedback changed:\n%s", what, r.text())
		}
		s.no(w.Edit(s.ts.Feedback, 0, func([]stream.Record) []stream.Record { return was }))
	}
}

// TestVerifyUpgrade: a joiner that logs its cuts takes over from one that did not. What lies before its
// first mark is too old; what follows from cuts is checked.
func TestVerifyUpgrade(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{Step: 2}), shopModel("linear", 1, "actions: [a, b, c]"))
	defer s.shut()
	s.rounds(15)
	s.end()
	s.shut()
	s.withoutCuts()
	before := s.verify()
	s.open()
	s.rounds(20)
	s.end()
	r := s.verify()
	if r.ExitCode() != TooOld || r.Cuts.Checked == 0 || r.Cuts.Checked != r.Cuts.Records ||
		r.Feedback.TooOld != before.Feedback.Records ||
		r.Feedback.Checked != r.Feedback.Records-before.Feedback.Records || r.Decisions.Checked != r.Decisions.Records {
		t.Errorf("exit %d\n%s", r.ExitCode(), r.text())
	}
	var last int64
	s.no(stream.Scan(s.ctx, s.log, s.ts.Feedback, 0, stream.Earliest, 1<<40, func(r *stream.Record) error {
		if m, err := codec.ParseFeedbackMark(r.Value); r.Type == codec.TypeMark && err == nil && !loop.WithoutCuts(&m) {
			last = r.Offset
		}
		return nil
	}))
	s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
		for i := range recs {
			if m, err := codec.ParseFeedbackMark(recs[i].Value); recs[i].Offset == last && err == nil {
				m.Positions[0].Round++
				recs[i].Value = codec.AppendFeedbackMark(nil, &m)
			}
		}
		return recs
	}))
	if r := s.verify(); r.ExitCode() != Different || r.First.Field != "positions[0].round" || r.Differences != 1 {
		t.Errorf("exit %d\n%s", r.ExitCode(), r.text())
	}
}
