package learner_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"hindsight/internal/testkit/daily"
	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// world is an environment that knows the truth f⋆ = f_0 of a sigmoid class.
type world struct {
	class   *oracle.LinearClass
	actions []oracle.Action
	rng     *rand.Rand
	f       []float64 // scratch
}

const worldSize, worldK, worldD = 30, 5, 4

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 17)), f: make([]float64, worldSize)}
	w.class, w.actions = sigmoidClass(w.rng, worldSize, worldK, worldD)
	return w
}

func (w *world) input() *oracle.Input {
	x := &oracle.Input{Actions: w.actions}
	for j := range worldD {
		x.Features = append(x.Features, oracle.Feature{Name: fmt.Sprint("x", j), Kind: oracle.Number,
			Value: 2*w.rng.Float64() - 1})
	}
	return x
}

// truth returns f⋆(x, ·).
func (w *world) truth(x *oracle.Input) []float64 {
	out := make([]float64, len(x.Actions))
	for a := range out {
		w.class.Eval(w.f, x, a)
		out[a] = w.f[0]
	}
	return out
}

// simulated is one round of a run and what the analysis needs to know of it.
type simulated struct {
	learner.Round
	truth    []float64
	old, now []float64 // f̂ when decided and when learned
}

// run plays DA-FA for rounds rounds; wait(t) is the number of later rounds that
// pass before round t's outcome comes. Feedback is FIFO. law may replace the law that is played.
func (w *world) run(l *learner.DAFA, rounds int, wait func(t int) int, law func(p, fhat []float64)) []*simulated {
	var all []*simulated
	due := make([]int, rounds)
	learned, ready := 0, 0
	for t := range rounds {
		due[t] = t + wait(t)
		s := &simulated{old: make([]float64, worldK), now: make([]float64, worldK)}
		s.Input = w.input()
		s.truth = w.truth(s.Input)
		s.Propensities, s.Gamma = l.Propensities(nil, s.Input)
		l.Oracle().Predict(s.old, s.Input)
		if law != nil {
			law(s.Propensities, s.old)
		}
		s.Action = learner.Draw(s.Propensities, w.rng.Uint64()>>11)
		if w.rng.Float64() < s.truth[s.Action] {
			s.Loss = 1
		}
		s.N, s.LearnedThrough, s.Fate = int64(t+1), int64(learned), learner.Observed
		all = append(all, s)
		for ; learned <= t && due[learned] <= t; learned++ {
			l.Oracle().Predict(all[learned].now, all[learned].Input)
			l.Learn(&all[learned].Round)
		}
		ready = learned
	}
	return all[:ready]
}

func dafaOver(w *world, o oracle.HedgeOptions, s learner.Schedule) *learner.DAFA {
	return learner.NewDAFA(must(oracle.NewHedge(w.class, o)), s)
}

// terms returns a round's regret and the three terms of its bound
// (K−1)/γ + (γ/4)·e_t + [p·g − min g].
func (s *simulated) terms() (regret, barrier, square, drift float64) {
	low, lowG, meanG, e := math.Inf(1), math.Inf(1), 0.0, 0.0
	for a, p := range s.Propensities {
		low = math.Min(low, s.truth[a])
		regret += p * s.truth[a]
		g := s.now[a] - s.old[a]
		lowG = math.Min(lowG, g)
		meanG += p * g
		e += p * (s.now[a] - s.truth[a]) * (s.now[a] - s.truth[a])
	}
	return regret - low, float64(len(s.Propensities)-1) / s.Gamma, s.Gamma / 4 * e, meanG - lowG
}

var waits = map[string]func(t int) int{
	"none":     func(int) int { return 0 },
	"constant": func(int) int { return 30 },
	"burst":    func(t int) int { return 79 - t%80 },
	"ragged":   func(t int) int { return t * 2654435761 >> 7 % 60 },
	"head":     func(t int) int { return max(0, 150-t) },
}

var schedules = map[string]learner.Schedule{
	"balanced": learner.Anytime{C: learner.Balanced},
	"cautious": learner.Anytime{C: learner.Cautious},
	"paper":    learner.Paper{T: 400},
	"greedy":   learner.Fixed{G: 3000},
}

