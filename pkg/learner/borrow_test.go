package learner_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// borrowed is a round that another law played.
func borrowed(x *oracle.Input, n int64, law []float64, action int, loss float64) *learner.Round {
	return &learner.Round{Input: x, Action: action, Propensities: law, N: n, LearnedThrough: n - 1,
		Fate: learner.Observed, Loss: loss, Borrowed: true}
}

// TestBorrowedTeachesTheOracle holds that DA-FA learns from rounds of another law what it
// learns from its own, and counts them neither in γ nor in its certificate.
func TestBorrowedTeachesTheOracle(t *testing.T) {
	x := &oracle.Input{Features: []oracle.Feature{{Name: "x", Kind: oracle.Number, Value: 1}},
		Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	own, other := newLinear(), newLinear()
	played := learner.NewDAFA(own, must(learner.NewSchedule("balanced", own)))
	watched := learner.NewDAFA(other, must(learner.NewSchedule("balanced", other)))
	for n := int64(1); n <= 50; n++ {
		r := borrowed(x, n, []float64{1, 0}, 0, float64(n%2))
		watched.Learn(r)
		r.Borrowed = false
		played.Learn(r)
	}
	if a, b := must(own.AppendBinary(nil)), must(other.AppendBinary(nil)); !bytes.Equal(a, b) {
		t.Error("the oracles differ")
	}
	if watched.Learned() != 50 || played.Learned() != 50 {
		t.Errorf("learned %d, %d", watched.Learned(), played.Learned())
	}
	c := watched.Certificate()
	c.Regret, c.Bounded, c.Beta, c.Lost, c.Counted = 0, false, 0, 0, false // of the oracle
	if c != (learner.Certificate{}) {
		t.Errorf("charged: %+v", c)
	}
	_, before := watched.Propensities(nil, x)
	if want := must(learner.NewSchedule("balanced", other)).Gamma(2, 0, other.Regret()); before != want {
		t.Errorf("γ = %v before its first own round, want %v", before, want)
	}
	if _, after := played.Propensities(nil, x); !(after > before) {
		t.Errorf("γ = %v after 50 own rounds, %v before", after, before)
	}
	for _, fate := range []learner.Fate{learner.Skipped, learner.Withdrawn} {
		r := borrowed(x, 51, []float64{1, 0}, 0, 0)
		r.Fate = fate
		before := must(watched.AppendBinary(nil))
		if watched.Learn(r); !bytes.Equal(before, must(watched.AppendBinary(nil))) {
			t.Errorf("%v: learned", fate)
		}
	}
}

// TestBorrowedEXP4ByHand works the estimate by hand: plain importance weights, and nothing
// where an action is never played.
func TestBorrowedEXP4ByHand(t *testing.T) {
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	play := func(a int) policy { return policy(func(*oracle.Input) int { return a }) }
	e := must(learner.NewEXP4(policyList{play(0), play(1), play(0)}, learner.EXP4Options{Eta: .5}))
	e.Learn(borrowed(x, 1, []float64{.25, .75}, 0, .5))
	if got := e.AppendLosses(nil); got[0] != 2 || got[1] != 0 || got[2] != 2 {
		t.Errorf("estimates %v, want 2, 0, 2", got)
	}
	before := must(e.AppendBinary(nil))
	e.Learn(borrowed(x, 2, []float64{0, 1}, 1, 1))
	if !bytes.Equal(before, must(e.AppendBinary(nil))) {
		t.Error("it learned from a law that never plays a")
	}
	c := e.PolicyCertificate()
	if c.Rounds != 0 || c.Learned != 0 || c.Measured < 0 {
		t.Errorf("certificate %+v", c)
	}
}

// TestBorrowedEXP4Unbiased holds that the estimates of a long run are the policies' losses,
// which with the delay-adapted weights of own rounds they are not.
func TestBorrowedEXP4Unbiased(t *testing.T) {
	const rounds = 20_000
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	var class policyList
	for a := range 3 {
		class = append(class, policy(func(*oracle.Input) int { return a }))
	}
	e := must(learner.NewEXP4(class, learner.EXP4Options{Eta: .01}))
	rng := rand.New(rand.NewPCG(1, 2))
	law := make([]float64, 3)
	learner.Law(law, []float64{.1, .2, .7})
	mean := []float64{.3, .6, .8}
	for n := int64(1); n <= rounds; n++ {
		a := learner.Draw(law, rng.Uint64()>>11)
		loss := 0.0
		if rng.Float64() < mean[a] {
			loss = 1
		}
		e.Learn(borrowed(x, n, law, a, loss))
	}
	for a, sum := range e.AppendLosses(nil) {
		if sd := math.Sqrt(mean[a] / law[a] / rounds); math.Abs(sum/rounds-mean[a]) > 4*sd {
			t.Errorf("policy %d: mean estimate %v, want %v ± %v", a, sum/rounds, mean[a], sd)
		}
	}
	if w := e.AppendWeights(nil); w[0] < .99 {
		t.Errorf("weights %v: the first is best", w)
	}
}

// TestBorrowedModelsKeepTheTruth holds that evidence of rounds that another law played
// refutes what is wrong and not the truth, and is no regret.
func TestBorrowedModelsKeepTheTruth(t *testing.T) {
	w := newWorld(3)
	m := must(learner.NewModels(w.class, learner.ModelsOptions{Alarm: true}))
	reg := must(oracle.NewHedge(w.class, oracle.HedgeOptions{}))
	l := learner.NewDAFA(reg, learner.Fixed{G: 10})
	if err := l.Watch(m); err != nil {
		t.Fatal(err)
	}
	law := make([]float64, worldK)
	for n := int64(1); n <= 1500; n++ {
		x := w.input()
		a := int(n) % worldK
		clear(law)
		law[a] = 1
		loss := 0.0
		if w.rng.Float64() < w.truth(x)[a] {
			loss = 1
		}
		l.Learn(borrowed(x, n, law, a, loss))
	}
	p := l.Certificate().Plausible
	if p.Surviving >= worldSize/2 || p.Surviving < 1 {
		t.Errorf("%d of %d functions survive", p.Surviving, worldSize)
	}
	left := must(l.Models().Append(nil, .05))
	truth := false
	for _, f := range left {
		truth = truth || f.Function == 0
		if f.Regret != 0 {
			t.Errorf("function %d: regret %v of rounds that were not its own", f.Function, f.Regret)
		}
	}
	if !truth {
		t.Error("the truth is refuted")
	}
}
