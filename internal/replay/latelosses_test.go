package replay

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"hindsight/internal/verify"
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
// where it does not, at most one in a hundred does, whatever their lengths: of 20 such runs
// more than 1 warn in one of 50 tries, of 200 more than 6 in one of 200.
func TestLateLossesOfAdversaries(t *testing.T) {
	if testing.Short() {
		t.Skip("pure and long: the race detector has nothing to find here")
	}
	const rounds = 3000
	seeds, chance := 20, 1
	if os.Getenv("HINDSIGHT_LONG") != "" {
		seeds, chance = 200, 6
	}
	for _, c := range []struct {
		spec, window string
		least, most  int // runs that warn
	}{
		{"loss:10,150+exp:40", "100", seeds, seeds},
		{"loss:150,10+exp:40", "100", seeds, seeds},
		{"exp:50", "60", 0, chance},
		{"lognormal:20,1.5", "60", 0, chance},
	} {
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
		t.Logf("%s, window %s: %d of %d runs of %d rounds warn; %d losses late in each", c.spec, c.window, warned, seeds, rounds, late/int64(seeds))
		if warned < c.least || warned > c.most || late < 30*int64(seeds) {
			t.Errorf("%s: %d of %d runs warn, expected %d to %d; %d losses late in all", c.spec, warned, seeds, c.least, c.most, late)
		}
	}
}

// TestLateLossesAreSaid: the warning is in the summaries and in JSON.
func TestLateLossesAreSaid(t *testing.T) {
	biased := playSeed(t, 1, 1000, "100", "loss:0,150")
	fair := playSeed(t, 1, 1000, "60", "exp:50")
	prompt := playSeed(t, 1, 100, "60", "none")
	for _, c := range []struct {
		r          *Result
		warns, has bool
	}{{biased, true, true}, {fair, false, true}, {prompt, false, false}} {
		var one, many strings.Builder
		if err := WriteRun(&one, c.r); err != nil {
			t.Fatal(err)
		}
		if err := WriteRunsIn(&many, []Result{*c.r, *c.r}, 100); err != nil {
			t.Fatal(err)
		}
		report := said(&verify.Report{LateLosses: c.r.LateLosses})
		for _, text := range []string{one.String(), many.String(), report} {
			text = strings.Join(strings.Fields(text), " ")
			if got := strings.Contains(text, "arning") && strings.Contains(text, "lengthen the window"); got != c.warns {
				t.Errorf("%s: a warning is %v in: %s", c.r.Delays.Spec, got, text)
			}
		}
		if got := strings.Contains(one.String(), "late losses "); got != (c.has && !c.warns) {
			t.Errorf("%s: late losses are not as they should be in: %s", c.r.Delays.Spec, &one)
		}
	}
	// Losses of 0 come at once, those of 1 after the window, unless the run ends before.
	b, err := json.Marshal(&biased.LateLosses)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		OnTime struct{ Mean, SE float64 } `json:"on_time"`
		Late   struct {
			N        int64
			Mean, SE float64
		}
		Differ bool
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if !(got.OnTime.Mean < 0.05) || !(got.OnTime.SE < 0.01) || got.Late.Mean != 1 || got.Late.SE != 0 || got.Late.N != biased.Fates.Late || !got.Differ {
		t.Errorf("%s", b)
	}
	if b, err = json.Marshal(&prompt.LateLosses.Late); err != nil || string(b) != `{"n":0,"mean":null,"se":null}` {
		t.Errorf("%s, %v", b, err)
	}
}
