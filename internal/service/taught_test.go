package service

import (
	"testing"

	"hindsight/internal/follow"
	"hindsight/pkg/codec"
)

// TestTaughtLogWaits: only who teaches a log decides in the epoch that it is taught in. A decider that goes live
// waits for the epoch of the model file, as on a new log, and is not ready before; so does one whose joiner runs
// elsewhere.
func TestTaughtLogWaits(t *testing.T) {
	for name, live := range map[string]follow.Source{
		"the next version":   {Name: "m", Version: 2, Model: []byte("y")},
		"the taught version": {Name: "m", Version: 1, Model: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(r *rig) {
				r.jc.Seed = r.dc.Seed
				r.jc.Source.Cause, r.dc.Source = codec.CauseTaught, r.jc.Source
			})
			r.contexts("a")
			r.must(r.settle())
			if r.d.heart.Next() != 2 {
				t.Fatal("who teaches does not decide")
			}
			r.j.Close()
			for _, source := range []*follow.Source{&live, nil} {
				r.d.Close()
				r.dc.Source = source
				var err error
				r.d, err = OpenDecider(t.Context(), r.dc)
				r.must(err)
				r.contexts("b")
				if busy, err := r.d.StepContexts(t.Context(), 1); busy || err != nil || r.d.decides() != nil {
					t.Fatalf("decided in the taught epoch: %v %v", busy, err)
				}
			}
			r.jc.Source = &live
			var err error
			r.j, err = OpenJoiner(t.Context(), r.jc)
			r.must(err)
			if r.must(r.settle()); r.d.decides() == nil || r.d.heart.Next() != 3 {
				t.Error("nothing is decided in the epoch of the model file")
			}
		})
	}
}
