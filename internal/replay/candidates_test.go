package replay

import (
	"math"
	"testing"

	"hindsight/internal/loop"
)

// TestBacktestJudgesCandidates: where all losses are known the estimates of candidates are near what they estimate.
// What is played has no gain over itself, and what rejection replay plays is not judged.
func TestBacktestJudgesCandidates(t *testing.T) {
	tr := trialOf(t, environment(t, "sigmoid", 1, 3000), "dafa", "100", "exp:20")
	tr.Model.DefaultOrder()
	tr.Model.Early = false
	tr.Model.Candidates = []loop.Candidate{{Kind: loop.UniformCandidate}, {Kind: loop.LearnerCandidate}}
	r, err := tr.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	u, l := r.Candidates[0], r.Candidates[1]
	if c := r.Course.Candidates; len(c) != 2 || c[1].Policy != "learner" || len(c[0].Mean) != len(r.Course.Rounds) ||
		c[0].High[0] != 1 || c[0].High[20] <= c[0].High[60] || c[0].High[len(c[0].High)-1] != seven(u.Value.High) ||
		c[0].Mean[len(c[0].Mean)-1] != seven(u.Value.Mean) || c[0].Low[len(c[0].Low)-1] != seven(u.Value.Low) {
		t.Errorf("the course of %+v: %+v", r.Candidates, c)
	}
	if u.Policy != "uniform" || math.Abs(u.Value.Mean-*r.UniformLoss) > .03 || u.Value.Low > *r.UniformLoss ||
		u.Value.High < *r.UniformLoss || !u.Beaten || u.Gain.High >= 0 {
		t.Errorf("uniform play loses %v: %+v", *r.UniformLoss, u)
	}
	if l.Policy != "learner" || math.Abs(l.Value.Mean-*r.MeanLoss) > .01 || l.Gain.Mean != 0 || l.Beaten {
		t.Errorf("what is played loses %v: %+v", *r.MeanLoss, l)
	}
	// without a log rejection replay has no candidates: what it plays follows the log's law, too
	tr.Model.Candidates = nil
	if r, err = tr.Run(t.Context(), nil); err != nil || r.Candidates != nil {
		t.Errorf("%+v, %v", r.Candidates, err)
	}
}
