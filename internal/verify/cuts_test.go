package verify

import (
	"testing"

	"hindsight/internal/loop"
	"hindsight/internal/model"
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

// TestVerifyWithoutCuts holds what is checked of a log without cuts: all but fates, and of feedback that
// it is a copy of its decision, one for each round, in order.
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
	for _, c := range []struct {
		field  string
		change func(recs []stream.Record, at []int) []stream.Record // at: where feedback is
	}{
		{"gamma", editCopy(func(f *codec.Feedback) { f.Gamma++ })},
		{"time", editCopy(func(f *codec.Feedback) { f.Time++ })},
		{"context", editCopy(func(f *codec.Feedback) { f.Context = []byte(`{"id":"other"}`) })},
		{"epoch", editCopy(func(f *codec.Feedback) { f.Epoch++ })},
		{"n", editCopy(func(f *codec.Feedback) { f.N++ })},
		{"round", editCopy(func(f *codec.Feedback) { f.Round = 1 })},
		{"round", editCopy(func(f *codec.Feedback) { f.Round += 1 << 40 })},
		{"key", func(recs []stream.Record, at []int) []stream.Record {
			recs[at[12]].Key = []byte("other")
			return recs
		}},
		{"round", func(recs []stream.Record, at []int) []stream.Record { // the next one's turn comes first
			a, b := &recs[at[12]], &recs[at[13]]
			var f, g codec.Feedback
			s.no(codec.ParseFeedback(&f, a.Value))
			s.no(codec.ParseFeedback(&g, b.Value))
			f.N, g.N = g.N, f.N
			a.Key, a.Value, b.Key, b.Value = []byte(g.ID), codec.AppendFeedback(nil, &g), []byte(f.ID),
				codec.AppendFeedback(nil, &f)
			return recs
		}},
	} {
		var was []stream.Record
		s.no(w.Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
			was = recs
			var at []int
			for i := range recs {
				if recs[i].Type == "" {
					at = append(at, i)
				}
			}
			return c.change(append([]stream.Record(nil), recs...), at)
		}))
		v, err := Config{Log: s.log, Name: "m", Seed: worldSeed(), Build: model.Epoch, Dedup: 1000}.attempt(s.ctx)
		s.no(err)
		named := false
		for at := range v.found { // a learner that cannot go on may be told of first
			named = named || at.topic == s.ts.Feedback && at.field == c.field
		}
		if !named {
			t.Errorf("%s changed: the first difference is %+v", c.field, v.report.First)
		}
		s.no(w.Edit(s.ts.Feedback, 0, func([]stream.Record) []stream.Record { return was }))
	}
}

// editCopy changes the 13th feedback.
func editCopy(change func(f *codec.Feedback)) func(recs []stream.Record, at []int) []stream.Record {
	return func(recs []stream.Record, at []int) []stream.Record {
		r := &recs[at[12]]
		var f codec.Feedback
		if codec.ParseFeedback(&f, r.Value) == nil {
			change(&f)
		}
		r.Value = codec.AppendFeedback(nil, &f)
		return recs
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
