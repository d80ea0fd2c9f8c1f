package replay

import (
	"encoding/json"
	"math"
	"testing"

	"hindsight/internal/delay"
)

// TestHarmOfNothing: a run that met no row of a log with propensities cost nothing, and the
// report of such runs can be written.
func TestHarmOfNothing(t *testing.T) {
	r := &Result{Rounds: 5, Replay: (&replaySums{}).result(1)}
	if value, what := r.Harm(); value != 0 || what != "loss by propensities" {
		t.Errorf("%s of %v", what, value)
	}
	if _, what := (&Result{}).Harm(); what != "loss" {
		t.Errorf("of a run without propensities %s", what)
	}
	row := &WorstRow{Name: "x"}
	row.Add(r)
	if _, err := json.Marshal(row); err != nil {
		t.Error(err)
	}
}

// TestWorstReport: the report of a search counts what it tried, and compares by the mean of fresh runs.
func TestWorstReport(t *testing.T) {
	w := &delay.Worst{Budget: delay.Budget{Rounds: 10, Total: 20, Max: 5}, Batch: 4, Seed: 7}
	f := &delay.WorstFound{Found: delay.Tried{Name: "step 3", Harm: 9}, Random: []delay.Tried{{Harm: 2}, {Harm: 3}},
		Plans: []delay.Tried{{Name: "late", Harm: 8}}, Steps: 5, Better: 2}
	r := NewWorstReport(w, f, "env", "dafa", "10 rounds", "regret", 3)
	if r.Tried != 2+1+5*4 || r.Rounds != 10 || r.Total != 20 || r.Max != 5 || r.Seed != 7 || r.Steps != 5 ||
		r.Better != 2 || r.Draws != 3 || *r.Random.Search != 2.5 || r.Random.Name != "random, mean of 2" ||
		len(r.Plans) != 1 || r.Plans[0].Name != "late" || *r.Plans[0].Search != 8 || r.Found.Name != "found" ||
		*r.Found.Search != 9 || r.None.Search != nil {
		t.Errorf("%+v", r)
	}
	for i, regret := range []float64{1, 3, 5} {
		r.Found.Add(&Result{Rounds: 4, Regret: &regret, Fates: Fates{Skipped: int64(i)}})
		if (r.Found.FreshSE != nil) != (i > 0) || *r.Found.Fresh != float64(i+1) || r.Found.Skipped != float64(i)/4 {
			t.Errorf("after %d runs %v, %v skipped", i+1, *r.Found.Fresh, r.Found.Skipped)
		}
	}
	if math.Abs(*r.Found.FreshSE-math.Sqrt(4./3)) > 1e-12 {
		t.Errorf("the error of a mean of 1, 3 and 5 is %v", *r.Found.FreshSE)
	}
}
