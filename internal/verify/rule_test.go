package verify

import (
	"strings"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
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

// TestRuleShares: a learner that takes over is given a share of the ids, with true propensities, over restarts, until
// an operator asks for the mode; verify finds what it finds in any log.
func TestRuleShares(t *testing.T) {
	const ruled = "actions: [a, b, c]\nmode: shadow\nbaseline: uniform\nlearner: {fixed: b}\ncandidates: [learner]\n" +
		"promote: {of: learner, better_by: 0.02, alpha: 0.2, only: switch, share: 0.5}"
	s := newShop(t, mem.New(mem.Options{}), strings.Replace(shopModel("greedy", 1, ruled), "learner: "+
		"{egreedy: 0.2}\n", "", 1))
	for n := 0; s.j.Epoch() == 1; n++ {
		if s.rounds(20); n == 100 {
			t.Fatalf("not promoted: %+v", s.j.Heart().Judge().Estimates())
		}
	}
	count := func(n int) (held int) {
		from := len(s.decisions(stream.Earliest))
		s.rounds(n)
		for _, d := range s.decisions(stream.Earliest)[from:] {
			if d.Mode == codec.Shadow {
				held++
			} else if d.Mode != codec.Live || d.Propensities[d.Action] != 1 || d.Actions[d.Action] != "b" {
				t.Errorf("%+v", d)
			}
		}
		return held
	}
	if n := count(100); n < 30 || n > 70 {
		t.Errorf("the baseline answers %d of 100 rounds after the switch", n)
	}
	s.open()
	if n := count(100); n < 30 || n > 70 {
		t.Errorf("the baseline answers %d of 100 rounds after a restart", n)
	}
	if rounds, _ := s.j.Heart().Judge().Ledger().Rounds(); rounds < 100 {
		t.Errorf("%d rounds are judged of the shared mode", rounds)
	}
	s.switchTo(codec.Live)
	if n := count(50); n > 0 || s.j.Epoch() != 3 {
		t.Errorf("epoch %d: the baseline answers %d rounds after an operator asked for the mode", s.j.Epoch(), n)
	}
	s.end()
	if r := s.verify(); r.ExitCode() != Identical {
		t.Errorf("does not verify: %+v", r.First)
	}
	s.shut()
}
