package report

import (
	"strings"
	"testing"

	"hindsight/internal/ledger"
	"hindsight/internal/replay"
)

// A backtest of a model that names candidates shows what they are worth, in the terminal and in the report.
func TestCandidatesAreShown(t *testing.T) {
	runs := []replay.Result{{Learner: "model:m.yaml", Candidates: []ledger.Estimate{{Policy: "always:red", Rounds: 9,
		Value: ledger.Interval{Mean: .25, Low: .125, High: .5}, Gain: ledger.Interval{Mean: -.1, Low: -.3, High: -.05},
		Worst: ledger.Interval{Mean: .25, Low: .0625, High: .75}, Beaten: true}},
		Course: &replay.Course{Rounds: []int64{5, 9}, Candidates: []replay.CandidateCourse{{
			Policy: "always:red", Mean: figures(.5, .25), Low: figures(0, .125), High: figures(1, .5)}}}}}
	r := Results{Runs: runs}
	found := false
	for _, c := range r.Page().Charts() {
		if s := c.Views[0].Series[0]; c.ID == "candidates" {
			found = s.Name == "always:red" && s.Y[1] == .25 && s.Low[1] == .125 && s.High[1] == .5 && c.At[1] == 9
		}
	}
	if !found {
		t.Error("the course is not drawn")
	}
	for name, p := range map[string]*Page{"terminal": Runs(runs, 200), "report": r.Page()} {
		var found *table
		for _, s := range p.Sections {
			for _, part := range s.Parts {
				if t, ok := part.(*table); ok && strings.HasPrefix(t.Caption, "Candidates") {
					found = t
				}
			}
		}
		if found == nil || len(found.Rows) != 1 {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		row := ""
		for _, c := range found.Rows[0] {
			row += c.Text + " | "
		}
		if !strings.Contains(row, "always:red | 0.250 (0.125 to 0.500) | -0.100 (-0.300 to -0.0500) | 0.250 (0.0625 "+
			"to 0.750) | beaten") {
			t.Errorf("%s: %s", name, row)
		}
	}
}
