package learner

import (
	"math"

	"hindsight/pkg/oracle"
)

// Potential is what theorems 1 and 3 of docs/algorithms.md, 3.4, take from an oracle over a finite class: weights
// proportional to prior·exp(−η·L), η < 2. The zero Potential is that of an oracle without them.
type Potential struct {
	Eta   float64 // η
	Scale float64 // log(1/min prior), which is log|F| of a uniform one
}

// concavity is c = η(1−η/2).
func (p Potential) concavity() float64 { return p.Eta * (1 - p.Eta/2) }

// Sum returns R_η = log|F|/(1−e^{−c}), which bounds Σ E E_q(f−f⋆)² for the weights q of all that was decided before.
func (p Potential) Sum() float64 { return p.Scale / (1 - oracle.Exp(-p.concavity())) }

// Free are the numbers that theorem 3 leaves free: each choice gives a bound.
type Free struct {
	Theta float64
	Late  int64 // W: rounds decided with more outstanding are charged 1 each
}

// Additive minimises, over a fixed grid of θ and W, the bound of theorem 3:
//
//	total(e^{ηθ}·R_η) + 2W·log|F|/(1−e^{−cθ}) + late(W)
//
// late(W) is at least the number of rounds decided with more than W outstanding, of which no round
// had more than longest. total must not fall.
func (p Potential) Additive(longest int64, total func(lead float64) float64, late func(w int64) float64) (
	least float64, at Free) {
	least = math.Inf(1)
	grid := delayGrid(longest)
	for k := 1; k <= 60; k++ {
		theta := float64(k) / 10
		lead := total(float64(oracle.Exp(p.Eta*theta) * p.Sum()))
		each := 2 * p.Scale / (1 - oracle.Exp(-float64(p.concavity()*theta)))
		for _, w := range grid {
			if b := lead + float64(each*float64(w)) + late(w); b < least {
				least, at = b, Free{theta, w}
			}
		}
	}
	return least, at
}

// delayGrid returns 0 and the numbers of the series 1, 1.5, 2, 3, 5, 7.5, 10, …, rounded down, up
// to the first that is not below longest.
func delayGrid(longest int64) (grid []int64) {
	grid = append(grid, 0)
	for ten := 1.0; grid[len(grid)-1] < longest; ten *= 10 {
		for _, m := range []float64{1, 1.5, 2, 3, 5, 7.5} {
			if grid[len(grid)-1] < longest {
				grid = append(grid, int64(m*ten))
			}
		}
	}
	return grid
}

// Additive returns the bound of theorem 3 on the regret in expectation, +Inf if the oracle has
// none: delay is an additive cost. It needs delays that are blind to losses that have not come. Of ridge regression it
// is the less of two, that with the factor max σ + 1, and that by the determinant, where bad rounds are the cost.
// How many rounds were decided with more than W outstanding is bounded by Markov's inequality, from Σσ and Σσ².
func (c Certificate) Additive() (bound float64, at Free) {
	if c.Linear.Lambda > 0 {
		all := c.Barrier + float64(c.MaxGamma*float64(c.MaxSigma+1)*c.Regret)/4 + float64(c.Skipped)
		return math.Min(all, c.linear(0.25, 0)), at
	}
	if !(c.Potential.Eta > 0) || c.Slowed {
		return math.Inf(1), at
	}
	return c.Potential.Additive(c.MaxSigma, func(lead float64) float64 {
		return c.Barrier + float64(c.MaxGamma*lead)/4 + float64(c.Skipped)
	}, func(w int64) float64 {
		if w >= c.MaxSigma {
			return 0
		}
		n := float64(w + 1)
		return math.Min(c.SumSigma/n, c.SumSqSig/float64(n*n))
	})
}

// AnyDelay returns the bound of theorem 1 on the regret in expectation, for delays that may look at
// everything but noise still to come; +Inf if the oracle has none:
//
//	Σ(K_t−1)/γ_t + (max γ/4)·e^{η·max σ}·R_η
//
// With η by the largest σ that was learned it has 1.6e·log|F|/η in place of the second factor, and
// charges 1 to each round that may have been decided with σ > 1/η (docs/algorithms.md, 3.4).
func (c Certificate) AnyDelay() float64 {
	p := c.Potential
	switch {
	case c.Linear.Lambda > 0:
		return c.linear(0.5, float64(c.MaxSigma))
	case !(p.Eta > 0):
		return math.Inf(1)
	}
	sum, surprised := oracle.Exp(float64(p.Eta*float64(c.MaxSigma)))*p.Sum(), 0.0
	if c.Slowed {
		sum = 1.6 * math.E * p.Scale / p.Eta
		for s := 4.0; s <= 1/p.Eta; s *= 2 {
			surprised += s + 1
		}
	}
	return c.Barrier + float64(c.MaxGamma*sum)/4 + surprised + float64(c.Skipped)
}

// Determinant is what the theorems on ridge regression take from its oracle ([oracle.Frozen]); zero: it is another.
type Determinant struct {
	Lambda float64 // λ
	Square float64 // b², bounds the sum of squares of the true weights
	LogDet float64 // Λ
	Bad    int64   // rounds decided with less than half the determinant
}

// linear returns the bound by the determinant, with α = 1/T:
//
//	Σ(K_t−1)/γ_t + (max γ/4)·2.89·β·Λ + bad + 1,  β = max(½, (√(scale·(Λ + 2 log T)) + √λ·b + √selected)²)
func (c Certificate) linear(scale, selected float64) float64 {
	l := &c.Linear
	logT := oracle.Log(math.Max(2, float64(c.Rounds)))
	width := math.Sqrt(float64(scale*(l.LogDet+float64(2*logT)))) +
		math.Sqrt(float64(l.Lambda*l.Square)) + math.Sqrt(selected)
	beta := math.Max(0.5, float64(width*width))
	return c.Barrier + float64(c.MaxGamma*float64(2.89*beta))*l.LogDet/4 + float64(l.Bad+1+c.Skipped)
}
