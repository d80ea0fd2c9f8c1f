package verify

import (
	"bytes"
	"slices"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestAssignedVerify holds that a log with decisions of another system among its own verifies, in all modes, over
// restarts, with each learner, that a restart from a snapshot has the state of one from the start, and that a record
// which does not repeat what was assigned is named.
func TestAssignedVerify(t *testing.T) {
	for kind := range shopModels {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, shopLogs(t)["mem"](t), shopModel(kind, 1, "actions: [a, b, c]"))
			defer s.shut()
			s.others = true
			s.rounds(20)
			for _, mode := range []codec.Mode{codec.Paused, codec.Shadow, codec.Live} {
				s.switchTo(mode)
				s.rounds(12)
				s.open()
			}
			if r := s.verify(); r.ExitCode() != Identical {
				t.Fatalf("does not verify: %+v\n%+v", r.First, r)
			}
			if !bytes.Equal(s.fromStart(), s.fromSnapshot()) {
				t.Error("a restart from a snapshot has another state than one from the start")
			}
			s.tamperAssigned()
		})
	}
}

// tamperAssigned changes a record of each kind in each way, and looks whether verify names it.
func (s *shopRig) tamperAssigned() {
	s.Helper()
	ways := map[string]func(d *codec.Decision){
		"action": func(d *codec.Decision) { d.Action = (d.Action + 1) % 3 },
		"mode":   func(d *codec.Decision) { d.Mode, d.Unknown = codec.Apprentice, 0 },
		"gamma":  func(d *codec.Decision) { d.Gamma = 7 },
		"law":    func(d *codec.Decision) { d.Propensities, d.Unknown = []float64{.5, .25, .25}, 0 },
		"unknown": func(d *codec.Decision) {
			d.Unknown = codec.UnknownRest.Fill(d.Propensities, d.Action, .125)
		},
	}
	met := map[codec.Unknown]bool{}
	for _, d := range s.decisions(stream.Earliest) {
		if d.Mode != codec.External || met[d.Unknown] || len(d.Actions) != 3 {
			continue
		}
		met[d.Unknown] = true
		for name, change := range ways {
			bad := d
			bad.Propensities = slices.Clone(d.Propensities)
			change(&bad)
			undo := s.edit(&d, bad)
			if r := s.verify(); r.ExitCode() == Identical || r.First.Topic != s.ts.Decisions || r.First.Round != d.N {
				s.Errorf("%s of %+v: %+v", name, d, r.First)
			}
			undo()
		}
	}
	if len(met) != 3 {
		s.Errorf("only %v were there", met)
	}
}
