package verify

import (
	"crypto/sha256"
	"fmt"
	"math"
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
	s := newShared(t)
	defer s.shut()
	if n := s.heldOf(100); n < 30 || n > 70 {
		t.Errorf("the baseline answers %d of 100 rounds after the switch", n)
	}
	s.open()
	if n := s.heldOf(100); n < 30 || n > 70 {
		t.Errorf("the baseline answers %d of 100 rounds after a restart", n)
	}
	if rounds, _ := s.j.Heart().Judge().Ledger().Rounds(); rounds < 100 {
		t.Errorf("%d rounds are judged of the shared mode", rounds)
	}
	s.switchTo(codec.Live)
	if n := s.heldOf(50); n > 0 || s.j.Epoch() != 3 {
		t.Errorf("epoch %d: the baseline answers %d rounds after an operator asked for the mode", s.j.Epoch(), n)
	}
	s.end()
	if r := s.verify(); r.ExitCode() != Identical {
		t.Errorf("does not verify: %+v", r.First)
	}
}

// TestLostShare: the share outlives the loss of the record of the switch, until an operator asks for the mode.
func TestLostShare(t *testing.T) {
	s := newShared(t)
	defer s.shut()
	s.heldOf(40)
	s.loseEpoch(2)
	if n := s.heldOf(100); n < 30 || n > 70 || s.j.Epoch() != 3 {
		t.Errorf("the baseline answers %d of 100 rounds in epoch %d, after the loss", n, s.j.Epoch())
	}
	s.switchTo(codec.Live)
	if n := s.heldOf(50); n > 0 || s.j.Epoch() != 4 {
		t.Errorf("epoch %d: the baseline answers %d rounds after an operator asked for the mode", s.j.Epoch(), n)
	}
	s.end()
	if r := s.verify(); r.First != nil { // the rounds of the lost epoch cannot be checked
		t.Errorf("does not verify: %+v", r.First)
	}
}

// TestLostEpoch: an epoch in place of one whose record is lost leaves its number out, where no era tells of the loss,
// too: joiners before cuts began none.
func TestLostEpoch(t *testing.T) {
	for cause, want := range map[string]bool{codec.CauseLost: true, codec.CauseLostShare: true, "admin: test": false} {
		s := newShop(t, mem.New(mem.Options{}), shopModel("linear", 1, "actions: [a, b, c]"))
		s.rounds(9)
		s.shut()
		var rec codec.Epoch
		readEpoch := func(r *stream.Record) (err error) {
			if r.Type == codec.TypeEpoch {
				rec, err = codec.ParseEpoch(r.Value)
			}
			return err
		}
		s.no(stream.Scan(s.ctx, s.log, s.ts.Feedback, 0, stream.Earliest, math.MaxInt64, readEpoch))
		rec.Epoch, rec.Cause, rec.Continues, rec.Through = 3, cause, 1, s.d.Replica().LearnedThrough()
		rec.SHA256 = fmt.Sprintf("%x", sha256.Sum256(rec.LoggedModel()))
		a, err := s.log.Writer(s.ctx, s.ts.Feedback, 0, nil)
		s.no(err)
		_, err = a.Append(s.ctx, &stream.Record{Type: codec.TypeEpoch, Value: codec.AppendEpoch(nil, &rec)})
		s.no(err)
		r := s.verify()
		if d := r.First; r.Epochs.Checked != 2 || (d == nil || d.Field != "epoch") != want {
			t.Errorf("%s: %d epochs checked, %+v", cause, r.Epochs.Checked, d)
		}
	}
}

// newShared runs until the rule of promotion gives the learner, which always plays b, half of the ids.
func newShared(t *testing.T) *shopRig {
	t.Helper()
	const ruled = "actions: [a, b, c]\nmode: shadow\nbaseline: uniform\nlearner: {fixed: b}\ncandidates: [learner]\n" +
		"promote: {of: learner, better_by: 0.02, alpha: 0.2, only: switch, share: 0.5}"
	s := newShop(t, mem.New(mem.Options{}), strings.Replace(shopModel("greedy", 1, ruled), "learner: "+
		"{egreedy: 0.2}\n", "", 1))
	for n := 0; s.j.Epoch() == 1; n++ {
		if s.rounds(20); n == 100 {
			t.Fatalf("not promoted: %+v", s.j.Heart().Judge().Estimates())
		}
	}
	return s
}

// heldOf plays rounds and returns how many of them the baseline answered.
func (s *shopRig) heldOf(n int) (held int) {
	s.Helper()
	from := len(s.decisions(stream.Earliest))
	s.rounds(n)
	for _, d := range s.decisions(stream.Earliest)[from:] {
		if d.Mode == codec.Shadow {
			held++
		} else if d.Mode != codec.Live || d.Propensities[d.Action] != 1 || d.Actions[d.Action] != "b" {
			s.Errorf("%+v", d)
		}
	}
	return held
}

// loseEpoch loses the record of an epoch with all feedback behind it, and begins again.
func (s *shopRig) loseEpoch(epoch int64) {
	s.Helper()
	_, end, err := s.log.Bounds(s.ctx, s.ts.Feedback, 0)
	s.no(err)
	s.no(stream.Scan(s.ctx, s.log, s.ts.Feedback, 0, stream.Earliest, end, func(r *stream.Record) error {
		if r.Type != codec.TypeEpoch {
			return nil
		}
		rec, err := codec.ParseEpoch(r.Value)
		if err == nil && rec.Epoch == epoch {
			end = r.Offset
		}
		return err
	}))
	s.shut()
	s.no(s.log.(*mem.Log).DropTail(s.ts.Feedback, 0, end))
	s.open()
}
