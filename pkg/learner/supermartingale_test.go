package learner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"hindsight/pkg/oracle"
)

// lawOn draws a law of a loss in [0,1] with up to four values.
func lawOn(t *rapid.T) (y, p []float64, mean float64) {
	n := rapid.IntRange(2, 4).Draw(t, "n")
	sum := 0.0
	for range n {
		y = append(y, rapid.Float64Range(0, 1).Draw(t, "y"))
		p = append(p, rapid.Float64Range(.001, 1).Draw(t, "p"))
		sum += p[len(p)-1]
	}
	if rapid.Bool().Draw(t, "extreme") {
		y[0], y[1] = 0, 1
	}
	for i := range p {
		p[i] /= sum
		mean += p[i] * y[i]
	}
	return y, p, mean
}

// TestFactorsOfEvidence holds what the proofs in the package comment rest on: whatever the
// law of a loss, the factors of M_f, E1_f and E2_f have expectation at most 1 if f is its
// mean. If it is not, they have not.
func TestFactorsOfEvidence(t *testing.T) {
	factors := func(f, rival, lambda float64, y, p []float64) (against, bet float64) {
		for i, v := range y {
			against += p[i] * math.Exp(2*((f-v)*(f-v)-(rival-v)*(rival-v)))
			bet += p[i] * math.Exp(lambda*(v-f)-lambda*lambda/8)
		}
		return against, bet
	}
	rapid.Check(t, func(t *rapid.T) {
		y, p, mean := lawOn(t)
		rival := rapid.Float64Range(0, 1).Draw(t, "rival")
		lambda := rapid.Float64Range(-1, 1).Draw(t, "lambda")
		if against, bet := factors(mean, rival, lambda, y, p); against > 1+1e-12 || bet > 1+1e-12 {
			t.Fatalf("expectations %v and %v", against, bet)
		}
	})
	if against, bet := factors(.4, .6, .4, []float64{0, 1}, []float64{.4, .6}); against <= 1 || bet <= 1 {
		t.Errorf("a function that is wrong by .2: expectations %v and %v", against, bet)
	}
}

// levels is a class of constants with losses of a given mean, for runs of the models alone.
type levels []float64

func (c levels) Size() int                                       { return len(c) }
func (c levels) Eval(dst []float64, _ *oracle.Input, action int) { copy(dst, c) }

// raisedBy plays rounds of two actions with mean loss ½ to the models of a class that has the
// truth, and reports whether the alarm was raised. spoil may change the state after each round.
func raisedBy(t *testing.T, seed uint64, rounds int, spoil func(m *Models, y float64)) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 33))
	m, err := NewModels(levels{.1, .3, .5, .7, .9}, ModelsOptions{Alarm: true})
	if err != nil {
		t.Fatal(err)
	}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}},
		Features: []oracle.Feature{{Name: "x", Kind: oracle.Number}}}
	r := Round{Input: x, Propensities: []float64{.5, .5}, Fate: Observed}
	for n := range rounds {
		x.Features[0].Value = rng.Float64()
		r.N, r.Action, r.Loss = int64(n+1), rng.IntN(2), float64(rng.IntN(2))
		m.Add(&r)
		if spoil != nil {
			spoil(m, r.Loss)
		}
	}
	return m.alarm.raised > 0
}

// TestAlarmPlanted holds that the check of the alarm's level fails when a rival peeks at the
// loss that it is to predict.
func TestAlarmPlanted(t *testing.T) {
	const runs, rounds = 60, 800
	count := func(spoil func(m *Models, y float64)) (raised int) {
		for seed := range uint64(runs) {
			if raisedBy(t, seed, rounds, spoil) {
				raised++
			}
		}
		return raised
	}
	few := func(n int) bool { return float64(n) <= .05*runs+3*math.Sqrt(.05*.95*runs) }
	honest := count(nil)
	peeking := 0.0
	peeks := count(func(m *Models, y float64) {
		if m.evidence == 1 {
			peeking = 0
		}
		peeking += (.5 + .1*(y-.5) - y) * (.5 + .1*(y-.5) - y) // it leans a tenth towards the loss
		m.alarm.rival[1] = peeking
	})
	t.Logf("raised in %d of %d honest runs, %d with a rival that peeks", honest, runs, peeks)
	if !few(honest) {
		t.Errorf("%d of %d alarms are false", honest, runs)
	}
	if few(peeks) {
		t.Errorf("with a rival that peeks %d of %d: the check cannot fail", peeks, runs)
	}
}

