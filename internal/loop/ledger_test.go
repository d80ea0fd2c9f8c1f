package loop

import (
	"bytes"
	"math"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

func judgedRules() *Rules {
	r := modedRules()
	r.Actions = []string{"a", "b"}
	r.Candidates = []Candidate{{Kind: BaselineCandidate}, {Kind: UniformCandidate}, {Kind: AlwaysCandidate,
		Action: "b"}, {Kind: LearnerCandidate}, {Kind: PolicyCandidate, Action: "f#1"}, {Kind: PolicyCandidate,
		Action: "f#2"}}
	r.Features = []FeatureRule{{Name: "other", Kind: NumberFeature}} // the policies read what the model does not list
	lists, err := learner.NewDecisionLists(r.Actions, []learner.DecisionList{{{If: []learner.Condition{{Feature: "hour",
		Kind: oracle.Number, Lo: 3, Hi: 4}}, Then: "b"}, {Then: "a"}}, {{Then: "a"}}})
	if err != nil {
		panic(err)
	}
	r.Policies = []FilePolicies{{Policies: lists, From: 4}}
	r.Promote = Promotion{Of: r.Candidates[2], BetterBy: .01, Alpha: .05}
	return r
}

// judged is a feedback that played b with probability ¼, in a context whose own baseline plays a with 0.9.
func judged() *codec.Feedback {
	return &codec.Feedback{N: 1, Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.75, .25}, Action: 1,
		Fate: codec.Observed, Loss: .5, Context: []byte(`{"features":{"hour":3},"baseline":{"a":0.9,"b":0.1}}`)}
}

// TestJudgeByHand works the first round by hand: all predicted losses are ½, so that a candidate's value is ½.
// The weights are what its law gives b over ¼.
func TestJudgeByHand(t *testing.T) {
	var j Judge
	j.Begin(1, false, judgedRules())
	f := judged()
	f.Loss = 1
	j.Add(f)
	for i, w := range []float64{.4, 2, 4, 1, 4, 0} {
		e := j.Ledger().Estimates(nil)[i]
		if want := .5 + w*(1-.5); math.Abs(e.Value.Mean-want) > 1e-9 || e.Rounds != 1 {
			t.Errorf("%s: value %v of %d rounds, want %v", j.Rules().Candidates[i], e.Value.Mean, e.Rounds, want)
		}
		if want := -(w - 1) * (1 - .5); math.Abs(e.Gain.Mean-want) > 1e-9 {
			t.Errorf("%s: gain %v, want %v", j.Rules().Candidates[i], e.Gain.Mean, want)
		}
	}
}

// TestJudgeCounts holds which feedback is a round of each candidate.
func TestJudgeCounts(t *testing.T) {
	for _, c := range []struct {
		name           string
		change         func(f *codec.Feedback)
		rounds         int64 // that count
		known, learner int64 // with a loss, of uniform and of the learner
	}{
		{"observed", func(*codec.Feedback) {}, 1, 1, 1},
		{"imputed", func(f *codec.Feedback) { f.Fate = codec.Imputed }, 1, 1, 1},
		{"skipped", func(f *codec.Feedback) { f.Fate = codec.Skipped }, 1, 0, 0},
		{"withdrawn", func(f *codec.Feedback) { f.Fate = codec.WithdrawnRound }, 0, 0, 0},
		{"its id was used", func(f *codec.Feedback) { f.Fate, f.Reason = codec.Skipped, codec.ReasonDuplicateID }, 0, 0,
			0},
		{"shadow", func(f *codec.Feedback) { f.Mode, f.Would = codec.Shadow, []float64{.5, .5} }, 1, 1, 1},
		{"apprentice", func(f *codec.Feedback) { f.Mode = codec.Apprentice }, 1, 1, 0},
		{"of an earlier epoch", func(f *codec.Feedback) { f.Epoch = 0 }, 0, 0, 0},
		{"without a propensity", func(f *codec.Feedback) { f.Propensities = []float64{1, 0} }, 0, 0, 0},
	} {
		var j Judge
		j.Begin(1, false, judgedRules())
		f := judged()
		c.change(f)
		j.Add(f)
		all, _ := j.Ledger().Rounds()
		if e := j.Ledger().Estimates(nil); all != c.rounds || e[1].Rounds != c.known || e[3].Rounds != c.learner {
			t.Errorf("%s: %d rounds, %d and %d with a loss", c.name, all, e[1].Rounds, e[3].Rounds)
		}
	}
}

