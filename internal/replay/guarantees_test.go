package replay

import (
	"fmt"
	"math"
	"os"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/pkg/learner"
)

// guarantees are what a set of runs says of what is promised.
type guarantees struct {
	runs               int
	covered            int // regret within the plausible-set bound
	random             int // of the tested: within the one that takes outcomes to be missing at random
	first              int // runs in which f⋆ is the first function
	survived           int // of those f⋆ is in the set at the end, hence was at every look
	without            int // of those regret is within the bound by the others: the planted fault
	tested, raised     int // runs in which the alarm must be false, and those in which it was raised
	regret, bound      float64
	difference, square float64 // regret − measured drift
	uncovered          []string
}

// everyDelay are delays of every kind, windows of 200 rounds cut some of them short.
var everyDelay = []string{"none", "constant:50", "exp:50", "lognormal:20,1.5", "pareto:1.5,10", "burst:100",
	"head:500,150",
	"starve-best:100", "loss:0,100", "never:0.1", "never-bad:0.3", "reorder:50", "constant:10+exp:20"}

// deal plays runs dealt over environments and delays, with a way to spoil the environment.
func deal(t *testing.T, runs, rounds int, spoil func(*Rounds) *Rounds) *guarantees {
	t.Helper()
	g := &guarantees{}
	for i := range runs {
		env, err := NewEnvironment([]string{"sigmoid", "close:0.3", "needle:.4,.2,.6"}[i/len(everyDelay)%3], uint64(i),
			rounds)
		if err != nil {
			t.Fatal(err)
		}
		g.play(t, env, spoil, everyDelay[i%len(everyDelay)], uint64(i))
	}
	return g
}

func (g *guarantees) play(t *testing.T, env *Rounds, spoil func(*Rounds) *Rounds, spec string,
	seed uint64) {
	t.Helper()
	m, files := ModelFor(env, "guarantee", model.Learner{Kind: model.DAFA}, loop.Window{Rounds: 200})
	l, err := m.Build(files)
	if err != nil {
		t.Fatal(err)
	}
	if spoil != nil {
		env = spoil(env)
	}
	delays, err := delay.Parse(spec, env.DelayOptions(seed))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := traced(t.Context(), loop.Epoch{Number: 1, Rules: m.Rules(), Learner: l}, m.Name, SecretSeed(seed),
		env, delays)
	if err != nil {
		t.Fatal(err)
	}
	c := l.(*learner.DAFA).Certificate()
	g.runs++
	regret := trace.match.regret
	// Where f⋆ alone is left the bound is the regret, added up another way.
	if regret <= c.Plausible.Bound+1e-8 {
		g.covered++
	} else {
		g.uncovered = append(g.uncovered, fmt.Sprintf("%s, %s, seed %d: regret %v, bound %v of %d functions", env.Name,
			spec, seed, regret, c.Plausible.Bound, c.Plausible.Surviving))
	}
	left, err := l.(*learner.DAFA).Models().Append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if env.Columns > 1 { // not needle
		g.first++
		others := 0.0
		for _, f := range left {
			if f.Function == 0 {
				g.survived++
			} else {
				others = math.Max(others, f.Regret)
			}
		}
		if regret <= others {
			g.without++
		}
	}
	if spec != "never-bad:0.3" { // there what is missing depends on the loss
		g.tested++
		if regret <= c.Plausible.Random+1e-8 {
			g.random++
		}
		if c.Plausible.Raised > 0 {
			g.raised++
		}
	}
	d := regret - c.MeasuredDrift()
	g.regret, g.bound = g.regret+regret, g.bound+c.MeasuredDrift()
	g.difference, g.square = g.difference+d, g.square+d*d
}

// few reports whether n of so many is no more than a share α allows, with three standard
// errors of room.
func few(n, of int, alpha float64) bool {
	return float64(n) <= alpha*float64(of)+3*math.Sqrt(alpha*(1-alpha)*float64(of))
}

