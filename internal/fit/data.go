package fit

import (
	"fmt"
	"math"
)

// Data are the rows that functions are fitted to, and judged by.
type Data struct {
	Features []string    // d columns by the names that a class file gives them
	Actions  []string    // K; nil with ActionFeatures: a row is of one action, whatever its name
	X        [][]float64 // [n][d], with ActionFeatures [n][d+e]
	Loss     [][]float64 // [n][K] in [0,1]; NaN: not known. With ActionFeatures [n][1]
	Weight   []float64   // [n] > 0: 1/propensity of the one action whose loss is known, or 1 where all are

	ActionFeatures []string // e columns of the action; nil: functions are of named actions
}

// outputs is K, or 1 where functions are shared.
func (d *Data) outputs() int {
	if d.ActionFeatures != nil {
		return 1
	}
	return len(d.Actions)
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
	if d.outputs() == 0 || len(d.Loss) != n || len(d.Weight) != n {
		return fmt.Errorf("%d rows with %d losses and %d weights, of %d actions: they do not fit each other", n,
			len(d.Loss), len(d.Weight), len(d.Actions))
	}
	if n < minRows {
		return fmt.Errorf("%d rows with an outcome, beside those held out: a class is fitted to %d rows or more",
			n, minRows)
	}
	for a, name := range d.Actions {
		known := false
		for t := range d.Loss {
			known = known || !math.IsNaN(d.Loss[t][a])
		}
		if !known {
			return fmt.Errorf("the loss of action %q is known in none of %d rows: give more rows, or a log that "+
				"plays it", name, n)
		}
	}
	return nil
}

// minRows is the fewest rows that are split and fitted.
const minRows = 20

// scaling moves columns to mean 0 and standard deviation 1; a constant column becomes 0.
type scaling struct {
	data        *Data
	mean, scale []float64 // scale is 1/sd, or 0
}

func (d *Data) scaling() *scaling {
	n, dim := float64(d.Len()), d.width()
	s := &scaling{d, make([]float64, dim), make([]float64, dim)}
	for _, x := range d.X {
		for j := range s.mean {
			s.mean[j] += d.value(x, j) / n
		}
	}
	for _, x := range d.X {
		for j := range s.scale {
			v := d.value(x, j) - s.mean[j]
			s.scale[j] += v * v / n
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
		z[i] = (s.data.value(x, j) - s.mean[j]) * s.scale[j]
	}
	z[len(columns)] = 1
}

// raw returns the coefficients over all columns as they are, then the intercept, that equal w over the scaled ones.
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
