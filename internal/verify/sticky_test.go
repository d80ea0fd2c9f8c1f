package verify

import (
	"bytes"
	"slices"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// stickyShop is the log of a shop whose draws hold for their units, over modes and restarts.
func stickyShop(t *testing.T, kind string) *shopRig {
	return stickyOn(t, shopLogs(t)["mem"](t), kind)
}

func stickyOn(t *testing.T, log stream.Log, kind string) *shopRig {
	s := newShop(t, log, shopModel(kind, 1, "actions: [a, b, c]\norder: fifo\nunit: {sticky: 1h}"))
	t.Cleanup(s.shut)
	s.units, s.others = true, true
	s.rounds(30)
	for _, mode := range []codec.Mode{codec.Shadow, codec.Live} {
		s.switchTo(mode)
		s.rounds(15)
		s.open()
	}
	s.rounds(15)
	return s
}

// TestVerifyUnits holds that a log with repeats verifies, with each learner, and that a restart from a snapshot has the
// state of one from the start.
func TestVerifyUnits(t *testing.T) {
	for kind := range shopModels {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := stickyShop(t, kind)
			if r := s.verify(); r.ExitCode() != Identical {
				t.Fatalf("does not verify: %+v\n%+v", r.First, r)
			}
			if !bytes.Equal(s.fromStart(), s.fromSnapshot()) {
				t.Error("a restart from a snapshot has another state than one from the start")
			}
		})
	}
}

// edit changes the decision of a round in the log and returns what takes that back.
func (s *shopRig) edit(d *codec.Decision, bad codec.Decision) (undo func()) {
	s.Helper()
	var was []stream.Record
	log := s.log.(*mem.Log)
	s.no(log.Edit(s.ts.Decisions, 0, func(recs []stream.Record) []stream.Record {
		was, recs = recs, slices.Clone(recs)
		for i := range recs {
			if string(recs[i].Key) == d.ID && recs[i].Type == "" {
				recs[i].Value = codec.AppendDecision(nil, &bad)
			}
		}
		return recs
	}))
	return func() { s.no(log.Edit(s.ts.Decisions, 0, func([]stream.Record) []stream.Record { return was })) }
}

// TestVerifyFindsWrongRepeats plants wrong repeats, and draws where one holds: each is named by its round and field.
func TestVerifyFindsWrongRepeats(t *testing.T) {
	s := stickyShop(t, "linear")
	all := s.decisions(stream.Earliest)
	repeats := slices.DeleteFunc(slices.Clone(all), func(d codec.Decision) bool { return d.First.N == 0 || d.N < 12 })
	if len(repeats) < 10 {
		t.Fatalf("%d repeats", len(repeats))
	}
	for field, change := range map[string]func(d *codec.Decision){
		"action": func(d *codec.Decision) { d.Action = (d.Action + 1) % len(d.Actions) },
		"propensities." + repeats[0].Actions[0]: func(d *codec.Decision) {
			d.Propensities = slices.Clone(d.Propensities)
			d.Propensities[0], d.Propensities[1] = .5, d.Propensities[0]+d.Propensities[1]-.5
		},
		"first": func(d *codec.Decision) { d.First.N-- },
		"unit":  func(d *codec.Decision) { d.Unit = "another" },
		"gamma": func(d *codec.Decision) { d.Gamma = 7 },
		"time":  func(d *codec.Decision) { d.Time++ },
	} {
		bad := repeats[0]
		change(&bad)
		undo := s.edit(&repeats[0], bad)
		if r := s.verify(); r.ExitCode() != Different || r.First.Topic != s.ts.Decisions || r.First.Round != bad.N ||
			r.First.Field != field {
			t.Errorf("%s of %+v: %+v", field, bad, r.First)
		}
		undo()
	}
	fresh := repeats[0]
	fresh.First = codec.RoundRef{}
	undo := s.edit(&repeats[0], fresh)
	if r := s.verify(); r.ExitCode() != Different || r.First.Round != fresh.N {
		t.Errorf("a draw where one holds: %+v", r.First)
	}
	undo()
	i := slices.IndexFunc(all, func(d codec.Decision) bool { return d.Unit != "" && d.N > 1 && d.Mode == codec.Live })
	none := all[i] // the first draw of its unit
	none.First.N = none.N - 1
	undo = s.edit(&all[i], none)
	if r := s.verify(); r.First == nil || r.First.Topic != s.ts.Decisions || r.First.Round != none.N {
		t.Errorf("a repeat of another's round: %+v", r.First)
	}
	undo()
}