// TestJudgeBegins holds when evidence is kept over epochs, and that it survives a mark to the bit.
func TestJudgeBegins(t *testing.T) {
	for _, c := range []struct {
		name      string
		continues bool
		change    func(r *Rules)
		kept      bool
	}{
		{"goes on", true, func(*Rules) {}, true},
		{"another learner", false, func(*Rules) {}, false},
		{"paused", true, func(r *Rules) { r.Mode = codec.Paused }, false},
		{"another baseline", true, func(r *Rules) { r.Baseline.Kind = UniformAction }, false},
		{"other candidates", true, func(r *Rules) { r.Candidates = r.Candidates[1:] }, false},
		{"another file of policies", true, func(r *Rules) { r.Policies[0].Sum[0]++ }, false},
		{"another rule", true, func(r *Rules) { r.Promote.Alpha = .1 }, false},
		{"no candidates", true, func(r *Rules) { r.Candidates = nil }, false},
	} {
		var j, back Judge
		j.Begin(1, false, judgedRules())
		j.Add(judged())
		if err := back.Restore(j.Append(nil), 1, judgedRules()); err != nil || !bytes.Equal(back.Append(nil),
			j.Append(nil)) {
			t.Fatal(err)
		}
		for _, j := range []*Judge{&j, &back} {
			rules := judgedRules()
			c.change(rules)
			j.Begin(2, c.continues, rules)
			j.Begin(1, false, judgedRules()) // a repeat
			rounds := int64(0)
			if j.Ledger() != nil {
				rounds, _ = j.Ledger().Rounds()
			}
			if kept := rounds == 1; kept != c.kept {
				t.Errorf("%s: kept %v", c.name, kept)
			}
		}
	}
}

// TestPromotionTo holds which switch of the mode lets a candidate take over.
func TestPromotionTo(t *testing.T) {
	for _, c := range []struct {
		of     CandidateKind
		at, to codec.Mode
		ok     bool
	}{
		{BaselineCandidate, codec.Live, codec.Shadow, true},
		{BaselineCandidate, codec.Apprentice, codec.Apprentice, false},
		{LearnerCandidate, codec.Shadow, codec.Live, true},
		{LearnerCandidate, codec.Live, codec.Live, false},
		{LearnerCandidate, codec.Paused, codec.Paused, false},
		{UniformCandidate, codec.Live, codec.Live, false},
	} {
		if to, ok := (Promotion{Of: Candidate{Kind: c.of}}).To(c.at); to != c.to || ok != c.ok {
			t.Errorf("%s in mode %s: %s, %t", Candidate{Kind: c.of}, c.at, to, ok)
		}
	}
}

func FuzzJudgeRestore(f *testing.F) {
	var j Judge
	j.Begin(1, false, judgedRules())
	j.Add(judged())
	f.Add(j.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var j, back Judge
		if j.Restore(b, 1, judgedRules()) == nil && len(b) > 0 {
			if err := back.Restore(j.Append(nil), 1, judgedRules()); err != nil || !bytes.Equal(back.Append(nil),
				j.Append(nil)) {
				t.Fatal(err)
			}
		}
	})
}

func TestJudgeDoesNotAllocate(t *testing.T) {
	var j Judge
	j.Begin(1, false, judgedRules())
	f := judged()
	j.Add(f)
	if n := testing.AllocsPerRun(100, func() { f.N++; j.Add(f) }); n > 0 {
		t.Errorf("%v allocations a feedback", n)
	}
}
