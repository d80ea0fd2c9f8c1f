package fit

import (
	"fmt"
	"math"
)

// Data are the rows that functions are fitted to, and judged by.
type Data struct {
	Features []string    // d columns by the names that a class file gives them
	Actions  []string    // K
	X        [][]float64 // [n][d]
	Loss     [][]float64 // [n][K] in [0,1]; NaN: not known
	Weight   []float64   // [n] > 0: 1/propensity of the one action whose loss is known, or 1 where all are
}

// Len returns the number n of rows.
func (d *Data) Len() int { return len(d.X) }

// split returns the rows before from, and the others.
func (d *Data) split(from int) (train, held *Data) {
	t, h := *d, *d
	t.X, t.Loss, t.Weight = d.X[:from], d.Loss[:from], d.Weight[:from]
	h.X, h.Loss, h.Weight = d.X[from:], d.Loss[from:], d.Weight[from:]
	return &t, &h
}

// validate reports data that nothing can be fitted to.
func (d *Data) validate() error {
	n := d.Len()
	if n < minRows || len(d.Actions) == 0 || len(d.Loss) != n || len(d.Weight) != n {
		return fmt.Errorf("%d rows and %d actions: a class is fitted to %d rows or more", n, len(d.Actions), minRows)
	}
	for a, name := range d.Actions {
		known := false
		for t := range d.Loss {
			known = known || !math.IsNaN(d.Loss[t][a])
		}
		if !known {
			return fmt.Errorf("the loss of action %q is known in none of %d rows: give more rows, or a log that plays it", name, n)
		}
	}
	return nil
}

// minRows is the fewest rows that are split and fitted.
const minRows = 20

// scaling moves columns to mean 0 and standard deviation 1; a constant column becomes 0.
type scaling struct{ mean, scale []float64 } // scale is 1/sd, or 0

func (d *Data) scaling() *scaling {
	n, dim := float64(d.Len()), len(d.Features)
	s := &scaling{make([]float64, dim), make([]float64, dim)}
	for _, x := range d.X {
		for j, v := range x {
			s.mean[j] += v / n
		}
	}
	for _, x := range d.X {
		for j, v := range x {
			s.scale[j] += (v - s.mean[j]) * (v - s.mean[j]) / n
		}
	}
	for j, variance := range s.scale {
		if s.scale[j] = 0; variance > 1e-20 {
			s.scale[j] = 1 / math.Sqrt(variance)
		}
	}
	return s
}

// apply sets z to the scaled columns that are listed, and then a 1.
func (s *scaling) apply(z, x []float64, columns []int) {
	for i, j := range columns {
		z[i] = (x[j] - s.mean[j]) * s.scale[j]
	}
	z[len(columns)] = 1
}

// raw returns the coefficients over all d columns as they are, then the intercept, that
// equal w over the scaled ones.
func (s *scaling) raw(w []float64, columns []int) []float64 {
	out := make([]float64, len(s.mean)+1)
	intercept := w[len(columns)]
	for i, j := range columns {
		out[j] = w[i] * s.scale[j]
		intercept -= out[j] * s.mean[j]
	}
	out[len(s.mean)] = intercept
	return out
}
