package ledger

import (
	"math"

	"hindsight/pkg/oracle"
)

// Sequence is a lower confidence sequence for the mean of scores x ≥ 0. The same level must be given to all calls.
type Sequence struct {
	N        int64
	sum      float64 // Σ x
	squares  float64 // Σ (x − m)², m the mean that is shrunk to 1/2 by one score
	rate     float64 // Σ λ
	weighted float64 // Σ λx
	variance float64 // Σ ψ(λ)(x − μ)², μ the mean before x
}

// maxRate is the largest λ: ψ grows without bound towards 1.
const maxRate = 0.5

// Level returns what the methods of a sequence are given for the error probability alpha: log(1/α).
func Level(alpha float64) float64 { return -oracle.Log(alpha) }

// Add adds a score.
func (s *Sequence) Add(x, level float64) {
	n := float64(s.N)
	spread := (0.25 + s.squares) / (n + 1)
	rate := math.Min(maxRate, math.Sqrt(2*level/((n+1)*oracle.Log(n+2)*spread)))
	mean := 0.0
	if s.N > 0 {
		mean = math.Min(1, s.sum/n)
	}
	s.N++
	s.sum += x
	shrunk := math.Min(1, (0.5+s.sum)/(n+2))
	s.squares += float64((x - shrunk) * (x - shrunk))
	s.rate += rate
	s.weighted += float64(rate * x)
	s.variance += float64((-oracle.Log(1-rate) - rate) * ((x - mean) * (x - mean)))
}

// Low returns the lower end after the scores so far. It may be below 0; −∞, a level divided by 0, without scores.
func (s *Sequence) Low(level float64) float64 {
	return (s.weighted - level - s.variance) / s.rate
}

// Mean returns the mean of the scores; 0 without any.
func (s *Sequence) Mean() float64 { return s.sum / float64(max(s.N, 1)) }

// sums are what a sequence keeps beside N.
func (s *Sequence) sums() [5]*float64 {
	return [...]*float64{&s.sum, &s.squares, &s.rate, &s.weighted, &s.variance}
}