// TestPathwiseInequality holds reg_t ≤ (K−1)/γ + (γ/4)e_t + [p·g − min g]
// (docs/algorithms.md, 3.1) on every round of simulated runs, and the certificate's
// drift against that of the true older predictions. Played greedily, the same
// check must fail.
func TestPathwiseInequality(t *testing.T) {
	if testing.Short() {
		t.Skip("arithmetic in one goroutine: go test without -short runs this")
	}
	smallest := math.Inf(1)
	for delays, wait := range waits {
		for name, s := range schedules {
			for seed := range daily.Seeds(t, 3, 3) {
				w := newWorld(seed)
				l := dafaOver(w, oracle.HedgeOptions{}, s)
				sum := 0.0
				for _, r := range w.run(l, 400, wait, nil) {
					regret, barrier, square, drift := r.terms()
					bound := barrier + square + drift
					sum += math.Min(drift, 1)
					if regret > bound+1e-9 {
						t.Fatalf("%s %s seed %d round %d: regret %v > %v + %v + %v", delays, name, seed, r.N,
							regret, barrier, square, drift)
					}
					if regret > 0.01 {
						smallest = math.Min(smallest, bound/regret)
					}
				}
				if got := l.Certificate().Drift; math.Abs(got-sum) > 1e-7*(1+sum) {
					t.Fatalf("%s %s seed %d: certificate's drift %v, true %v", delays, name, seed, got, sum)
				}
			}
		}
	}
	t.Logf("smallest bound/regret of a round: %.3f", smallest)

	broken := 0
	for seed := range uint64(3) {
		w := newWorld(seed)
		greedy := func(p, fhat []float64) {
			clear(p)
			best := 0
			for a, v := range fhat {
				if v < fhat[best] {
					best = a
				}
			}
			p[best] = 1
		}
		for _, r := range w.run(dafaOver(w, oracle.HedgeOptions{}, learner.Fixed{G: 30}), 400, waits["constant"],
			greedy) {
			if regret, barrier, square, drift := r.terms(); regret > barrier+square+drift {
				broken++
			}
		}
	}
	if broken == 0 {
		t.Error("the inequality holds for a greedy law too: the check cannot fail")
	}
}

// TestMeasuredDriftCovers: mean regret ≤ mean measured-drift certificate; a
// priori above it. A learner fed flipped losses must break it.
func TestMeasuredDriftCovers(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	const runs, rounds = 12, 1500
	for i, delays := range slices.Sorted(maps.Keys(waits)) {
		if !daily.Turn(t, i, 2) {
			continue
		}
		wait := waits[delays]
		regret, measured, apriori := 0.0, 0.0, 0.0
		for seed := range uint64(runs) {
			w := newWorld(100 + seed)
			l := dafaOver(w, oracle.HedgeOptions{}, learner.Anytime{C: learner.Balanced})
			for _, r := range w.run(l, rounds, wait, nil) {
				g, _, _, _ := r.terms()
				regret += g / runs
			}
			c := l.Certificate()
			measured += c.MeasuredDrift() / runs
			apriori += c.APriori() / runs
			if !c.Bounded || c.Beta <= 0 {
				t.Fatalf("%+v: not bounded", c)
			}
		}
		t.Logf("%s: regret %.1f, measured drift %.1f, a priori %.1f", delays, regret, measured, apriori)
		if regret > measured || measured > apriori+1 {
			t.Errorf("%s: regret %v, measured %v, a priori %v", delays, regret, measured, apriori)
		}
	}
	w := newWorld(7)
	l := dafaOver(w, oracle.HedgeOptions{}, learner.Anytime{C: learner.Balanced})
	regret := 0.0
	for range 4000 {
		x := w.input()
		truth := w.truth(x)
		law, gamma := l.Propensities(nil, x)
		a := learner.Draw(law, w.rng.Uint64()>>11)
		low := math.Inf(1)
		for b, p := range law {
			regret += p * truth[b]
			low = math.Min(low, truth[b])
		}
		regret -= low
		n := l.Learned() + 1
		l.Learn(&learner.Round{Input: x, Action: a, Propensities: law, Gamma: gamma, N: n, LearnedThrough: n - 1,
			Fate: learner.Observed, Loss: 1 - math.Round(truth[a])})
	}
	if m := l.Certificate().MeasuredDrift(); regret <= m {
		t.Errorf("flipped losses: regret %v within %v: the check cannot fail", regret, m)
	}
}

// TestDelay: with delay 0 DA-FA is the undelayed algorithm; with constant delay d
// it is the undelayed one on the same feedback, d rounds later.
func TestDelay(t *testing.T) {
	for _, d := range []int{0, 1, 7, 50} {
		w := newWorld(uint64(d))
		all := w.run(dafaOver(w, oracle.HedgeOptions{}, learner.Anytime{C: 8}), 300, func(int) int { return d }, nil)
		// By hand: the oracle, the schedule, the sampler, nothing else.
		reg := must(oracle.NewHedge(w.class, oracle.HedgeOptions{}))
		p, fhat := make([]float64, worldK), make([]float64, worldK)
		for t0, r := range all {
			if t0 >= d+1 {
				fed := all[t0-d-1]
				reg.Update(fed.Input, fed.Action, fed.Loss)
			}
			if want := int64(max(0, t0-d)); r.LearnedThrough != want {
				t.Fatalf("delay %d, round %d: learned through %d, want %d", d, r.N, r.LearnedThrough, want)
			}
			gamma := 8 * math.Sqrt(float64(worldK-1)*math.Max(float64(t0-d), 1)/(2*math.Log(worldSize)))
			reg.Predict(fhat, r.Input)
			learner.Solve(p, fhat, r.Gamma)
			learner.Law(p, p)
			if math.Abs(gamma-r.Gamma) > 1e-12*gamma {
				t.Fatalf("delay %d, round %d: γ = %v, want %v", d, r.N, r.Gamma, gamma)
			}
			for a := range p {
				if math.Float64bits(p[a]) != math.Float64bits(r.Propensities[a]) {
					t.Fatalf("delay %d, round %d: law %v, want %v", d, r.N, r.Propensities, p)
				}
			}
		}
	}
}

