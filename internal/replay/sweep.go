package replay

import "math"

// SweepPoint is what a learner loses when every outcome comes after Delay later rounds:
// the means over row orders, which are the same for all delays.
type SweepPoint struct {
	Learner  string    `json:"learner"`
	Delay    int64     `json:"delay"`
	Rounds   int64     `json:"rounds"`
	Orders   int       `json:"orders"`
	MeanLoss *Estimate `json:"mean_loss"` // as in runs; of a log with propensities weighted (SNIPS)
	Regret   *Estimate `json:"regret"`    // null where the truth is not known
	Worse    *Estimate `json:"worse"`     // mean_loss above that of the least delay, paired by row order
}

// DefaultSweep returns the delays of a sweep over so many rounds: 0, 1, 3, 10, 30, … up to a tenth of them.
func DefaultSweep(rounds int) []int64 {
	out := []int64{0}
	for scale := int64(1); ; scale *= 10 {
		for _, m := range []int64{1, 3} {
			if m*scale > int64(rounds)/10 || m*scale > 10_000 {
				return out
			}
			out = append(out, m*scale)
		}
	}
}

// NewSweep judges runs: runs[i] are those of a learner with delays[i], in the same row
// orders for each. The first delay is what the others are compared with.
func NewSweep(learner string, delays []int64, runs [][]Result) []SweepPoint {
	out := make([]SweepPoint, len(delays))
	value := func(r *Result) float64 { v, _ := r.Value(); return v }
	for i, d := range delays {
		var losses, regrets, worse []float64
		for k := range runs[i] {
			r := &runs[i][k]
			if v := value(r); !math.IsNaN(v) {
				losses, worse = append(losses, v), append(worse, v-value(&runs[0][k]))
			}
			regrets = collect(regrets, r.Regret)
		}
		n := len(runs[i])
		out[i] = SweepPoint{Learner: learner, Delay: d, Orders: n, MeanLoss: estimateOf(losses, n),
			Regret: estimateOf(regrets, n), Worse: estimateOf(worse, n)}
		if n > 0 {
			out[i].Rounds = runs[i][0].Rounds
		}
	}
	return out
}
