package learner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
	"hindsight/pkg/oracle"
)

// TestOutcomeChanges: what changed is told by the outcome: a price that rises is not a quality that falls, and in a
// still world nothing is told.
func TestOutcomeChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	for _, c := range []struct {
		what            string
		quality, dearer float64 // of all actions, from the middle on
		want            string
	}{{"nothing", 0, 1, ""}, {"quality", -.4, 1, "quality"}, {"price", 0, 6, "usd"}} {
		for _, kind := range []string{"linear", "auto"} {
			t.Run(c.what+"/"+kind, func(t *testing.T) {
				t.Parallel()
				l := router(kind, 5e-4, nil)
				rng := rand.New(rand.NewPCG(1, 23))
				const rounds = 3000
				for n := range int64(rounds) {
					x := &oracle.Input{Features: []oracle.Feature{{Name: "words", Kind: oracle.Number,
						Value: rng.Float64()}}}
					for a := range 3 {
						x.Actions = append(x.Actions, oracle.Action{Name: fmt.Sprint("model ", a)})
					}
					law, gamma := l.Propensities(nil, x)
					a := learner.Draw(law, rng.Uint64()>>11)
					quality, usd := .6+.1*float64(a)+.2*rng.Float64(), 1e-4*float64(1+2*a)*(.5+rng.Float64())
					if n >= rounds/2 {
						quality, usd = quality+c.quality, usd*c.dearer
					}
					l.Learn(&learner.Round{Input: x, Action: a, Propensities: law, Gamma: gamma, N: n + 1,
						LearnedThrough: n,
						Fate:           learner.Observed, Loss: 1 - quality, Outcomes: []learner.Outcome{{Known: true,
							Value: quality}, {Known: true, Value: usd / mostUSD}}})
				}
				changes, ok := learner.Changes(l)
				if !ok || (changes.Count > 0) != (c.want != "") {
					t.Fatalf("%+v, %v", changes, ok)
				}
				for _, change := range changes.Last {
					if change.Outcome != c.want || change.Example < rounds/2 || change.Example > rounds/2+200 {
						t.Errorf("%+v", change)
					}
				}
			})
		}
	}
}
