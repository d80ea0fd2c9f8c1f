package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/follow"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestEarlyVerifies: laws that follow from provisional losses verify, across restarts and models that go on with the
// learner: one without early may begin it, and none ends it. What is provisional verifies, too.
func TestEarlyVerifies(t *testing.T) {
	for _, oracle := range []string{"auto", "linear"} {
		model := func(version int, rest string) string {
			return fmt.Sprintf("name: m\nversion: %d\nactions: [a, b, c]\nmissing: impute\nwindow: 12 "+
				"rounds\noracle: %s\n%s\n", version, oracle, rest)
		}
		s := newShop(t, mem.New(mem.Options{}), model(1, ""))
		s.rng = rand.New(rand.NewPCG(5, 1))
		s.rounds(80)
		s.open()
		s.rounds(40)
		for i, rest := range []string{"early: {after: 2}", "mode: live\nearly: {after: 2}"} {
			src := s.source(model(2+i, rest+"\nwarm: keep"))
			_, err := s.j.Renew(s.ctx, src)
			s.no(err)
			s.jc.Source = src
			s.pump()
			s.rounds(40)
			s.open()
		}
		if _, err := s.j.Renew(s.ctx, s.source(model(4, "warm: keep"))); !errors.Is(err, follow.ErrModel) ||
			!strings.Contains(err.Error(), "early differs") {
			t.Errorf("it goes on without early: %v", err)
		}
		s.rounds(20)
		s.end()
		r := s.verify()
		if r.ExitCode() != Identical || r.Epochs.Records != 3 {
			t.Fatalf("%s: does not verify: %+v\n%+v", oracle, r.First, r)
		}
		if want, got := s.fromStart(), s.fromSnapshot(); !bytes.Equal(want, got) {
			t.Errorf("%s: a restart from a snapshot has another state than one from the start", oracle)
		}
		told := 0
		was := s.editProvisional(func(f *codec.Feedback) { told++ })
		if told < 50 {
			t.Errorf("%s: %d provisional records", oracle, told)
		}
		for name, plant := range map[string]func(f *codec.Feedback){
			"a loss":  func(f *codec.Feedback) { f.Outcomes[0].Value = 1 - f.Outcomes[0].Value/2 },
			"a fate":  func(f *codec.Feedback) { f.Outcomes[0].ClosedAt++ },
			"a stage": func(f *codec.Feedback) { f.Stage++ },
		} {
			left := told / 2
			s.editProvisional(func(f *codec.Feedback) {
				if left--; left == 0 {
					plant(f)
				}
			})
			if r := s.verify(); r.ExitCode() == Identical {
				t.Errorf("%s: %s of a provisional record is another, and the log verifies", oracle, name)
			}
			s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func([]stream.Record) []stream.Record { return was }))
		}
		s.shut()
	}
}

// editProvisional changes the provisional records of the log, and returns what it held.
func (s *shopRig) editProvisional(change func(f *codec.Feedback)) (was []stream.Record) {
	s.no(s.log.(*mem.Log).Edit(s.ts.Feedback, 0, func(recs []stream.Record) []stream.Record {
		was = slices.Clone(recs)
		out := slices.Clone(recs)
		for i := range out {
			var f codec.Feedback
			if out[i].Type == "" && codec.ParseFeedback(&f, out[i].Value) == nil && f.Stage > 0 {
				change(&f)
				out[i].Value = codec.AppendFeedback(nil, &f)
			}
		}
		return out
	}))
	return was
}

// TestEarlyCut: of a log that has lost its beginning, provisional records before the first mark are copies of
// their decisions too, as feedback is, and the round's feedback follows.
func TestEarlyCut(t *testing.T) {
	s := newShop(t, mem.New(mem.Options{}), "name: m\nversion: 1\nactions: [a, b, c]\nmissing: impute\nwindow: 12 "+
		"rounds\noracle: linear\nearly: {after: 2}\n")
	s.rng = rand.New(rand.NewPCG(5, 1))
	s.rounds(40)
	s.open()
	s.rounds(80)
	s.end()
	defer s.shut()
	stages := 0
	for _, f := range s.dropToMark(60) {
		if f.Stage > 0 {
			stages++
		}
	}
	r := s.verify()
	if stages == 0 || r.Differences > 0 {
		t.Errorf("%d provisional records before the first mark, %+v\n%s", stages, r.First, r.text())
	}
}
