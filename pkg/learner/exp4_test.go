package learner_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// constant is the policy that plays one position.
func constant(a int) policy {
	return policy(func(x *oracle.Input) int { return min(a, len(x.Actions)-1) })
}

func actions(k int) []oracle.Action {
	out := make([]oracle.Action, k)
	for a := range out {
		out[a].Name = fmt.Sprint("a", a)
	}
	return out
}

func newEXP4(o learner.EXP4Options, policies ...policy) *learner.EXP4 {
	return must(learner.NewEXP4(policyList(policies), o))
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*math.Max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestEXP4Example is worked by hand: three policies, two actions, η = log 2, so that a
// loss of 1 halves a weight once.
//
// Policies 1 and 2 play a0, policy 3 plays a1; w = (1/3, 1/3, 1/3), Q = (2/3, 1/3).
//
//	Round 1 plays a1 with loss 1 and is learned at once: Q̃ = Q, ĉ = (0, 0, 1/(1/3)) = (0, 0, 3).
//	w ∝ (1, 1, 2⁻³), Σ = 17/8: w = (8/17, 8/17, 1/17), law (16/17, 1/17).
//
// Round 2 was decided before that, with Q = (2/3, 1/3), plays a0 with loss ½, and is
// learned now: Q̃(a0) = 16/17 > 2/3.
//
//	ĉ = ½/(16/17) = 17/32 for policies 1 and 2: Ĉ = (17/32, 17/32, 3);
//	w ∝ (1, 1, 2^(17/32−3)); plain: ĉ = ½/(2/3) = ¾, w ∝ (1, 1, 2^(¾−3)).
func TestEXP4Example(t *testing.T) {
	x := &oracle.Input{Actions: actions(2)}
	for _, c := range []struct {
		plain bool
		loss  float64
	}{{false, 17.0 / 32}, {true, 0.75}} {
		e := newEXP4(learner.EXP4Options{Eta: math.Ln2, Plain: c.plain}, constant(0), constant(0), constant(1))
		law, gamma := e.Propensities(nil, x)
		near(t, "Q(a0)", law[0], 2.0/3)
		if gamma != 0 || e.NeedsFIFO() {
			t.Errorf("γ = %v, needs FIFO: %v", gamma, e.NeedsFIFO())
		}
		e.Learn(&learner.Round{Input: x, Action: 1, Propensities: law, N: 1, Fate: learner.Observed, Loss: 1})
		for i, want := range []float64{8.0 / 17, 8.0 / 17, 1.0 / 17} {
			near(t, fmt.Sprint("w", i), e.AppendWeights(nil)[i], want)
		}
		e.Learn(&learner.Round{Input: x, Action: 0, Propensities: law, N: 2, Fate: learner.Observed, Loss: 0.5})
		for i, want := range []float64{c.loss, c.loss, 3} {
			near(t, fmt.Sprint("Ĉ", i), e.AppendLosses(nil)[i], want)
		}
		rest := math.Exp2(c.loss - 3)
		near(t, "w2", e.AppendWeights(nil)[2], rest/(2+rest))

		// Measured: ΣL − min Ĉ = 1.5 − Ĉ_1. A priori: log 3/η + Σ η·K/2 + η·σ_2, σ_2 = 1.
		// Measured drift: round 1 has variance η/2·Σ min/max = η/2·2 and no drift. Round 2:
		// Q = (2/3, 1/3) then and (16/17, 1/17) at learning; with the max, variance
		// η/2·((2/3)/(16/17) + (1/17)/(1/3)) = η/2·(17/24 + 3/17), drift 1/3 − 1/17 = 14/51;
		// plain, η/2·((16/17)/(2/3) + 3/17) = η/2·(24/17 + 3/17), the same drift.
		p := e.PolicyCertificate()
		near(t, "measured", p.Measured, 1.5-c.loss)
		variance := 17.0/24 + 3.0/17
		if c.plain {
			variance = 27.0 / 17
		}
		near(t, "measured drift", p.MeasuredDrift, math.Log(3)/math.Ln2+math.Ln2/2*(2+variance)+14.0/51)
		want := math.Log(3)/math.Ln2 + 3*math.Ln2
		if c.plain {
			want = math.Inf(1)
		}
		if math.IsInf(want, 1) != math.IsInf(p.APriori, 1) || !c.plain && math.Abs(p.APriori-want) > 1e-12 {
			t.Errorf("a priori %v, want %v", p.APriori, want)
		}
	}
}

// TestEXP4Adaptive works the first rounds of the adaptive form: K = 2, N = 2,
// η² = log 2/Σ(K_s + σ_s) and ε = η/2 in the denominator.
func TestEXP4Adaptive(t *testing.T) {
	e := newEXP4(learner.EXP4Options{}, constant(0), constant(1))
	x := &oracle.Input{Actions: actions(2)}
	law, _ := e.Propensities(nil, x)
	e.Learn(&learner.Round{Input: x, Action: 0, Propensities: law, N: 1, Fate: learner.Observed, Loss: 1})
	eta := math.Sqrt(math.Ln2 / 2) // of the first step, as after it: σ_1 = 0
	near(t, "η", e.Eta(), eta)
	c := 1 / (0.5 + eta/2)
	near(t, "Ĉ", e.AppendLosses(nil)[0], c)
	low := math.Exp(-eta*c) / (1 + math.Exp(-eta*c))
	near(t, "w", e.AppendWeights(nil)[0], low)
	// Round 2 was decided before: σ_2 = 1; it plays a1, whose law rose to 1 − low.
	e.Learn(&learner.Round{Input: x, Action: 1, Propensities: law, N: 2, Fate: learner.Observed, Loss: 1})
	near(t, "Ĉ of a1", e.AppendLosses(nil)[1], 1/(1-low+eta/2))
	near(t, "η", e.Eta(), math.Sqrt(math.Ln2/(2+2+1)))
}

// TestEXP4Prior holds that a prior is where the weights begin.
func TestEXP4Prior(t *testing.T) {
	e := newEXP4(learner.EXP4Options{Prior: []float64{3, 1}}, constant(0), constant(1))
	law, _ := e.Propensities(nil, &oracle.Input{Actions: actions(2)})
	near(t, "law", law[0], 0.75)
}

func TestEXP4Errors(t *testing.T) {
	two := policyList{constant(0), constant(1)}
	for _, o := range []learner.EXP4Options{{Eta: -1}, {Eta: math.NaN()}, {Prior: []float64{1}},
		{Prior: []float64{1, 0}}, {Prior: []float64{1e308, 1e308}}} {
		if _, err := learner.NewEXP4(two, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := learner.NewEXP4(policyList{}, learner.EXP4Options{}); err == nil {
		t.Error("no policies are accepted")
	}
}

// step is one round of a random run.
type step struct {
	learner.Round
	before, after []float64 // weights around its learning
	prevEta, eta  float64   // rates around it
}

// rateOf is the rate of a step: the adaptive form has none before its first.
func rateOf(r *step) float64 {
	if !math.IsInf(r.prevEta, 1) {
		return r.prevEta
	}
	return math.Sqrt(math.Log(math.Max(2, float64(len(r.before)))) / float64(len(r.Propensities)))
}

// drawRun runs an EXP4 under random delays, out of order, and notes what happened.
func drawRun(t *rapid.T, o learner.EXP4Options, see func(e *learner.EXP4, r *step)) {
	n := rapid.IntRange(1, 6).Draw(t, "policies")
	k := rapid.IntRange(1, 4).Draw(t, "actions")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
	patience := rapid.IntRange(0, 12).Draw(t, "patience")
	var list policyList
	for i := range n {
		list = append(list, policy(func(x *oracle.Input) int {
			return int(uint64(x.Vector[0])*uint64(i+1)*2654435761>>7) % len(x.Actions)
		}))
	}
	e := must(learner.NewEXP4(list, o))
	var waiting []learner.Round
	learned := int64(0)
	learn := func(i int) {
		r := waiting[i]
		waiting = append(waiting[:i], waiting[i+1:]...)
		learned++
		r.N = learned
		p := step{Round: r, before: e.AppendWeights(nil), prevEta: e.Eta()}
		e.Learn(&r)
		p.after, p.eta = e.AppendWeights(nil), e.Eta()
		see(e, &p)
	}
	for range 60 {
		x := &oracle.Input{Vector: []float64{float64(rng.IntN(50))}, Actions: actions(k)}
		law, _ := e.Propensities(nil, x)
		waiting = append(waiting, learner.Round{Input: x, Action: learner.Draw(law, rng.Uint64()>>11),
			Propensities: law, LearnedThrough: learned, Fate: learner.Observed, Loss: float64(rng.IntN(3)) / 2})
		for len(waiting) > patience {
			learn(rng.IntN(len(waiting)))
		}
	}
	for len(waiting) > 0 {
		learn(0)
	}
}

func totalVariation(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Max(0, a[i]-b[i])
	}
	return sum
}

// TestEXP4Drift holds the drift lemma as it is repaired in the package comment, on
// every step: TV(w, w') ≤ η for a fixed η; with a falling η, log N·log(η/η') more.
func TestEXP4Drift(t *testing.T) {
	for _, eta := range []float64{0.05, 0.7, 3, 0} {
		rapid.Check(t, func(t *rapid.T) {
			drawRun(t, learner.EXP4Options{Eta: eta}, func(e *learner.EXP4, r *step) {
				bound := eta
				if eta == 0 {
					was := rateOf(r)
					bound = was + math.Log(float64(len(r.before)))*math.Log(was/r.eta)
				}
				if tv := totalVariation(r.before, r.after); tv > bound+1e-12 {
					t.Fatalf("step %d: TV %v, over %v", r.N, tv, bound)
				}
				// And so, whatever was learned between, what is measured is within its bound.
				if c := e.PolicyCertificate(); c.MeasuredDrift > c.APriori+1e-9 {
					t.Fatalf("step %d: measured drift %v, a priori %v", r.N, c.MeasuredDrift, c.APriori)
				}
			})
		})
	}
}

// TestEXP4Descent holds the inequality of the intermediate iterates on every path:
// Σ (w − w*)·ĉ ≤ log N/η + Σ η/2·Σ w ĉ², for each policy w* alone.
func TestEXP4Descent(t *testing.T) {
	for _, eta := range []float64{0.05, 0.7, 3, 0} {
		rapid.Check(t, func(t *rapid.T) {
			played, variance, n := 0.0, 0.0, 0
			var before, total []float64
			last := 0.0
			drawRun(t, learner.EXP4Options{Eta: eta}, func(e *learner.EXP4, r *step) {
				total, n = e.AppendLosses(nil), len(r.before)
				if before == nil {
					before = make([]float64, n)
				}
				rate := rateOf(r)
				for i, w := range r.before {
					c := total[i] - before[i]
					played += w * c
					variance += rate / 2 * w * c * c
				}
				before, last = total, r.eta
			})
			bound := math.Log(math.Max(2, float64(n)))/last + variance
			for i, c := range total {
				if played-c > bound*(1+1e-9)+1e-9 {
					t.Fatalf("policy %d: Σ w·ĉ − Ĉ = %v, over %v", i, played-c, bound)
				}
			}
		})
	}
}
