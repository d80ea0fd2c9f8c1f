package learner_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/learner/learnertest"
	"hindsight/pkg/oracle"
)

// watched returns DA-FA over a hedge oracle that keeps the models of its class.
func watched(h *oracle.Hedge, o learner.ModelsOptions) *learner.DAFA {
	d := learner.NewDAFA(h, learner.Anytime{C: learner.Balanced})
	if err := d.Watch(must(learner.NewModels(h.Class(), o))); err != nil {
		panic(err)
	}
	return d
}

func TestContractWatched(t *testing.T) {
	for name, o := range map[string]learner.ModelsOptions{"models": {Alpha: 0.3}, "alarm": {Alarm: true}} {
		t.Run(name, func(t *testing.T) {
			learnertest.Test(t, func() learner.Learner {
				return watched(newHedge(oracle.HedgeOptions{}), o)
			}, learnertest.Options{})
		})
	}
	t.Run("eta by what is outstanding", func(t *testing.T) {
		learnertest.Test(t, func() learner.Learner {
			return watched(newHedge(oracle.HedgeOptions{Outstanding: true}), learner.ModelsOptions{})
		}, learnertest.Options{})
	})
	t.Run("on arrival", func(t *testing.T) {
		learnertest.Test(t, arrivals, learnertest.Options{Arrival: true})
	})
}

// arrivals returns DA-FA over a hedge oracle that learns in the order of arrival.
func arrivals() learner.Learner {
	h := newHedge(oracle.HedgeOptions{})
	d := learner.NewDAFA(h, learner.Anytime{C: learner.Balanced})
	if err := d.WatchArrivals(must(learner.NewModels(h.Class(), learner.ModelsOptions{Alarm: true}))); err != nil {
		panic(err)
	}
	return d
}

// slowModels is what [learner.Models] keeps, by the formulas: every sum over all rounds
// anew, all functions for ever.
type slowModels struct {
	w      *world
	rounds []*learner.Round
}

// at returns L_f, R_f after n rounds of evidence.
func (s *slowModels) at(n int) (loss, regret []float64) {
	size := s.w.class.Size()
	loss, regret = make([]float64, size), make([]float64, size)
	values := make([][]float64, worldK)
	for _, r := range s.rounds[:n] {
		for a := range values {
			values[a] = make([]float64, size)
			s.w.class.Eval(values[a], r.Input, a)
		}
		for f := range size {
			e := values[r.Action][f] - r.Loss
			loss[f] += e * e
			low, mean := 1.0, 0.0
			for a, p := range r.Propensities {
				low, mean = math.Min(low, values[a][f]), mean+p*values[a][f]
			}
			regret[f] += mean - low
		}
	}
	return loss, regret
}

