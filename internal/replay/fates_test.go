package replay

import (
	"testing"

	"hindsight/pkg/codec"
)

func TestFates(t *testing.T) {
	var f Fates
	for _, fate := range []codec.Fate{codec.Observed, codec.Observed, codec.Imputed, codec.Skipped,
		codec.WithdrawnRound} {
		f.addFate(fate)
	}
	for _, reason := range []string{codec.ReasonLate, codec.ReasonDuplicate, codec.ReasonOrphan, codec.ReasonMismatch,
		codec.ReasonMalformed, codec.ReasonLate} {
		if !f.addReject(reason) {
			t.Errorf("%s is not counted", reason)
		}
	}
	if f.addReject("foreign") {
		t.Error("an unknown reason is counted")
	}
	if want := (Fates{Observed: 2, Imputed: 1, Skipped: 1, Withdrawn: 1, Late: 2, Duplicate: 1, Orphan: 1, Mismatch: 1,
		Malformed: 1}); f != want || f.rounds() != 5 || f.Rejected() != 6 {
		t.Errorf("%+v, want %+v", f, want)
	}
}
