package loop

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

// TestHoldOut: the baseline answers the share of ids that is held out, with its own propensities, and the learner's law
// stands beside them. Which ids these are depends on nothing else.
func TestHoldOut(t *testing.T) {
	rules := judgedRules()
	rules.HoldOut, rules.Mode = .1, codec.Live
	rules.Baseline = Baseline{Kind: FixedAction, Action: "b"}
	held := func(seed string, first int) (ids []string) {
		r := NewReplica()
		r.Begin(Epoch{Number: 1, Rules: rules, Learner: learner.NewUniform()})
		d := NewDecider(r, []byte(seed), seed, 0, 10)
		for i := range 4000 {
			var dec codec.Decision
			id := fmt.Sprint("id", (i+first)%4000)
			if res := d.Decide(&dec, fmt.Appendf(nil, `{"id":%q}`, id), "",
				Source{Offset: RequestSource}); res.Verdict != Decided {
				t.Fatal(res.Err)
			}
			switch {
			case dec.Mode == codec.Shadow && dec.Propensities[1] == 1 && slices.Equal(dec.Would, []float64{.5, .5}):
				ids = append(ids, id)
			case dec.Mode != codec.Live || dec.Propensities[1] != .5 || len(dec.Would) > 0:
				t.Fatalf("%+v", dec)
			}
		}
		slices.Sort(ids)
		return ids
	}
	ids := held("one", 0)
	if n := float64(len(ids)); math.Abs(n-400) > 4*math.Sqrt(400*.9) {
		t.Errorf("%v of 4,000 ids are held out, expected about 400", n)
	}
	if other := held("another", 1000); !slices.Equal(ids, other) {
		t.Error("another decider holds out other ids")
	}
	rules.HoldOut = 0
	if ids := held("one", 0); ids != nil {
		t.Errorf("%d ids are held out", len(ids))
	}
}

// TestJudgeMixesTheHeldOut: a round weighs by the law before its id is hashed, which covers the baseline in the
// learner's rounds and the learner in the baseline's.
func TestJudgeMixesTheHeldOut(t *testing.T) {
	rules := judgedRules()
	rules.HoldOut, rules.Mode = .1, codec.Live
	rules.Policies, rules.Candidates = nil, []Candidate{{Kind: BaselineCandidate}, {Kind: LearnerCandidate}}
	rules.Promote = Promotion{}
	for _, held := range []bool{false, true} {
		var j Judge
		j.Begin(1, false, rules)
		f := judged() // the learner plays b with ¼, the baseline with 0.1
		if f.Loss = 1; held {
			f.Mode, f.Propensities, f.Would = codec.Shadow, []float64{.9, .1}, []float64{.75, .25}
		}
		j.Add(f)
		mix := .1*.1 + .9*.25
		for i, p := range []float64{.1, .25} {
			if e, want := j.Estimates()[i], .5+p/mix*(1-.5); math.Abs(e.Value.Mean-want) > 1e-9 {
				t.Errorf("held out %t: %s is worth %v, want %v", held, e.Policy, e.Value.Mean, want)
			}
		}
	}
}
