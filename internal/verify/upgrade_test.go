package verify

import (
	"testing"

	"hindsight/internal/join/testkit"
)

// TestJoinWithoutCuts plays worlds in which a joiner that logs its cuts goes on from the log of one that
// did not, and stopped or crashed anywhere. What it writes follows from its cuts, and every decision has
// one feedback.
func TestJoinWithoutCuts(t *testing.T) {
	checked, old := int64(0), int64(0)
	for seed := range uint64(joinWorlds()) {
		for _, kind := range []string{"plain", "coarse", "skew", "back"} {
			if *joinSeed >= 0 && seed != uint64(*joinSeed) {
				continue
			}
			w := testkit.New(t, seed, kind)
			w.RunOld(int(seed*7%120), seed%2 == 0)
			w.Run(60)
			r := replayLog(t, w, w.Log).report
			if r.First != nil || r.Feedback.Records > 0 && r.Feedback.Checked == 0 {
				t.Fatalf("seed %d, %s: %+v, first %+v", seed, kind, r, r.First)
			}
			checked, old = checked+r.Feedback.Checked, old+r.Feedback.TooOld
			complete(t, w, seed)
		}
	}
	t.Log(checked, "feedbacks behind", old)
}

// TestJoinWithoutCutsLosses plays such worlds in which logs lose their tails as well.
func TestJoinWithoutCutsLosses(t *testing.T) {
	for seed := range uint64(joinWorlds()) {
		if *joinSeed >= 0 && seed != uint64(*joinSeed) {
			continue
		}
		w := testkit.New(t, seed, "plain")
		w.RunOld(int(seed*7%120), seed%2 == 0)
		if w.Loses = true; seed%3 == 0 {
			w.Lose()
		}
		w.Run(60)
		v := replayLog(t, w, w.Log)
		for at := range v.found {
			if !w.LostFeedback || at.topic != "r" && at.field != "rejects" {
				t.Fatalf("seed %d: %+v, first %+v", seed, at, *v.report.First)
			}
		}
		complete(t, w, seed)
	}
}