// TestModelsByFormula compares the models with the formulas: the set at several levels, the
// bound, p-values, losses, regrets.
func TestModelsByFormula(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(40 + seed)
		d := watched(must(oracle.NewHedge(w.class, oracle.HedgeOptions{})), learner.ModelsOptions{Alarm: seed%2 == 0})
		var s slowModels
		s.w = w
		top := make([]float64, worldSize) // max_s log M_f
		for i, r := range w.run(d, 300, waits["ragged"], nil) {
			s.rounds = append(s.rounds, &r.Round)
			if n := i + 1; n%16 == 0 {
				loss, _ := s.at(n)
				for f := range top {
					mean := 0.0
					for _, l := range loss {
						mean += math.Exp(2*(loss[f]-l)) / worldSize
					}
					top[f] = math.Max(top[f], math.Log(mean))
				}
			}
		}
		m := must(learner.NewModels(w.class, learner.ModelsOptions{}))
		silent := slowModels{w: w}
		for i, r := range s.rounds {
			m.Add(r)
			if i%60 == 59 {
				for _, fate := range []learner.Fate{learner.Skipped, learner.Imputed, learner.Withdrawn} {
					other := *s.rounds[i/2]
					other.Fate, other.Loss = fate, math.NaN()
					m.Add(&other)
					if fate != learner.Withdrawn {
						silent.rounds = append(silent.rounds, &other)
					}
				}
			}
		}
		_, unseen := silent.at(len(silent.rounds))
		charged := float64(2 * (len(s.rounds) / 60))
		loss, regret := s.at(len(s.rounds))
		least := slices.Min(loss)
		for _, alpha := range []float64{0.5, 0.05, 0.001} {
			got := must(m.Append(nil, alpha))
			j, worst, random := 0, 0.0, 0.0
			for f := range top {
				if math.Abs(top[f]-math.Log(1/alpha)) < 1e-6 {
					t.Fatalf("seed %d: function %d is on the edge: take another seed", seed, f)
				}
				if top[f] > math.Log(1/alpha) {
					continue
				}
				want := learner.Model{Function: f, PValue: math.Min(1, math.Exp(-top[f])), Loss: loss[f] - least,
					Regret: charged + regret[f]}
				worst = math.Max(worst, want.Regret)
				random = math.Max(random, regret[f]+unseen[f])
				if j == len(got) || got[j].Function != f || math.Abs(got[j].PValue-want.PValue) > 1e-6 ||
					math.Abs(got[j].Loss-want.Loss) > 1e-9 || math.Abs(got[j].Regret-want.Regret) > 1e-9 {
					t.Fatalf("seed %d, alpha %v: function %d: %+v, want %+v", seed, alpha, f, got, want)
				}
				j++
			}
			if j != len(got) {
				t.Fatalf("seed %d, alpha %v: too many: %+v", seed, alpha, got)
			}
			if p := m.Plausible(); alpha == 0.05 && (p.Surviving != j || math.Abs(p.Bound-worst) > 1e-9 ||
				math.Abs(p.Random-random) > 1e-9 || float64(p.Charged) != charged) {
				t.Errorf("seed %d: %+v, want %d functions and %v", seed, p, j, worst)
			}
		}
		if p := d.Certificate().Plausible; p.Surviving != m.Plausible().Surviving ||
			math.Abs(p.Bound+charged-m.Plausible().Bound) > 1e-9 {
			t.Errorf("seed %d: in DA-FA %+v, apart %+v", seed, p, m.Plausible())
		}
	}
}

// TestWatchedLearnsAlike holds that models change nothing that is learned or decided.
func TestWatchedLearnsAlike(t *testing.T) {
	for name, wait := range waits {
		plain := newWorld(3).run(dafaOver(newWorld(3), oracle.HedgeOptions{}, learner.Anytime{C: learner.Balanced}),
			400, wait, nil)
		w := newWorld(3)
		seen := w.run(watched(must(oracle.NewHedge(w.class, oracle.HedgeOptions{})),
			learner.ModelsOptions{Alarm: true}), 400, wait, nil)
		for i, r := range plain {
			if !slices.Equal(r.Propensities, seen[i].Propensities) || r.Gamma != seen[i].Gamma {
				t.Fatalf("%s: round %d is decided otherwise", name, i)
			}
		}
	}
}

// TestModelsFromOldSnapshot holds that a snapshot without models is taken: its rounds are
// charged, and what follows is evidence.
func TestModelsFromOldSnapshot(t *testing.T) {
	w := newWorld(5)
	old := dafaOver(w, oracle.HedgeOptions{}, learner.Anytime{C: learner.Balanced})
	rounds := w.run(old, 100, waits["none"], nil)
	b := must(old.AppendBinary(nil))
	d := watched(must(oracle.NewHedge(w.class, oracle.HedgeOptions{})), learner.ModelsOptions{Alarm: true})
	if err := d.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if p := d.Certificate().Plausible; p.Charged != 100 || p.Bound != 100 || p.Random != 100 ||
		p.Surviving != worldSize {
		t.Errorf("%+v", p)
	}
	for _, r := range rounds {
		d.Learn(&r.Round)
	}
	if p := d.Certificate().Plausible; p.Charged != 100 || p.Bound <= 100 || p.Surviving == worldSize {
		t.Errorf("after 100 more rounds: %+v", p)
	}
	if err := old.UnmarshalBinary(must(d.AppendBinary(nil))); err == nil {
		t.Error("a learner without models takes a snapshot with them")
	}
	other := watched(must(oracle.NewHedge(w.class, oracle.HedgeOptions{})),
		learner.ModelsOptions{Alpha: 0.01, Alarm: true})
	if other.UnmarshalBinary(must(d.AppendBinary(nil))) == nil {
		t.Error("a snapshot of another level is taken")
	}
}

