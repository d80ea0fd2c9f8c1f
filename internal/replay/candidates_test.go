package replay

import (
	"fmt"
	"math"
	"strings"
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

// TestBacktestJudgesPolicies: a decision list reads the context, also of data of which a backtest keeps none.
func TestBacktestJudgesPolicies(t *testing.T) {
	var text strings.Builder
	text.WriteString("label,n_x\n")
	for i := range 600 {
		fmt.Fprintf(&text, "%s,%d\n", []string{"a", "b"}[i*7%3%2], i*7%3)
	}
	env, err := readLabelled("t.csv", strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	tr := trialOf(t, env, "uniform", "100", "none")
	tr.Model.Early, tr.Model.Candidates = false, []loop.Candidate{{Kind: loop.PolicyCandidate, Action: "lists"}}
	tr.Files = map[string][]byte{"lists": []byte(`{"hindsight_policies":1,"actions":["a","b"]}
{"rules":[{"if":{"n_x":1},"then":"b"},{"then":"a"}]}
{"rules":[{"if":{"n_x":1},"then":"a"},{"then":"b"}]}`)}
	r, err := tr.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	right, wrong := r.Candidates[0], r.Candidates[1]
	if right.Policy != "policies:lists#1" || right.Value.Mean > .02 || wrong.Value.Mean < .98 || !wrong.Beaten {
		t.Errorf("the right one %+v, the wrong one %+v", right, wrong)
	}
}
