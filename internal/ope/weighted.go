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
	s.WL += w * l
	s.WW += w * w
	s.WWL += w * w * l
	s.WWLL += w * w * l * l
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
	return ratio(math.Sqrt(max(0, s.WWLL-2*m*s.WWL+m*m*s.WW)), s.W)
}

// SE returns the standard error of the mean, which is the spread; NaN of fewer than two.
func (s *Weighted) SE() float64 {
	if s.N < 2 {
		return math.NaN()
	}
	return s.Spread()
}
