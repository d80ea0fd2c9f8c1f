package learner_test

import (
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// FuzzUnmarshal restores arbitrary bytes and uses whatever comes of it.
func FuzzUnmarshal(f *testing.F) {
	fresh := func() []learner.Learner {
		return []learner.Learner{
			learner.NewDAFA(newLinear(), learner.Root{C: 20}),
			learner.NewUniform(),
			learner.NewGreedy(newLinear()),
			must(learner.NewEXP4(policyList{constant(0), constant(1)}, learner.EXP4Options{})),
			must(learner.NewEXP4(policyList{constant(0), constant(1)}, learner.EXP4Options{Eta: 1,
				Prior: []float64{1, 2}})),
		}
	}
	x := &oracle.Input{Vector: []float64{1, 2}, Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	teach := func(l learner.Learner, n int64) {
		law, gamma := l.Propensities(nil, x)
		l.Learn(&learner.Round{Input: x, Propensities: law, Gamma: gamma, N: n, LearnedThrough: 0,
			Fate: learner.Observed, Loss: 1})
	}
	for _, l := range fresh() {
		for n := range int64(3) {
			f.Add(must(l.AppendBinary(nil)))
			teach(l, n+1)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range fresh() {
			if l.UnmarshalBinary(b) != nil {
				continue
			}
			for n := range int64(3) {
				law, _ := l.Propensities(nil, x)
				if law[0]+law[1] != 1 {
					t.Fatalf("law %v", law)
				}
				teach(l, n+1)
			}
			must(l.AppendBinary(nil))
		}
	})
}
