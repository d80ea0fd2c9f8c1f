package replay

import (
	"fmt"
	"math"

	"hindsight/internal/delay"
)

// FreshDraws is the number of runs, with draws that a search did not see, by which what it found is compared.
const FreshDraws = 20

// WorstReport is what a search for the worst delays says; its JSON is that of `worst --json`.
type WorstReport struct {
	Environment string `json:"environment"`
	Learner     string `json:"learner"`
	Window      string `json:"window"`
	Rounds      int    `json:"rounds"`
	Total       int64  `json:"total"` // D, of every sequence
	Max         int64  `json:"max"`   // the longest delay that was allowed
	Of          string `json:"of"`    // what the figures are: regret, or loss
	Seed        uint64 `json:"seed"`
	Draws       int    `json:"draws"` // runs that the search went by, a sequence
	Steps       int    `json:"steps"`
	Better      int    `json:"better"` // steps that found worse
	Tried       int    `json:"tried"`  // sequences
	File        string `json:"file"`

	None   *WorstRow   `json:"none"`   // no delay
	Random *WorstRow   `json:"random"` // random sequences, all alike
	Plans  []*WorstRow `json:"plans"`  // of the book, by the draws of the search alone
	Found  *WorstRow   `json:"found"`
}

// WorstRow is what sequences of a kind cost.
type WorstRow struct {
	Name     string        `json:"name"`
	Search   *float64      `json:"search"` // by the draws of the search
	Fresh    *float64      `json:"fresh"`  // mean by other draws
	FreshSE  *float64      `json:"fresh_se"`
	Skipped  float64       `json:"skipped"` // share of rounds, of the last run
	Delays   *delay.Report `json:"delays"`  // of the last run
	n        int
	sum, sqr float64
}

// NewWorstReport begins the report of a search.
func NewWorstReport(w *delay.Worst, f *delay.WorstFound, environment, learner, window, of string,
	draws int) *WorstReport {
	r := &WorstReport{Environment: environment, Learner: learner, Window: window, Rounds: w.Rounds, Total: w.Total,
		Max: w.Max, Of: of, Seed: w.Seed,
		Draws: draws, Steps: f.Steps, Better: f.Better, Tried: len(f.Random) + len(f.Plans) + f.Steps*w.Batch,
		None: &WorstRow{Name: "no delay"}, Random: &WorstRow{Name: fmt.Sprintf("random, mean of %d", len(f.Random))},
		Found: searched(&f.Found)}
	mean := 0.0
	for i := range f.Random {
		mean += f.Random[i].Harm / float64(len(f.Random))
	}
	r.Random.Search = &mean
	for i := range f.Plans {
		r.Plans = append(r.Plans, searched(&f.Plans[i]))
	}
	r.Found.Name = "found"
	return r
}

func searched(t *delay.Tried) *WorstRow {
	harm := t.Harm
	return &WorstRow{Name: t.Name, Search: &harm}
}

// Add counts a run with fresh draws.
func (w *WorstRow) Add(r *Result) {
	value, _ := r.Harm()
	w.n++
	w.sum += value
	w.sqr += value * value
	n := float64(w.n)
	mean := w.sum / n
	w.Fresh = &mean
	if w.n > 1 {
		se := math.Sqrt(max(0, w.sqr-n*mean*mean) / (n - 1) / n)
		w.FreshSE = &se
	}
	delays := r.Delays
	w.Delays, w.Skipped = &delays, float64(r.Fates.Skipped)/float64(max(r.Rounds, 1))
}