// TestEvidenceByHand: two actions, two rounds, one function that says ¼ of everything.
func TestEvidenceByHand(t *testing.T) {
	m, err := NewModels(levels{.25}, ModelsOptions{Alarm: true})
	if err != nil {
		t.Fatal(err)
	}
	x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
	m.Add(&Round{Input: x, Propensities: []float64{.5, .5}, Action: 0, Loss: 1, N: 1, Fate: Observed})
	m.Add(&Round{Input: x, Propensities: []float64{.5, .5}, Action: 1, Loss: 0, N: 2, Fate: Observed})
	// L_f = (¾)² + (¼)² = .625. The class has no list of actions: they count as one, n = 2.
	// f̂ = ¼. The first rival plays ¼ + 0/1, then ¼ + .75/2 = .625; the others ¼ as long as
	// there are fewer than five examples. Z = .75 − .25 = .5.
	first := .75*.75 + .625*.625
	e1 := (math.Exp(2*(.625-first)) + 2*math.Exp(0)) / 3
	e2 := 0.0
	for _, l := range []float64{.1, .2, .4, .8, -.1, -.2, -.4, -.8} {
		e2 += math.Exp(l*.5-l*l*2/8) / 8
	}
	if got, want := m.alarm.least(m.loss), (e1+e2)/2; math.Abs(got-want) > 1e-14 {
		t.Errorf("evidence %v, want %v", got, want)
	}
	if got := fmt.Sprint(m.Plausible().Surviving, m.Plausible().Bound); got != "1 0" {
		t.Errorf("surviving and bound %s", got)
	}
}

// halves is a class of functions that differ on action a alone: the first is the truth, ½ of
// everything, the others say more of a.
type halves struct{ above float64 }

func (halves) Size() int         { return 40 }
func (halves) Actions() []string { return []string{"a", "b"} }
func (c halves) Eval(dst []float64, _ *oracle.Input, action int) {
	for i := range dst {
		dst[i] = .5
		if i > 0 && action == 0 {
			dst[i] += c.above
		}
	}
}

// TestRefutedLevel holds the level of "refuted" where the alarm and the set err apart: the set
// on action a, the alarm on b, too. Either keeps its level; that one of them errs does not,
// which is why it is not what refutes a class.
func TestRefutedLevel(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector has nothing to find in one goroutine")
	}
	const runs, rounds, alpha = 400, 4000, .35
	refuted, either := 0, 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 35))
		m, err := NewModels(halves{.06}, ModelsOptions{Alpha: alpha, Alarm: true})
		if err != nil {
			t.Fatal(err)
		}
		x := &oracle.Input{Actions: []oracle.Action{{Name: "a"}, {Name: "b"}}}
		r := Round{Input: x, Propensities: []float64{.5, .5}, Fate: Observed}
		for n := range int64(rounds) {
			r.N, r.Action, r.Loss = n+1, rng.IntN(2), float64(rng.IntN(2))
			m.Add(&r)
		}
		p := m.Plausible()
		if p.Refuted() {
			refuted++
		}
		if p.Raised > 0 || p.Surviving == 0 {
			either++
		}
	}
	most := alpha*runs + 2*math.Sqrt(alpha*(1-alpha)*runs)
	t.Logf("refuted in %d of %d runs with a truth in the class; alarm or empty set in %d; most %.0f", refuted, runs,
		either, most)
	if float64(refuted) > most {
		t.Errorf("refuted in %d of %d runs with a truth in the class, at level %v", refuted, runs, alpha)
	}
	if float64(either) <= most {
		t.Errorf("one of two tests of level %v errs in %d of %d runs: the check cannot fail", alpha, either, runs)
	}
}

// TestRefutedBy holds what refutes a class: the alarm where there is one, which every function
// that is dropped raises, too; else that no function survives.
func TestRefutedBy(t *testing.T) {
	for _, c := range []struct {
		name    string
		alarm   bool
		top     float64 // log M_f of both functions
		refuted bool
	}{
		{"none survives, the alarm is silent", true, 3, false},
		{"all are dropped", true, 9, true},
		{"none survives, no alarm", false, 3, true},
		{"both survive, no alarm", false, 2, false},
	} {
		m, err := NewModels(levels{.4, .6}, ModelsOptions{Alarm: c.alarm})
		if err != nil {
			t.Fatal(err)
		}
		m.top[0], m.top[1] = c.top, c.top
		m.judge(16)
		if p := m.Plausible(); p.Refuted() != c.refuted || (p.Surviving == 0) != (c.top > 2.99) {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}