// driftHolds reports whether mean regret ≤ mean bound within two standard errors.
func (g *guarantees) driftHolds() bool {
	n := float64(g.runs)
	mean := g.difference / n
	return mean <= 2*math.Sqrt(max(0, g.square/n-mean*mean)/n)
}

// labelsShifted gives each action the losses of the next one; the truth stays.
func labelsShifted(e *Rounds) *Rounds {
	out := *e
	out.loss = func(t, a int) float64 { return e.Loss(t, (a+1)%len(e.Actions)) }
	return &out
}

// lossesFlipped has loss 1 for 0: what is learned is the worst.
func lossesFlipped(e *Rounds) *Rounds {
	out := *e
	out.loss = func(t, a int) float64 { return 1 - e.Loss(t, a) }
	return &out
}

// TestGuarantees deals runs over all delays and environments: the plausible-set bound holds
// in at least 1−α of them, the measured-drift bound for the means, and at most α of the
// alarms are false. Without f⋆ in the set, with the labels shifted, and with losses
// flipped the same checks fail. With HINDSIGHT_LONG 1,000 runs of 2,000 rounds.
func TestGuarantees(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	runs, rounds := 78, 500
	if os.Getenv("HINDSIGHT_LONG") != "" {
		runs, rounds = 1000, 2000
	}
	const alpha = learner.DefaultAlpha
	g := deal(t, runs, rounds, nil)
	t.Logf("%d runs of %d rounds: covered %d, by the sharper bound %d of %d, f⋆ survived %d of %d; false alarms %d of "+
		"%d; mean regret %.1f, mean measured drift %.1f", runs, rounds,
		g.covered, g.random, g.tested, g.survived, g.first, g.raised, g.tested, g.regret/float64(runs),
		g.bound/float64(runs))
	if !few(runs-g.covered, runs, alpha) || !few(g.first-g.survived, g.first, alpha) {
		t.Errorf("the plausible-set bound holds in %d of %d runs, f⋆ survived in %d of %d; %q", g.covered, runs,
			g.survived, g.first, g.uncovered)
	}
	if !few(g.tested-g.random, g.tested, alpha) {
		t.Errorf("with outcomes missing at random the sharper bound holds in %d of %d runs", g.random, g.tested)
	}
	if !few(g.raised, g.tested, alpha) {
		t.Errorf("%d of %d alarms are false", g.raised, g.tested)
	}
	if !g.driftHolds() {
		t.Errorf("mean regret %v, mean measured drift %v", g.regret/float64(runs), g.bound/float64(runs))
	}
	t.Logf("without f⋆ the bound would hold in %d of %d", g.without, g.first)
	if few(g.first-g.without, g.first, alpha) {
		t.Errorf("the bound holds in %d of %d runs with f⋆ taken out of the set: the check cannot fail",
			g.without, g.first)
	}
	const faulty = 13 // all of sigmoid
	for name, fault := range map[string]struct {
		rounds int
		spoil  func(*Rounds) *Rounds
	}{
		"labels shifted": {1000, labelsShifted},
		"losses flipped": {4000, lossesFlipped}, // the measured-drift bound is far above small regret
	} {
		g = deal(t, faulty, fault.rounds, fault.spoil)
		t.Logf("%s: covered %d, f⋆ survived %d, alarms %d of %d; mean regret %.1f, mean measured drift %.1f",
			name, g.covered, g.survived, g.raised, g.tested, g.regret/faulty, g.bound/faulty)
		if few(faulty-g.covered, faulty, alpha) || few(g.raised, g.tested, alpha) || name == "losses flipped" &&
			g.driftHolds() {
			t.Errorf("%s: covered %d, alarms %d, mean regret %v, mean measured drift %v: a check cannot fail", name,
				g.covered, g.raised, g.regret/faulty, g.bound/faulty)
		}
	}
}
