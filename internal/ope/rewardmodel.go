package ope

import "math/rand/v2"

// RewardModel says how q̂ is fitted: the smoothed mean reward of each action,
// q̂(a) = (Σ c·r + PriorSum)/(Σ c + PriorCount), c the events that a row stands for, over the whole log, or for each of Folds
// parts of it over the others.
type RewardModel struct {
	PriorSum   float64
	PriorCount float64 // > 0
	Folds      int     // parts that rows are dealt to at random; < 2: no cross-fitting
	Seed       uint64  // of the dealing
}

// DefaultRewardModel starts every action with 100 rows of mean .01: that of an
// advertisement.
var DefaultRewardModel = RewardModel{PriorSum: 1, PriorCount: 100}

// fitted is q̂ of each fold and action.
type fitted struct {
	actions int
	q       []float64 // [folds·K]
	deal    *dealing  // nil: one fold
}

func (f *fitted) of(t, a int) float64 {
	if f.deal == nil {
		return f.q[a]
	}
	return f.q[f.deal.fold(t)*f.actions+a]
}

// fit fits the model to a sample.
func (m RewardModel) fit(s *Sample) *fitted {
	k := s.Actions
	sum, count := make([]float64, k), make([]float64, k)
	for t := range s.all() {
		a := s.Action[t]
		sum[a] += s.events(t) * s.Reward[t]
		count[a] += s.events(t)
	}
	f := &fitted{actions: k}
	if m.Folds < 2 {
		for a := range k {
			f.q = append(f.q, (sum[a]+m.PriorSum)/(count[a]+m.PriorCount))
		}
		return f
	}
	f.deal = &dealing{model: m, n: s.Len()}
	inSum, inCount := make([]float64, m.Folds*k), make([]float64, m.Folds*k)
	for t := range s.all() {
		i := f.deal.fold(t)*k + int(s.Action[t])
		inSum[i] += s.events(t) * s.Reward[t]
		inCount[i] += s.events(t)
	}
	for i := range inSum {
		a := i % k
		f.q = append(f.q, (sum[a]-inSum[i]+m.PriorSum)/(count[a]-inCount[i]+m.PriorCount))
	}
	return f
}

// dealing deals n rows to folds whose sizes differ by at most one: at random in each block
// of rows, of which one is at hand.
type dealing struct {
	model RewardModel
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