// TestModelsRefuse holds what cannot be watched, and levels that cannot be answered.
func TestModelsRefuse(t *testing.T) {
	h := newHedge(oracle.HedgeOptions{})
	for _, alpha := range []float64{-1, 1, 2, math.NaN()} {
		if _, err := learner.NewModels(h.Class(), learner.ModelsOptions{Alpha: alpha}); err == nil {
			t.Errorf("alpha %v is taken", alpha)
		}
	}
	m := must(learner.NewModels(h.Class(), learner.ModelsOptions{}))
	for _, alpha := range []float64{-1, 1e-6, 1, math.NaN()} {
		if _, err := m.Append(nil, alpha); err == nil {
			t.Errorf("the set at alpha %v is known", alpha)
		}
	}
	if all := must(m.Append(nil, 0)); len(all) != h.Size() || all[0].PValue != 1 {
		t.Errorf("at first %+v", all)
	}
	if learner.NewDAFA(newLinear(), learner.Root{C: 20}).Watch(m) == nil {
		t.Error("a linear oracle is watched")
	}
	if dafaOver(newWorld(1), oracle.HedgeOptions{}, learner.Fixed{}).Watch(m) == nil {
		t.Error("a class of another size is watched")
	}
	taught := learner.NewDAFA(h, learner.Fixed{})
	taught.Learn(&learner.Round{Input: &oracle.Input{Vector: make([]float64, 4), Actions: []oracle.Action{{Name: "a"}}},
		Propensities: []float64{1}, N: 1, Fate: learner.Observed})
	if taught.Watch(m) == nil {
		t.Error("an oracle that has learned a round is watched")
	}
}

// FuzzWatched restores arbitrary bytes and uses whatever comes of it.
func FuzzWatched(f *testing.F) {
	fresh := func() *learner.DAFA {
		return watched(newHedge(oracle.HedgeOptions{}), learner.ModelsOptions{Alarm: true})
	}
	rng := rand.New(rand.NewPCG(2, 2))
	l := fresh()
	x := &oracle.Input{Vector: []float64{.1, -.2, .3, .4}}
	for a := range 5 {
		x.Actions = append(x.Actions, oracle.Action{Name: string(rune('a' + a))})
	}
	teach := func(l *learner.DAFA, n int64) {
		law, gamma := l.Propensities(nil, x)
		l.Learn(&learner.Round{Input: x, Action: int(n % 5), Propensities: law, Gamma: gamma, N: n,
			Fate: learner.Observed, Loss: float64(n % 2)})
	}
	for n := range int64(80) {
		teach(l, n+1)
		if n%20 == 0 {
			f.Add(must(l.AppendBinary(nil)))
		}
	}
	whole := must(l.AppendBinary(nil))
	for range 20 {
		b := bytes.Clone(whole)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := fresh()
		if l.UnmarshalBinary(b) != nil {
			return
		}
		for n := range int64(40) {
			teach(l, 1000+n)
		}
		if p := l.Certificate().Plausible; math.IsNaN(p.Bound) || math.IsNaN(l.Models().Evidence()) {
			t.Fatalf("%+v", p)
		}
		if _, err := l.AppendBinary(nil); err != nil {
			t.Fatal(err)
		}
	})
}
