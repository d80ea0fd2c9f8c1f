package oracle

import (
	"math"
	"math/rand/v2"
	"testing"
)

// full expands a packed symmetric matrix.
func full(p []float64, d int) [][]float64 {
	m := make([][]float64, d)
	for i := range m {
		m[i] = make([]float64, d)
	}
	for i := range d {
		for j := range i + 1 {
			m[i][j], m[j][i] = p[packedLen(i)+j], p[packedLen(i)+j]
		}
	}
	return m
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-11*(1+math.Abs(b)) }

// TestKernels compares every kernel with its textbook form, dense and sparse.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for d := range 40 {
		x, y, p := make([]float64, d), make([]float64, d), make([]float64, packedLen(d))
		var at []int32
		for i := range d {
			y[i] = rng.Float64() - 0.5
			if rng.IntN(3) == 0 {
				x[i] = rng.Float64() - 0.5
				at = append(at, int32(i))
			}
		}
		for i := range p {
			p[i] = rng.Float64() - 0.5
		}
		m := full(p, d)
		wantDot, wantForm, wantMul := 0.0, 0.0, make([]float64, d)
		for i := range d {
			wantDot += x[i] * y[i]
			for j := range d {
				wantMul[i] += m[i][j] * x[j]
				wantForm += x[i] * m[i][j] * x[j]
			}
		}
		outer := make([]float64, packedLen(d))
		packedOuter(outer, x)
		for name, got := range map[string]float64{
			"dot": dot(x, y) - wantDot, "dotAt": dotAt(x, y, at) - wantDot,
			"packedForm": packedForm(p, x) - wantForm, "packedFormAt": packedFormAt(p, x, at) - wantForm,
			"packedOuter": dot(p, outer) - wantForm,
		} {
			if !near(got, 0) {
				t.Errorf("d=%d: %s is off by %v", d, name, got)
			}
		}
		k, kAt := make([]float64, d), make([]float64, d)
		packedMul(k, p, x)
		packedMulAt(kAt, p, x, at)
		for i := range d {
			if !near(k[i], wantMul[i]) || !near(kAt[i], wantMul[i]) {
				t.Errorf("d=%d: packedMul[%d] = %v, packedMulAt %v, want %v", d, i, k[i], kAt[i], wantMul[i])
			}
		}
		packedRankOne(p, 0.25, y)
		axpy(x, 2, y)
		for i, row := range full(p, d) {
			for j, v := range row {
				if !near(v, m[i][j]-0.25*y[i]*y[j]) {
					t.Errorf("d=%d: packedRankOne(%d,%d) = %v", d, i, j, v)
				}
			}
		}
	}
}
