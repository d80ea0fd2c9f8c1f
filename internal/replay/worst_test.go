package replay

import (
	"encoding/json"
	"testing"
)

// TestHarmOfNothing: a run that met no row of a log with propensities cost nothing, and the
// report of such runs can be written.
func TestHarmOfNothing(t *testing.T) {
	r := &Result{Rounds: 5, Replay: (&replaySums{}).result(1)}
	if value, _ := r.Harm(); value != 0 {
		t.Errorf("%v", value)
	}
	row := &WorstRow{Name: "x"}
	row.Add(r)
	if _, err := json.Marshal(row); err != nil {
		t.Error(err)
	}
}
