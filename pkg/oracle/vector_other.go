//go:build !amd64 || purego

package oracle

// The kernels that vector_amd64.go has with AVX2.

func dot4(s *[4]float64, p *[4][]float64, y []float64) { dot4Go(s, p, y) }

func packedOuter(dst, z []float64) { packedOuterGo(dst, z) }

func packedMul(dst, p, z []float64) { packedMulGo(dst, p, z) }

func packedRankOne(p []float64, c float64, k []float64) { packedRankOneGo(p, c, k) }

func packedStep(dst, p []float64, a float64, k, z []float64) { packedStepGo(dst, p, a, k, z) }

func addFour(dst []float64, w *[4][]float64, z *[4]float64) { addFourGo(0, dst, w, z) }

func cosines(dst, phase []float64, scale float64) { cosinesGo(dst, phase, scale) }

func dotEight(s *[8]float64, x []float64, ys [][8]float64, some *hashedColumns) {
	dotEightGo(s, x, ys, some.at)
}

func formEight(s *[8]float64, p []float64, zs [][8]float64, some *hashedColumns) {
	formEightGo(s, p, zs, some.at)
}
