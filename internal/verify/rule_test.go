package verify

import (
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream/mem"
)

// TestRuleSwitches: a baseline that is better than what is played takes over at one place of the log, over restarts at
// any time, an operator may switch back, which begins the evidence again, and verify finds a lie about it.
func TestRuleSwitches(t *testing.T) {
	const ruled = "actions: [a, b]\nbaseline: {fixed: b}\nlearner: uniform\ncandidates: [baseline, uniform]\n" +
		"promote: {of: baseline, better_by: 0.1, alpha: 0.05, only: switch}"
	for held, restarts := range []bool{false, true} {
		s := newShop(t, mem.New(mem.Options{}), strings.Replace(shopModel("greedy", 1, ruled), "learner: "+
			"{egreedy: 0.2}\n", "", 1))
		s.untilShadow(restarts)
		s.end()
		if r := s.verify(); r.ExitCode() != Identical {
			t.Errorf("does not verify: %+v", r.First)
		}
		s.falseCause(codec.PromotionCause)
		s.switchTo(codec.Live)
		if j := s.j.Heart().Judge(); j.Fired() != 0 || j.Since() != 3 {
			t.Errorf("the evidence has not begun again: of epoch %d, held at %d", j.Since(), j.Fired())
		}
		s.rounds(20)
		if s.j.Epoch() != 3 {
			t.Errorf("epoch %d after an operator has switched back", s.j.Epoch())
		}
		if _, err := s.j.Switch(s.ctx, codec.Paused, codec.PromotionCause(int64(held))); err != nil {
			t.Fatal(err)
		}
		s.pump()
		if r := s.verify(); r.First == nil || r.First.Field != "cause" {
			t.Errorf("a switch that the rule did not want: %+v", r.First)
		}
		s.shut()
	}
}
