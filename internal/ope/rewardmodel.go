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
	fold    []int32   // [n]; nil: one fold
}

func (f *fitted) of(t, a int) float64 {
	if f.fold == nil {
		return f.q[a]
	}
	return f.q[int(f.fold[t])*f.actions+a]
}

// fit fits the model to a sample.
func (m RewardModel) fit(s *Sample) *fitted {
	k := s.Actions
	sum, count := make([]float64, k), make([]float64, k)
	for t, a := range s.Action {
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
	f.fold = m.deal(s.Len())
	inSum, inCount := make([]float64, m.Folds*k), make([]float64, m.Folds*k)
	for t, a := range s.Action {
		i := int(f.fold[t])*k + int(a)
		inSum[i] += s.events(t) * s.Reward[t]
		inCount[i] += s.events(t)
	}
	for i := range inSum {
		a := i % k
		f.q = append(f.q, (sum[a]-inSum[i]+m.PriorSum)/(count[a]-inCount[i]+m.PriorCount))
	}
	return f
}

// deal deals n rows to folds whose sizes differ by at most one.
func (m RewardModel) deal(n int) []int32 {
	rng := rand.New(rand.NewPCG(m.Seed, streamFolds))
	fold := make([]int32, n)
	for i, t := range rng.Perm(n) {
		fold[t] = int32(i % m.Folds)
	}
	return fold
}

// Streams of random numbers of one seed.
const (
	streamFolds     = 0x666f6c6473 // "folds"
	streamBootstrap = 0x626f6f74   // "boot"
)
