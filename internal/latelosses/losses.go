package latelosses

import (
	"math"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/oracle"
)

// A round whose outcome comes after its window is not learned from. That biases what is
// learned if the delay depends on the loss, which shows: the losses that came late are
// known, though not used.

// Moments are the mean and the spread of numbers, in one pass (Welford, Note on a Method
// for Calculating Corrected Sums of Squares and Products, Technometrics 1962). The mean
// of equal numbers is that number, with no spread.
type Moments struct {
	N      int64
	mean   float64
	m2     float64 // Σ (x−mean)²
	missed float64 // Σ (x−g)², where g is the mean of those before x, ½ before the first
}

// Add takes a number.
func (m *Moments) Add(x float64) {
	guess := m.mean
	if m.N == 0 {
		guess = 0.5
	}
	m.missed += float64((x - guess) * (x - guess))
	m.N++
	d := x - m.mean
	m.mean += d / float64(m.N)
	m.m2 += float64(d * (x - m.mean))
}

// Mean returns the mean, NaN of nothing.
func (m *Moments) Mean() float64 {
	if m.N == 0 {
		return math.NaN()
	}
	return m.mean
}

// SE returns the standard error of the mean, NaN of fewer than two numbers.
func (m *Moments) SE() float64 {
	if m.N < 2 {
		return math.NaN()
	}
	return math.Sqrt(m.m2 / (float64(m.N) * float64(m.N-1)))
}

// radiusRates is how many rates [Moments.Radius] bets at: λ_j = 2^{-j}, j = 1, 2, ….
const radiusRates = 14

// Radius returns how far the mean of numbers x_i in [0,1] may be from the average of what
// they were expected to be, m_i = E[x_i | those before]: with probability 1−alpha it is never
// further, however often one looks. It is an empirical-Bernstein confidence sequence (Howard,
// Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
// sequences", 2021, theorem 4), by a fixed grid of rates in place of a mixture. For g_i as
// above, e = x_i − g_i ≥ −1 and 0 ≤ λ < 1,
//
//	exp(λe − ψ(λ)e²) ≤ 1 + λe,   ψ(λ) = −log(1−λ) − λ
//
// (Fan, Grama and Liu, "Exponential inequalities for martingales with applications", 2015),
// and E[1 + λe | those before] = 1 + λ(m_i − g_i) ≤ exp(λ(m_i − g_i)). So
//
//	exp(λ Σ(x_i − m_i) − ψ(λ) Σe²)
//
// is a non-negative supermartingale from 1, which by Ville's inequality ever reaches c with
// probability at most 1/c; so is that of 1 − x_i. With c = 2J/alpha for each of J rates and
// both sides, nowhere is |Σ(x_i − m_i)| ≥ (log c + ψ(λ_j) Σe²)/λ_j for any j. It is +Inf of
// nothing.
func (m *Moments) Radius(alpha float64) float64 {
	least := math.Inf(1)
	if m.N == 0 {
		return least
	}
	c, rate := oracle.Log(2*radiusRates/alpha), 1.0
	for range radiusRates {
		rate /= 2
		psi := -oracle.Log(1-rate) - rate
		least = math.Min(least, (c+float64(psi*m.missed))/float64(rate*float64(m.N)))
	}
	return least
}

// Losses are the losses of rounds that were observed, and those that came for
// rounds without a loss in time: the first of each round. They are of one epoch, the
// last one met; losses are those of its scale, in [0,1]. Of models that sum outcomes
// none is late: it would be but a part of a loss.
type Losses struct {
	OnTime, Late Moments
	epoch        int64
}

// differLevel bounds the chance that losses which are alike ever differ.
const differLevel = 0.01

// Differ reports whether the means differ by more than chance has it: where late losses are
// expected to be what those in time are, on average, the chance that it ever does so is at
// most 1 in 100, at any number of looks ([Moments.Radius] of both, each at half the level).
// Means that are as far apart as can be take 35 losses of each.
func (l *Losses) Differ() bool {
	return math.Abs(l.OnTime.mean-l.Late.mean) > l.OnTime.Radius(differLevel/2)+l.Late.Radius(differLevel/2)
}

// AddObserved takes the loss of a round that was observed.
func (l *Losses) AddObserved(epoch int64, loss float64) {
	if l.of(epoch) {
		l.OnTime.Add(loss)
	}
}

// AddLate takes the first outcome after the window of a round that was skipped or
// imputed. It reports false if that has no loss: the next one may.
func (l *Losses) AddLate(epoch int64, rules *loop.Rules, kind codec.OutcomeKind, value float64) bool {
	if kind != codec.Loss && kind != codec.Reward || rules == nil || rules.Outcomes == loop.Sum {
		return false
	}
	loss, err := rules.Range.ToLoss(kind, value)
	if err != nil || !l.of(epoch) {
		return false
	}
	l.Late.Add(loss)
	return true
}

// of reports whether losses of an epoch count, and begins anew with a later epoch.
func (l *Losses) of(epoch int64) bool {
	if epoch > l.epoch {
		*l = Losses{epoch: epoch}
	}
	return epoch == l.epoch
}
