package replay

import (
	"math"
	"time"
)

// Data says what is replayed.
type Data struct {
	Name         string        `json:"name"`
	Rounds       int64         `json:"rounds"`
	Actions      int           `json:"actions"`
	Columns      int           `json:"columns"`  // expanded columns of features, the constant included
	Observed     int64         `json:"observed"` // rounds with an outcome in the log; of an environment all
	Truth        bool          `json:"truth"`    // what every action is worth is known
	First        *time.Time    `json:"first,omitempty"`
	Last         *time.Time    `json:"last,omitempty"`
	Propensities *Propensities `json:"propensities,omitempty"` // of what a log recorded
}

// Propensities are those with which a log played what it recorded.
type Propensities struct {
	Min    float64 `json:"min"`
	P1     float64 `json:"p1"` // percentiles, nearest rank
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
	// Inverse is the mean of 1/p: of a log over K actions whose propensities are right it
	// is K, where every action has support.
	Inverse float64 `json:"mean_inverse"`
}

// Describe says what rounds are.
func Describe(r *Rounds) *Data {
	d := &Data{Name: r.Name, Rounds: int64(r.n), Actions: len(r.Actions), Columns: r.Columns, Observed: int64(r.n),
		Truth: r.Known}
	if r.Log == nil || r.n == 0 {
		return d
	}
	d.Observed = 0
	for t := range r.n {
		if r.Log.Observed(r.Row(t)) {
			d.Observed++
		}
	}
	if r.Timed() {
		first, last := time.Unix(0, r.Time(0)).UTC(), time.Unix(0, r.Time(r.n-1)).UTC()
		d.First, d.Last = &first, &last
	}
	if r.HasPropensities() {
		d.Propensities = r.propensities()
	}
	return d
}

func (r *Rounds) propensities() *Propensities {
	p := &Propensities{Min: math.Inf(1)}
	sum := 0.0
	for t := range r.n {
		r.Log.Pass(t)
		x := r.Log.Props[r.Row(t)]
		p.Min, p.Max = min(p.Min, x), max(p.Max, x)
		sum += 1 / x
	}
	p.Inverse = sum / float64(r.n)
	p.P1, p.Median = r.propensityRank(1), r.propensityRank(50)
	return p
}

// propensityRank returns the least propensity such that so many percent are at most that,
// bit by bit from the highest: the order of positive numbers is that of their bits.
func (r *Rounds) propensityRank(percent int) float64 {
	rank := max(1, int(math.Ceil(float64(r.n*percent)/100)))
	const step = 8
	low := uint64(0)
	for shift := 64 - step; shift >= 0; shift -= step {
		var count [1 << step]int // of those that agree with low so far, by their next bits
		for t := range r.n {
			r.Log.Pass(t)
			if x := math.Float64bits(r.Log.Props[r.Row(t)]) >> shift; x>>step == low {
				count[x&(1<<step-1)]++
			}
		}
		next := uint64(0)
		for ; count[next] < rank; next++ {
			rank -= count[next]
		}
		low = low<<step | next
	}
	return math.Float64frombits(low)
}
