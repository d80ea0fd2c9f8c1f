package replay

import (
	"os"
	"testing"

	"hindsight/internal/testkit/daily"
)

// playSeed plays a learner to sigmoid with everything drawn from a seed.
func playSeed(t *testing.T, seed uint64, rounds int, window, spec string) *Result {
	t.Helper()
	env := environment(t, "sigmoid", seed, rounds)
	tr := trialOf(t, env, "dafa", window, spec)
	tr.Seed, tr.Delays = seed, delays(t, spec, seed)
	r, err := tr.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLateLossesOfAdversaries: where the delay depends on the loss every run says so;
// where it does not, at most one in a hundred does, whatever their lengths: of 10 such runs
// more than 1 warn in one of 200 tries, of 200 more than 6 in one of 200.
func TestLateLossesOfAdversaries(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	const rounds = 3000
	seeds, chance := 10, 1
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, chance = 200, 6
	}
	for i, c := range []struct {
		spec, window string
		least, most  int // runs that warn
	}{
		{"loss:10,150+exp:40", "100", seeds, seeds},
		{"loss:150,10+exp:40", "100", seeds, seeds},
		{"exp:50", "60", 0, chance},
		{"lognormal:20,1.5", "60", 0, chance},
	} {
		if !daily.Turn(t, i, 2) {
			continue
		}
		warned, late := 0, int64(0)
		for seed := range uint64(seeds) {
			r := playSeed(t, seed, rounds, c.window, c.spec)
			late += r.LateLosses.Late.N
			if r.LateLosses.Late.N > r.Fates.Late || r.LateLosses.OnTime.N != r.Fates.Observed {
				t.Fatalf("%s: %s of fates %+v", c.spec, r.LateLosses.Line(nil), r.Fates)
			}
			if r.LateLosses.Differ {
				warned++
			}
		}
		t.Logf("%s, window %s: %d of %d runs of %d rounds warn; %d losses late in each", c.spec, c.window,
			warned, seeds, rounds, late/int64(seeds))
		if warned < c.least || warned > c.most || late < 30*int64(seeds) {
			t.Errorf("%s: %d of %d runs warn, expected %d to %d; %d losses late in all", c.spec, warned, seeds, c.least,
				c.most, late)
		}
	}
}
