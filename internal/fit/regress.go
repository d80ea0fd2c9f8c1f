package fit

import (
	"math"

	"hindsight/pkg/oracle"
)

// sample is what one function is fitted to: how often each row was drawn, and over which columns.
type sample struct {
	data    *Data
	scale   *scaling
	count   []float64 // [n] ≥ 0
	columns []int
}

// ridge fits each action's losses by least squares: w minimises Σ c_t·v_t·(w·z_t − y_t)² + λ‖w‖² over the rows with a
// known loss, z standardised and v the importance weights divided by their mean; the intercept is not shrunk.
func (s *sample) ridge(lambda float64) [][]float64 {
	return s.each(func(rows []int, weight []float64, z [][]float64, a int) []float64 {
		n := newNormal(len(s.columns)+1, lambda)
		for i, t := range rows {
			n.add(z[i], weight[i], weight[i]*s.data.Loss[t][a])
		}
		return n.solve()
	})
}

// newtonSteps bound the logistic fit, which has converged by then or does not.
const newtonSteps = 12

// logistic fits each action's losses by penalised maximum likelihood of σ(w·z), by Newton's method (iteratively
// reweighted least squares); a loss between 0 and 1 counts as that share of a 1.
func (s *sample) logistic(lambda float64) [][]float64 {
	return s.each(func(rows []int, weight []float64, z [][]float64, a int) []float64 {
		w := make([]float64, len(s.columns)+1)
		w[len(w)-1] = s.logit(rows, weight, a)
		for range newtonSteps {
			n := newNormal(len(w), lambda)
			for i, t := range rows {
				u := inner(w, z[i])
				p := oracle.Sigmoid(u)
				v := max(p*(1-p), 1e-6)
				n.add(z[i], weight[i]*v, weight[i]*(v*u+s.data.Loss[t][a]-p))
			}
			next := n.solve()
			moved := 0.0
			for j := range w {
				moved = max(moved, math.Abs(next[j]-w[j]))
			}
			w = next
			if moved < 1e-6 {
				break
			}
		}
		return w
	})
}

// logit is the intercept that gives the mean loss.
func (s *sample) logit(rows []int, weight []float64, a int) float64 {
	sum, total := .5, 1.0
	for i, t := range rows {
		sum += weight[i] * s.data.Loss[t][a]
		total += weight[i]
	}
	p := min(max(sum/total, .001), .999)
	return math.Log(p / (1 - p))
}

// each fits every action to its rows, and returns coefficients over raw columns.
func (s *sample) each(fit func(rows []int, weight []float64, z [][]float64, a int) []float64) [][]float64 {
	out := make([][]float64, s.data.outputs())
	for a := range out {
		var rows []int
		var weight []float64
		sum := 0.0
		for t, c := range s.count {
			if c > 0 && !math.IsNaN(s.data.Loss[t][a]) {
				rows = append(rows, t)
				weight = append(weight, c*s.data.Weight[t])
				sum += s.data.Weight[t]
			}
		}
		z := make([][]float64, len(rows))
		flat := make([]float64, len(rows)*(len(s.columns)+1))
		for i, t := range rows {
			weight[i] *= float64(len(rows)) / sum
			z[i], flat = flat[:len(s.columns)+1], flat[len(s.columns)+1:]
			s.scale.apply(z[i], s.data.X[t], s.columns)
		}
		out[a] = s.scale.raw(fit(rows, weight, z, a), s.columns)
	}
	return out
}

func inner(x, y []float64) float64 {
	s := 0.0
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// normal are normal equations A·w = b, A symmetric: its lower triangle.
type normal struct {
	a [][]float64
	b []float64
}

// unshrunk is λ of the intercept: enough for A to be regular where there is no row.
const unshrunk = 1e-6

func newNormal(d int, lambda float64) *normal {
	n := &normal{a: make([][]float64, d), b: make([]float64, d)}
	for i := range n.a {
		n.a[i] = make([]float64, i+1)
		n.a[i][i] = lambda
	}
	n.a[d-1][d-1] = unshrunk
	return n
}

// add adds v·z·zᵀ to A and y·z to b.
func (n *normal) add(z []float64, v, y float64) {
	for i, zi := range z {
		n.b[i] += y * zi
		row, f := n.a[i], v*zi
		for j := range row {
			row[j] += f * z[j]
		}
	}
}

// solve returns w by Cholesky's decomposition A = L·Lᵀ, which takes A's place.
func (n *normal) solve() []float64 {
	d := len(n.b)
	for i := range d {
		for j := range i + 1 {
			s := n.a[i][j] - inner(n.a[i][:j], n.a[j][:j])
			if i > j {
				n.a[i][j] = s / n.a[j][j]
			} else {
				n.a[i][i] = math.Sqrt(max(s, 1e-12))
			}
		}
	}
	w := n.b
	for i := range d {
		w[i] = (w[i] - inner(n.a[i][:i], w[:i])) / n.a[i][i]
	}
	for i := d - 1; i >= 0; i-- {
		for j := i + 1; j < d; j++ {
			w[i] -= n.a[j][i] * w[j]
		}
		w[i] /= n.a[i][i]
	}
	return w
}
