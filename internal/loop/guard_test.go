package loop

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"hindsight/pkg/codec"
	"hindsight/pkg/learner"
)

func guardRules(margin float64) *Rules {
	r := modedRules()
	r.Actions, r.Guard = []string{"a", "b"}, GuardRules{Margin: margin, Alpha: .05}
	return r
}

// TestGuardByHand works two rounds by hand. The baseline is a, and a has probability ¼: a
// round that played a weighs 4, one that played b nothing.
func TestGuardByHand(t *testing.T) {
	var g Guard
	g.Begin(1, false, guardRules(.25))
	f := codec.Feedback{N: 1, Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.25, .75},
		Fate: codec.Observed, Loss: .5, Context: []byte(`{}`)}
	g.Add(&f) // Y = (4−1)(1−½) = 1.5
	f.N, f.Action, f.Loss = 2, 1, 1
	g.Add(&f) // Y = (0−1)(1−1) = 0
	s := g.Sums()
	if s.Rounds != 2 || s.Learner != 1.5 || s.Baseline != 2 || s.Weight != 4 || s.Excess != 1.5 {
		t.Errorf("%+v", s)
	}
	sum := 0.0
	for j, rate := 0, .5/1.25; j < guardRates; j, rate = j+1, rate/2 {
		want := (1 + rate*1.25) * (1 - rate*.25)
		sum += want
		if math.Abs(math.Exp(s.Log[j])-want) > 1e-14 {
			t.Errorf("rate %v: %v, want %v", rate, math.Exp(s.Log[j]), want)
		}
	}
	if e := math.Exp(s.Evidence()); math.Abs(e-sum/guardRates) > 1e-13 {
		t.Errorf("evidence %v, want %v", e, sum/guardRates)
	}
}

// TestGuardCounts holds which feedback is evidence: of rounds decided live in the epochs
// since it began, with a loss.
func TestGuardCounts(t *testing.T) {
	base := codec.Feedback{Epoch: 2, Actions: []string{"a", "b"}, Propensities: []float64{.5, .5}, Fate: codec.Observed,
		Loss: .5, Context: []byte(`{}`)}
	for _, c := range []struct {
		name   string
		change func(f *codec.Feedback)
		want   int64
	}{
		{"observed", func(*codec.Feedback) {}, 1},
		{"imputed", func(f *codec.Feedback) { f.Fate = codec.Imputed }, 1},
		{"skipped", func(f *codec.Feedback) { f.Fate = codec.Skipped }, 0},
		{"withdrawn", func(f *codec.Feedback) { f.Fate = codec.WithdrawnRound }, 0},
		{"shadow", func(f *codec.Feedback) { f.Mode = codec.Shadow }, 0},
		{"of an earlier epoch", func(f *codec.Feedback) { f.Epoch = 1 }, 0},
		{"of a later epoch", func(f *codec.Feedback) { f.Epoch = 3 }, 1},
		{"not to be read", func(f *codec.Feedback) { f.Context = nil }, 0},
	} {
		var g Guard
		g.Begin(2, false, guardRules(0))
		f := base
		c.change(&f)
		if g.Add(&f); g.Sums().Rounds != c.want {
			t.Errorf("%s: %d rounds", c.name, g.Sums().Rounds)
		}
	}
}

// TestGuardBegins holds when evidence is kept over epochs, and that it survives a mark.
func TestGuardBegins(t *testing.T) {
	rules := func(change func(r *Rules)) *Rules {
		r := guardRules(0)
		change(r)
		return r
	}
	same := func(*Rules) {}
	for _, c := range []struct {
		name      string
		continues bool
		change    func(r *Rules)
		kept      bool
	}{
		{"goes on", true, same, true},
		{"another learner", false, same, false},
		{"masked", true, func(r *Rules) { r.Masked = []string{"b"} }, true},
		{"paused", true, func(r *Rules) { r.Mode = codec.Paused }, false},
		{"another baseline", true, func(r *Rules) { r.Baseline.Kind = UniformAction }, false},
		{"another margin", true, func(r *Rules) { r.Guard.Margin = .1 }, false},
	} {
		var g Guard
		g.Begin(1, false, guardRules(0))
		g.Add(&codec.Feedback{N: 1, Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.5, .5},
			Fate: codec.Observed, Loss: .5, Context: []byte(`{}`)})
		var back Guard
		if err := back.Restore(g.Append(nil), 1, guardRules(0)); err != nil || back.Sums() != g.Sums() {
			t.Fatal(err, back.Sums())
		}
		for _, g := range []*Guard{&g, &back} {
			g.Begin(2, c.continues, rules(c.change))
			g.Begin(1, false, guardRules(0)) // a repeat
			if kept := g.Sums().Rounds == 1; kept != c.kept {
				t.Errorf("%s: kept %v", c.name, kept)
			}
		}
	}
}

