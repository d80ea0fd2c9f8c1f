package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"hindsight/internal/loop"
	"hindsight/internal/model"
	"hindsight/internal/scan"
)

// Estimate is a mean over runs with the standard error of that mean; of one run it is not known and null.
type Estimate struct {
	Value float64  `json:"value"`
	SE    *float64 `json:"se"`
}

// WindowPrice says what one window costs, over runs that differ in their seeds only.
type WindowPrice struct {
	Window string `json:"window"`
	// share of the rounds that waited for an outcome: of a log of those that drew its action
	Skipped  float64 `json:"skipped"`
	Late     float64 `json:"late"`       // outcomes that came after it, a round, likewise
	Released float64 `json:"d_released"` // mean D/T as released
	SigmaMax int64   `json:"sigma_max"`  // largest over the runs, as released
	// on regret by measured drift, skipped rounds charged; null if the learner has none
	Bound    *Estimate `json:"bound"`
	Vacuous  bool      `json:"vacuous"`   // in at least one run
	Void     string    `json:"void"`      // what voids the bound in at least one run, class refuted; "": nothing
	MeanLoss *Estimate `json:"mean_loss"` // null if no round has a loss
	Regret   *Estimate `json:"regret"`    // null where the truth is not known
	Worse    *Estimate `json:"worse"`     // loss (regret where it is known) above the best window's, paired by seed
	// of the windows within 2 standard errors of the best, the one that skips least, then the shortest
	Recommended bool `json:"recommended"`

	cost []float64 // per run
}

// PriceWindows judges the runs of each window: runs[w] are those of windows[w], in the
// same order of seeds for each. outcome is the named outcome whose windows they are; "": of the round.
func PriceWindows(windows []loop.Window, outcome string, runs [][]Result) []WindowPrice {
	out := make([]WindowPrice, len(windows))
	for i, w := range windows {
		out[i] = priceOf(w, outcome, runs[i])
	}
	recommend(out)
	return out
}

func priceOf(w loop.Window, outcome string, runs []Result) WindowPrice {
	p := WindowPrice{Window: model.FormatWindow(w)}
	var losses, regrets, bounds []float64
	var rounds float64
	for i := range runs {
		r := &runs[i]
		rounds += float64(r.Waited())
		skipped, late := r.Fates.Skipped, r.Fates.Late
		for i := range r.Outcomes {
			if o := &r.Outcomes[i]; o.Name == outcome {
				skipped, late = o.Skipped, o.Late
			}
		}
		p.Skipped += float64(skipped)
		p.Late += float64(late)
		p.Released += r.Delays.Released.Mean / float64(len(runs))
		p.SigmaMax = max(p.SigmaMax, r.Delays.Released.SigmaMax)
		losses = collect(losses, r.MeanLoss)
		regrets = collect(regrets, r.Regret)
		if b := r.Certificate.MeasuredDrift; b != nil {
			bounds = collect(bounds, b.Value)
			p.Vacuous, p.Void = p.Vacuous || b.Vacuous, cmp.Or(p.Void, b.Void)
		}
	}
	p.Skipped /= max(rounds, 1)
	p.Late /= max(rounds, 1)
	p.MeanLoss, p.Regret, p.Bound = estimateOf(losses, len(runs)), estimateOf(regrets, len(runs)),
		estimateOf(bounds, len(runs))
	switch {
	case p.Regret != nil:
		p.cost = regrets
	case p.MeanLoss != nil:
		p.cost = losses
	}
	return p
}

func collect(all []float64, v *float64) []float64 {
	if v == nil {
		return all
	}
	return append(all, *v)
}

// estimateOf returns the mean of values of n runs; nil unless each run has one.
func estimateOf(values []float64, n int) *Estimate {
	if len(values) != n || n == 0 {
		return nil
	}
	e := NewEstimate(values)
	return &e
}

// NewEstimate returns the mean of at least one value with its standard error.
func NewEstimate(values []float64) Estimate {
	n := float64(len(values))
	mean, square := 0.0, 0.0
	for _, v := range values {
		mean += v / n
	}
	if len(values) == 1 {
		return Estimate{Value: mean}
	}
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	se := math.Sqrt(square / n / (n - 1))
	return Estimate{mean, &se}
}

// recommend compares all windows with the cheapest and marks one.
func recommend(prices []WindowPrice) {
	best := -1
	for i := range prices {
		if prices[i].cost != nil && (best < 0 || mean(prices[i].cost) < mean(prices[best].cost)) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	chosen := best
	for i := range prices {
		p := &prices[i]
		if p.cost == nil {
			continue
		}
		diff := make([]float64, len(p.cost))
		for k := range diff {
			diff[k] = p.cost[k] - prices[best].cost[k]
		}
		p.Worse = estimateOf(diff, len(diff))
		if skipped := prices[chosen].Skipped; p.Worse.within(2) && (p.Skipped < skipped || p.Skipped == skipped &&
			i < chosen) {
			chosen = i
		}
	}
	prices[chosen].Recommended = true
}

// within reports whether a difference is at most so many standard errors above 0.
func (e *Estimate) within(errors float64) bool {
	if e.SE == nil {
		return e.Value <= 0
	}
	return e.Value <= errors**e.SE
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// DefaultWindows are the windows worth a look: in rounds 10, 20, 50, … up to half of
// those there are; for data with times, steps of 2 to 2.5 from a tenth of the median
// recorded delay to the largest, of a named outcome those of its own.
func DefaultWindows(r *Rounds, outcome string) []loop.Window {
	if o := r.DelayOptions(0); outcome != "" && o.Decided != nil {
		return timedWindows(o.Decided, o.Named[outcome])
	} else if o.Came != nil {
		return timedWindows(o.Decided, o.Came)
	}
	var out []loop.Window
	for scale := int64(10); ; scale *= 10 {
		for _, m := range []int64{1, 2, 5} {
			if n := m * scale; n <= 10 || n <= int64(r.n)/2 {
				out = append(out, loop.Window{Rounds: n})
				continue
			}
			return out
		}
	}
}

// roundDurations are durations that people use.
var roundDurations = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	48 * time.Hour, 96 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour, 90 * 24 * time.Hour,
}

func timedWindows(decided, came []int64) []loop.Window {
	var waits []int64
	for t, at := range came {
		if at != scan.NoTime {
			waits = append(waits, max(0, at-decided[t]))
		}
	}
	if len(waits) == 0 {
		return []loop.Window{{Nanos: int64(time.Hour)}}
	}
	slices.Sort(waits)
	low, high := time.Duration(waits[len(waits)/2])/10, time.Duration(waits[len(waits)-1])
	var out []loop.Window
	for _, d := range roundDurations {
		if d >= low {
			out = append(out, loop.Window{Nanos: int64(d)})
			if d >= high {
				break
			}
		}
	}
	if len(out) == 0 {
		return []loop.Window{{Nanos: int64(roundDurations[len(roundDurations)-1])}}
	}
	return out
}
