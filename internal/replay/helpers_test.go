package replay

import (
	"strings"
	"testing"

	"hindsight/internal/delay"
	"hindsight/internal/logs"
)

func delays(t testing.TB, spec string, seed uint64) *delay.Delays {
	t.Helper()
	d, err := delay.Parse(spec, delay.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func targetLog(t testing.TB) *Rounds {
	t.Helper()
	log, err := readLog("t.csv", strings.NewReader(targetText),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{Action: "a", Reward: "r", Propensity: "p",
			Features: []string{"h:text", "n", "w"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

const targetText = "a,r,p,h,n,w\nx,1,.5,0000000b,3,u\ny,0,.25,0000000a00,4,u\nz,,.5,,3,u\nx,.5,1,00000004zz,7,u\n"

// tableLog has the rounds q, r, s, of which s has no outcome, and the actions a, b.
func tableLog(t testing.TB) *Rounds {
	t.Helper()
	log, err := readLog("t.csv", strings.NewReader("id,a,r,p\nq,b,1,.5\nr,a,0,.25\ns,b,,.5\n"),
		logOptions{Options: logs.Options{Mapping: logs.Mapping{ID: "id", Action: "a", Reward: "r", Propensity: "p"}}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}
