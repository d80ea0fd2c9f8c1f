package ope

import "math"

// Weighted are running sums of weighted values.
type Weighted struct {
	N     int64
	W, WL float64
	WW    float64 // Σw²
	WWL   float64 // Σw²l
	WWLL  float64 // Σw²l²
}

// Add adds a value.
func (s *Weighted) Add(w, l float64) {
	s.N++
	s.W += w
	s.WL += float64(w * l)
	s.WW += float64(w * w)
	s.WWL += float64(w * w * l)
	s.WWLL += float64(w * w * l * l)
}

// UnitSums are Σw and Σwl of one unit.
type UnitSums [2]float64

// AddOf adds a value of a unit that has these sums so far: all values of a unit are one term, however they depend on
// each other.
func (s *Weighted) AddOf(u *UnitSums, w, l float64) {
	s.Add(w, l)
	s.WW += float64(2 * u[0] * w)
	s.WWL += float64(u[0]*w*l) + float64(u[1]*w)
	s.WWLL += float64(2 * u[1] * w * l)
	u[0] += w
	u[1] += float64(w * l)
}

// Merge adds other sums (sign 1), or takes them away (−1).
func (s *Weighted) Merge(o *Weighted, sign float64) {
	s.N += int64(sign) * o.N
	s.W += sign * o.W
	s.WL += sign * o.WL
	s.WW += sign * o.WW
	s.WWL += sign * o.WWL
	s.WWLL += sign * o.WWLL
}

// Mean returns Σwl/Σw; NaN of none.
func (s *Weighted) Mean() float64 { return ratio(s.WL, s.W) }

// Spread returns √Σw²(l−mean)²/Σw, NaN of none.
func (s *Weighted) Spread() float64 {
	m := s.Mean()
	return ratio(math.Sqrt(max(0, s.WWLL-float64(2*m*s.WWL)+float64(m*m*s.WW))), s.W)
}

// SE returns the standard error of the mean, which is the spread; NaN of fewer than two.
func (s *Weighted) SE() float64 {
	if s.N < 2 {
		return math.NaN()
	}
	return s.Spread()
}

// Outcome is what a log says of one named outcome of a policy, over the rows in which it is known.
type Outcome struct {
	Name      string    `json:"name"`
	Rows      int64     `json:"rows"`
	Estimates Estimates `json:"estimates"` // ips, the mean of w·y, and snips, Σwy/Σw
}

// OutcomeOf returns the estimates of a sum of values with weights w = π/p, times the events that a row stands for, of
// which there are so many. of is the sum of w·value with weight 1; rows are of so many units.
func OutcomeOf(name string, s, of *Weighted, units, events float64) Outcome {
	each := events / float64(s.N)
	se := of.Spread() * math.Sqrt(ratio(units, units-1))
	return Outcome{name, s.N, Estimates{Normal("ips", of.Mean()/each, se/each), Normal("snips", s.Mean(), s.SE())}}
}