func FuzzGuardRestore(f *testing.F) {
	var g Guard
	g.Begin(1, false, guardRules(0))
	f.Add(g.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var g Guard
		if g.Restore(b, 1, guardRules(0)) == nil && len(b) > 0 {
			var back Guard
			if err := back.Restore(g.Append(nil), 1, guardRules(0)); err != nil || !bytes.Equal(back.Append(nil),
				g.Append(nil)) {
				t.Fatal(err)
			}
		}
	})
}

// guarded plays rounds of a learner whose law moves between its least and its largest
// propensity of the baseline's action, and reports whether the guard alarms and when.
// play may say that the baseline's law is worth less than the learner's by a drifting gap.
func guarded(seed uint64, rounds int, margin float64, loss func(t int) (baseline, other float64)) int {
	rng := rand.New(rand.NewPCG(seed, 5))
	var g Guard
	g.Begin(1, false, guardRules(margin))
	f := codec.Feedback{Epoch: 1, Actions: []string{"a", "b"}, Propensities: make([]float64, 2), Fate: codec.Observed,
		Context: []byte(`{}`)}
	for t := range rounds {
		p := .05 + .4*float64((t/7)%3)/2 // of the baseline's action a
		learner.Law(f.Propensities, []float64{p, 1 - p})
		f.N, f.Action = int64(t+1), learner.Draw(f.Propensities, rng.Uint64()>>11)
		a, b := loss(t)
		if f.Loss = 0; rng.Float64() < []float64{a, b}[f.Action] {
			f.Loss = 1
		}
		if g.Add(&f) {
			return t + 1
		}
	}
	return 0
}

// TestGuardFalseAlarms holds the level where the margin is kept just so: on average, not in
// every round, by a learner that is at times much worse and at times much better.
func TestGuardFalseAlarms(t *testing.T) {
	runs, rounds := 200, 600
	switch {
	case os.Getenv("HINDSIGHT_LONG") == "1":
		runs, rounds = 4000, 5000
	case testing.Short():
		runs = 40
	}
	alarms := 0
	for seed := range runs {
		// δ = (1−p)(ℓ_b − ℓ_a), of which the average over a period of p is the margin.
		if guarded(uint64(seed), rounds, .05, func(t int) (float64, float64) {
			p := .05 + .4*float64((t/7)%3)/2
			gap := .05 / (1 - p)
			if (t/21)%2 == 0 {
				gap *= 1.5
			} else {
				gap *= .5
			}
			return .4, .4 + gap
		}) > 0 {
			alarms++
		}
	}
	t.Logf("%d of %d runs", alarms, runs)
	if share := float64(alarms) / float64(runs); share > .05+3*math.Sqrt(.05*.95/float64(runs)) {
		t.Errorf("%d false alarms in %d runs at level 0.05", alarms, runs)
	}
}

// TestGuardPower holds that a learner that is worse is found out, the sooner the worse.
func TestGuardPower(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 10
	}
	late := map[float64]int{}
	for _, gap := range []float64{.3, .6} {
		found, sum := 0, 0
		for seed := range runs {
			if n := guarded(uint64(seed), 4000, .05, func(int) (float64, float64) { return .3, .3 + gap }); n > 0 {
				found, sum = found+1, sum+n
			}
		}
		if found < runs*9/10 {
			t.Errorf("worse by %v: found in %d of %d runs", gap, found, runs)
		}
		late[gap] = sum / max(found, 1)
		t.Logf("worse by %v a round of another action: found after %d rounds on average", gap, late[gap])
	}
	if late[.6]*2 > late[.3] {
		t.Errorf("twice as bad takes %d rounds, and not less than half of %d", late[.6], late[.3])
	}
}

// TestGuardDoesNotAllocate holds it for what a joiner adds to every feedback.
func TestGuardDoesNotAllocate(t *testing.T) {
	var g Guard
	g.Begin(1, false, guardRules(.02))
	f := codec.Feedback{Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.5, .5}, Fate: codec.Observed,
		Loss: .5, Context: []byte(`{"features":{"x":1,"y":2}}`)}
	add := func() {
		f.N++
		g.Add(&f)
	}
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations a feedback", n)
	}
	if n := g.Sums().Rounds; n != f.N {
		t.Errorf("%d of %d feedbacks count", n, f.N)
	}
}

func BenchmarkGuard(b *testing.B) {
	var g Guard
	g.Begin(1, false, guardRules(.02))
	f := codec.Feedback{Epoch: 1, Actions: []string{"a", "b"}, Propensities: []float64{.5, .5}, Fate: codec.Observed,
		Loss: .5, Context: []byte(`{"features":{"x":1,"y":2}}`)}
	b.ReportAllocs()
	for b.Loop() {
		f.N++
		g.Add(&f)
	}
}