// TestCertificateByHand follows four rounds.
func TestCertificateByHand(t *testing.T) {
	reg := newLinear()
	l := learner.NewDAFA(reg, learner.Fixed{G: 4})
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	law, gamma := l.Propensities(nil, x) // f̂ = 0: uniform, μ = 3
	round := func(n, tau int64, fate learner.Fate, loss float64) *learner.Round {
		return &learner.Round{Input: x, Action: 0, Propensities: law, Gamma: gamma, N: n, LearnedThrough: tau,
			Fate: fate, Loss: loss}
	}
	l.Learn(round(1, 0, learner.Observed, 1)) // w = ½, u = ½: f̂_2 = (0.4, 0, 0)
	l.Learn(round(2, 0, learner.Imputed, 1))  // g = f̂_2 − f̂_1: drift 0.4/3 − 0
	l.Learn(round(3, 0, learner.Skipped, 0))
	l.Learn(round(4, 0, learner.Withdrawn, 0))
	got := l.Certificate()
	want := learner.Certificate{
		Rounds: 3, Learned: 2, Imputed: 1, Skipped: 1,
		Barrier: 2 * 2.0 / 4, MaxGamma: 4, Drift: 0.4 / 3, Regret: 0.5 + 0.25*0.5/1.5,
		SumSigma: 3, SumSqSig: 5, MaxSigma: 2, Lost: 2, Counted: true,
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"barrier", got.Barrier, want.Barrier}, {"drift", got.Drift, want.Drift}, {"regret", got.Regret, want.Regret},
		{"explored", got.Explored, 0},
		{"measured", got.MeasuredDrift(), want.Barrier + want.Regret + want.Drift + 1},
	} {
		if math.Abs(c.got-c.want) > 1e-14 {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	got.Barrier, got.Drift, got.Regret, got.Explored = want.Barrier, want.Drift, want.Regret, 0
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !math.IsInf(got.APriori(), 1) {
		t.Errorf("a priori %v without a stability constant", got.APriori())
	}
}

func TestSchedules(t *testing.T) {
	hedge := newHedge(oracle.HedgeOptions{})
	paper := newHedge(oracle.HedgeOptions{Eta: oracle.PaperEta})
	log := math.Log(20)
	for _, c := range []struct {
		explore string
		reg     oracle.Regressor
		n       int64
		want    float64
	}{
		{"balanced", hedge, 0, 8 * math.Sqrt(9/(2*log))},
		{"", hedge, 100, 8 * math.Sqrt(900/(2*log))},
		{"guaranteed", hedge, 100, 4 * math.Sqrt(900/(2*log))},
		{"cautious", hedge, 100, math.Sqrt(8) * math.Sqrt(900/(2*log))},
		{"3", paper, 100, 3 * math.Sqrt(900/(36*log))},
		{"balanced", newLinear(), 0, 20},
		{"balanced", newLinear(), 100, 200},
		{"50", newLinear(), 4, 100},
		{"1e9", newLinear(), 0, 1e9},
		{"theory", newLinear(), 100, math.Sqrt(8) * 30},
		{"theory", newLinear(), 0, 0},
	} {
		s := must(learner.NewSchedule(c.explore, c.reg))
		if g := s.Gamma(10, c.n, c.reg.Regret()); math.Abs(g-c.want) > 1e-12*c.want {
			t.Errorf("%s at %d: γ = %v, want %v", c.explore, c.n, g, c.want)
		}
	}
	// The paper's preset: γ = √(KT/(36 log|F|)).
	if g := (learner.Paper{T: 20_000}).Gamma(5, 77, paper.Regret()); math.Abs(g-math.Sqrt(
		5*20_000/(36*log))) > 1e-12*g {
		t.Errorf("paper: γ = %v", g)
	}
	for regret, want := range map[float64]float64{4: 20, 1: 40, .25: 40} { // R_t is 1 at least
		if g := (learner.Theory{C: 2}).Gamma(5, 100, regret); g != want {
			t.Errorf("theory at a regret of %v: γ = %v, want %v", regret, g, want)
		}
	}
	for _, bad := range []string{"bold", "-1", "0", "NaN", "Inf", "1.01e9"} {
		if _, err := learner.NewSchedule(bad, hedge); err == nil {
			t.Errorf("explore %q: accepted", bad)
		}
	}
}
