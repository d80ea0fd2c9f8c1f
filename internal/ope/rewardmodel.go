package ope

import (
	"math"
	"math/rand/v2"
)

// RewardModel says how q̂ is fitted: for each of Folds parts of the log over the others. It
// is the mean reward of each action, shrunk,
//
//	q̂(a) = (Σ c·r + Count·Mean)/(Σ c + Count)
//
// with c the events that a row stands for. Where rows have features it is a ridge regression an action that is shrunk
// to that mean, if that predicts the rows of its own part better; see [ridges].
type rewardModel struct {
	Mean  float64 // NaN: that of the rows that q̂ is fitted to
	Count float64 // > 0: events
	Folds int     // parts that rows are dealt to at random; < 2: means of all rows, the judged ones included
	Seed  uint64  // of the dealing
}

// DefaultFolds is how many parts there are where nothing else is said.
const DefaultFolds = 5

// DefaultRewardModel shrinks every action to the log's own mean by one event.
var defaultRewardModel = rewardModel{Mean: math.NaN(), Count: 1, Folds: DefaultFolds}

// fitted is q̂ of each fold and action.
type fitted struct {
	actions int
	means   []float64 // [folds·K]
	deal    *dealing  // nil: one fold
	ridges  *ridges   // nil: the means are q̂
	within  Range     // of q̂
}

// fill sets dst to q̂ of all actions in row t.
func (f *fitted) fill(dst []float64, t int) {
	fold := f.fold(t)
	copy(dst, f.means[fold*f.actions:])
	if f.ridges != nil {
		f.ridges.predict(dst, t, fold)
	}
}

// fold returns the part of row t.
func (f *fitted) fold(t int) int {
	if f.deal == nil {
		return 0
	}
	return f.deal.fold(t)
}

// name says of what kind q̂ is.
func (f *fitted) name() string {
	if f.ridges != nil {
		return "ridge"
	}
	return "mean"
}

// fit fits the model to a sample of rewards in a range.
func (m rewardModel) fit(s *Sample, r Range) (*fitted, error) {
	f := &fitted{actions: s.Actions, within: r}
	if m.Folds >= 2 {
		f.deal = &dealing{model: m, n: s.Len()}
	}
	f.means = m.means(s, f.fold)
	if f.deal == nil || s.Context == nil {
		return f, nil
	}
	ridges, err := newRidges(s, r, f.means)
	if err != nil {
		return nil, err
	}
	if ridges.fit(f) {
		f.ridges, f.within = ridges, ridges.within
	}
	return f, nil
}

// means returns the shrunk means of each fold and action.
func (m rewardModel) means(s *Sample, fold func(t int) int) []float64 {
	k := s.Actions
	folds := max(m.Folds, 1)
	sum, count := make([]float64, folds*k), make([]float64, folds*k)
	allSum, allCount := make([]float64, k), make([]float64, k)
	for t := range s.all() {
		a, c := int(s.Action[t]), s.events(t)
		i := fold(t)*k + a
		sum[i] += float64(c * s.Reward[t])
		count[i] += c
		allSum[a] += float64(c * s.Reward[t])
		allCount[a] += c
	}
	for i := range sum {
		if folds == 1 {
			continue // of all rows
		}
		sum[i], count[i] = allSum[i%k]-sum[i], allCount[i%k]-count[i]
	}
	out := make([]float64, 0, folds*k)
	for from := 0; from < folds*k; from += k {
		mean := m.Mean
		if math.IsNaN(mean) {
			mean = total(sum[from:from+k]) / total(count[from:from+k])
		}
		if math.IsNaN(mean) { // there is one row
			mean = total(allSum) / total(allCount)
		}
		for i := from; i < from+k; i++ {
			out = append(out, (sum[i]+float64(m.Count*mean))/(count[i]+m.Count))
		}
	}
	return out
}

func total(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum
}

// dealing deals n rows to folds whose sizes differ by at most one: at random in each block
// of rows, of which one is at hand.
type dealing struct {
	model rewardModel
	n     int
	block int     // at hand
	folds []int32 // of its rows; nil: there is none
}

// dealtRows is how many rows a block has.
const dealtRows = 1 << 16

// fold returns the fold of row t. It is quick where rows are asked for in order.
func (d *dealing) fold(t int) int {
	if d.folds == nil || t/dealtRows != d.block {
		d.block = t / dealtRows
		from := d.block * dealtRows
		rng := rand.New(rand.NewPCG(d.model.Seed, streamFolds+uint64(d.block)))
		d.folds = make([]int32, min(dealtRows, d.n-from))
		for i, at := range rng.Perm(len(d.folds)) {
			d.folds[at] = int32((from + i) % d.model.Folds)
		}
	}
	return int(d.folds[t%dealtRows])
}

// Streams of random numbers of one seed.
const (
	streamFolds     = 0x666f6c6473 // "folds"
	streamBootstrap = 0x626f6f74   // "boot"
)
