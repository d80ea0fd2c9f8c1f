package loop

import (
	"math"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// heldBack is a decider over a class of two functions of actions a and b, whose baseline is a: under one b is worse by
// .4, under the other better by .4.
func heldBack(t testing.TB, lose float64) *moded {
	t.Helper()
	class, err := oracle.NewTabularClass(nil, []string{"a", "b"}, []map[string][]float64{{"": {.5, .9}},
		{"": {.5, .1}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := oracle.NewHedge(class, oracle.HedgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := learner.NewDAFA(h, learner.Anytime{C: learner.Balanced})
	models, err := learner.NewModels(class, learner.ModelsOptions{})
	if err == nil {
		err = d.Watch(models)
	}
	if err != nil {
		t.Fatal(err)
	}
	rules := modedRules()
	rules.Actions, rules.Guard = []string{"a", "b"}, GuardRules{Margin: .02, Alpha: .05, LoseAtMost: lose}
	return newModed(t, rules, d)
}

// TestHoldBackByHand: at first the law is ½ each, of which b may have p with .4·p ≤ .02·.5; once what says that b is
// worse is refuted the learner decides, and where what says that it is better is it does not.
func TestHoldBackByHand(t *testing.T) {
	for _, loss := range []float64{0, 1} {
		m := heldBack(t, .02)
		d := m.decide(`{}`)
		if d.Mode != codec.Shadow || math.Abs(d.Propensities[1]-.025) > 1e-15 || d.Would[1] != .5 || d.Gamma == 0 {
			t.Fatalf("%+v", d)
		}
		for range 16 {
			f := m.feedback(m.decide(`{}`), codec.Observed, loss)
			f.Action = 1
			m.learn(f)
		}
		if d = m.decide(`{}`); loss == 0 && (d.Mode != codec.Live || d.Propensities[1] < .7 || len(d.Would) > 0) {
			t.Errorf("b is better: %+v", d)
		} else if loss == 1 && (d.Mode != codec.Shadow || d.Propensities[1] > .03) {
			t.Errorf("b is worse: %+v", d)
		}
		m.goOn(func(r *Rules) { r.Guard.LoseAtMost = 0 })
		if d = m.decide(`{}`); d.Mode != codec.Live {
			t.Errorf("without the guard: %+v", d)
		}
	}
}

// TestHoldBackIgnoresWhatIsOutstanding: neither rounds that were decided and not learned, nor the partition, nor the
// number of a round are in its law.
func TestHoldBackIgnoresWhatIsOutstanding(t *testing.T) {
	m := heldBack(t, .02)
	want := append([]float64(nil), m.decide(`{}`).Propensities...)
	for range 20 {
		m.decide(`{}`)
	}
	other := NewDecider(m.replica, []byte("other"), "m", 3, 1)
	other.Resume(1000, 0)
	var d codec.Decision
	other.Decide(&d, []byte(`{}`), "", Source{Offset: RequestSource})
	if got := m.decide(`{}`).Propensities; got[0] != want[0] || d.Propensities[0] != want[0] {
		t.Errorf("%v and %v, want %v", got, d.Propensities, want)
	}
}

// TestHoldBackNeedsATheorem: an oracle without one never decides.
func TestHoldBackNeedsATheorem(t *testing.T) {
	rules := modedRules()
	rules.Guard = GuardRules{Alpha: .05, LoseAtMost: .02}
	if d := newModed(t, rules, newDAFA(t)).decide(`{}`); d.Mode != codec.Shadow || d.Propensities[0] != 1 {
		t.Errorf("%+v", d)
	}
}

// TestHoldBackCosts: the guard counts rounds that are held back, and what that costs; a mark keeps both.
func TestHoldBackCosts(t *testing.T) {
	m := heldBack(t, .02)
	var g, back Guard
	g.Begin(1, false, m.replica.epoch.Rules)
	for action := range 2 {
		f := m.feedback(m.decide(`{}`), codec.Observed, 0)
		f.Action = action
		g.Add(f)
	}
	g.Add(m.feedback(m.decide(`{}`), codec.Skipped, 0))
	want := .5/.975 + .5/.025 - 2
	if s := g.Sums(); s.Held != 3 || s.Rounds != 0 || math.Abs(s.Forgone-want) > 1e-9 {
		t.Errorf("%+v, want 3 rounds and %v", s, want)
	}
	if err := back.Restore(g.Append(nil), 1, m.replica.epoch.Rules); err != nil || back.Sums() != g.Sums() {
		t.Error(err, back.Sums())
	}
}
