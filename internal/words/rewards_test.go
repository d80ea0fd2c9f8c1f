package words

import "testing"

// By hand: rewards in [−1, 3] miss 4 a loss of 1. A loss of ¼ is a reward of 2, one more by ½ a
// reward less by 2. Losses are shown as they are.
func TestRewards(t *testing.T) {
	r := &Rewards{-1, 3}
	if r.Of() != "reward" || r.Shown(.25) != 2 || r.Shown(0) != 3 || r.Shown(1) != -1 || r.Length(.5) != 2 ||
		r.Gap(.5) != -2 || Digits(r.Gap(0)) != "0" {
		t.Errorf("%v %v %v %v", r.Of(), r.Shown(.25), r.Length(.5), r.Gap(.5))
	}
	r = nil
	if r.Of() != "loss" || r.Shown(.25) != .25 || r.Length(.5) != .5 || r.Gap(.5) != .5 {
		t.Errorf("%v %v %v %v", r.Of(), r.Shown(.25), r.Length(.5), r.Gap(.5))
	}
}
