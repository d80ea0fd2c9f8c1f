package oracle

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkKernels times the kernels of a round beside their Go twins: x-go is how many
// times as fast as those they are in the same run.
func BenchmarkKernels(b *testing.B) {
	for _, d := range []int{17, 64} {
		rng := rand.New(rand.NewPCG(1, 2))
		c := newKernelCase(d, 0, rng.Float64)
		var s [4]float64
		outer, k := make([]float64, packedLen(d)), make([]float64, d)
		for _, kernel := range []struct {
			name      string
			fast, go_ func()
		}{
			{"forms", func() { dot4(&s, &c.matrix, outer) }, func() { dot4Go(&s, &c.matrix, outer) }},
			{"means", func() { dot4(&s, &c.matrix, c.z) }, func() { dot4Go(&s, &c.matrix, c.z) }},
			{"outer", func() { packedOuter(outer, c.z) }, func() { packedOuterGo(outer, c.z) }},
			{"multiply", func() { packedMul(k, c.matrix[0], c.z) }, func() { packedMulGo(k, c.matrix[0], c.z) }},
			{"rank-one", func() { packedRankOne(c.matrix[1], 1e-9, c.z) },
				func() { packedRankOneGo(c.matrix[1], 1e-9, c.z) }},
		} {
			b.Run(fmt.Sprintf("d=%d/%s", d, kernel.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					kernel.fast()
				}
				fast := least(kernel.fast)
				b.ReportMetric(fast*1e9, "least-ns")
				b.ReportMetric(least(kernel.go_)/fast, "x-go")
			})
		}
	}
}