// dropToMark drops the feedback through the first mark behind an offset, and returns that up to the next mark.
func (s *shopRig) dropToMark(offset int64) (copies []codec.Feedback) {
	s.Helper()
	s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
		mark := func(r stream.Record) bool { return r.Type == codec.TypeMark && r.Offset > offset }
		recs = slices.Clone(recs[slices.IndexFunc(recs, mark)+1:])
		for i := 0; i < len(recs) && !mark(recs[i]); i++ {
			var f codec.Feedback
			if recs[i].Type == "" && codec.ParseFeedback(&f, recs[i].Value) == nil {
				copies = append(copies, f)
			}
		}
		return recs
	}))
	return copies
}

// TestVerifyCopiesOfUnits: feedback before the first mark that is kept names the unit of its decision, and the round
// whose draw a repeat has.
func TestVerifyCopiesOfUnits(t *testing.T) {
	s := stickyShop(t, "linear")
	copies := s.dropToMark(40)
	i := slices.IndexFunc(copies, func(f codec.Feedback) bool { return f.First.N > 0 })
	if r := s.verify(); i < 0 || r.Differences > 0 {
		t.Fatalf("repeat %d before the first mark, %+v\n%s", i, r.First, r.text())
	}
	for field, change := range map[string]func(f *codec.Feedback){
		"unit":  func(f *codec.Feedback) { f.Unit = "another" },
		"first": func(f *codec.Feedback) { f.First.N-- },
	} {
		bad := copies[i]
		change(&bad)
		var was []stream.Record
		s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
			was, recs = recs, slices.Clone(recs)
			at := slices.IndexFunc(recs, func(r stream.Record) bool { return r.Type == "" && string(r.Key) == bad.ID })
			recs[at].Value = codec.AppendFeedback(nil, &bad)
			return recs
		}))
		if d := s.verify().First; d == nil || d.Topic != s.ts.Feedback || d.Field != field {
			t.Errorf("%s: %+v", field, d)
		}
		s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func([]stream.Record) []stream.Record { return was }))
	}
}

// TestVerifyUnitsOfACutLog: where retention has dropped a draw, its repeats are taken at their word, and must agree
// with each other.
func TestVerifyUnitsOfACutLog(t *testing.T) {
	s := stickyShop(t, "linear")
	at := s.decisions(stream.Earliest)[20].Time
	for _, topic := range []string{s.ts.Contexts, s.ts.Decisions, s.ts.Outcomes, s.ts.Feedback, s.ts.Rejects} {
		_, end, err := s.log.Bounds(s.ctx, topic, 0)
		s.no(err)
		s.no(stream.Scan(s.ctx, s.log, topic, 0, stream.Earliest, end, func(r *stream.Record) error {
			if r.Time < at {
				s.no(s.log.(*mem.Log).Truncate(topic, 0, r.Offset+1))
			}
			return nil
		}))
	}
	all := s.decisions(stream.Earliest)
	if !slices.ContainsFunc(all, func(d codec.Decision) bool { return d.First.N > 0 && d.First.N < all[0].N }) {
		t.Fatal("no repeat's draw is dropped")
	}
	if r := s.verify(); r.Differences > 0 || r.Old.Ruled == 0 {
		t.Errorf("%+v\n%+v", r.First, r)
	}
	i := slices.IndexFunc(all, func(d codec.Decision) bool { // the second of its draw: it must agree with the first
		return d.First.N > 0 && d.First.N < all[0].N && slices.ContainsFunc(all, func(x codec.Decision) bool {
			return x.First == d.First && x.N < d.N
		})
	})
	bad := all[i]
	bad.Action = (bad.Action + 1) % len(bad.Actions)
	defer s.edit(&all[i], bad)()
	if r := s.verify(); r.ExitCode() != Different || r.First.Topic != s.ts.Decisions || r.First.Round != bad.N ||
		r.First.Field != "action" {
		t.Errorf("%+v", r.First)
	}
}
