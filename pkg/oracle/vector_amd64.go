//go:build !purego

package oracle

import "math"

// avx2 tells whether there is AVX2. It changes no bit of any result.
var avx2 = hasAVX2()

// hasAVX2 asks the processor whether it has AVX2, and whether the operating system keeps
// the registers (Intel SDM, volume 1, sections 14.3 and 14.7.1).
func hasAVX2() bool

//go:noescape
func dot4AVX2(s *[4]float64, p *[4][]float64, y []float64)

//go:noescape
func packedOuterAVX2(dst, z []float64)

//go:noescape
func packedMulAVX2(dst, p, z []float64)

//go:noescape
func packedRankOneAVX2(p []float64, c float64, k []float64)

//go:noescape
func packedStepAVX2(dst, p []float64, a float64, k, z []float64)

//go:noescape
func addFourAVX2(dst []float64, w *[4][]float64, z *[4]float64)

//go:noescape
func dotEightAVX2(s *[8]float64, x []float64, ys [][8]float64, some *hashedColumns)

//go:noescape
func formEightAVX2(s *[8]float64, p []float64, zs [][8]float64, some *hashedColumns)

//go:noescape
func cosinesAVX2(dst, phase []float64, scale float64, c *[14][4]float64)

// dot4 sets s[i] = dot(p[i], y), to the bit; each p[i] has at least the length of y. The
// four do not wait for each other, and y is read once.
func dot4(s *[4]float64, p *[4][]float64, y []float64) {
	if !avx2 {
		dot4Go(s, p, y)
		return
	}
	n := len(y)
	if len(p[0]) < n || len(p[1]) < n || len(p[2]) < n || len(p[3]) < n {
		panic("oracle: dot4 of shorter rows")
	}
	dot4AVX2(s, p, y)
}

// packedOuter is packedOuterGo, to the bit.
func packedOuter(dst, z []float64) {
	if !avx2 {
		packedOuterGo(dst, z)
		return
	}
	packedOuterAVX2(dst[:packedLen(len(z))], z)
}

// packedMul is packedMulGo, to the bit.
func packedMul(dst, p, z []float64) {
	if !avx2 {
		packedMulGo(dst, p, z)
		return
	}
	packedMulAVX2(dst[:len(z)], p[:packedLen(len(z))], z)
}

// packedRankOne is packedRankOneGo, to the bit.
func packedRankOne(p []float64, c float64, k []float64) {
	if !avx2 {
		packedRankOneGo(p, c, k)
		return
	}
	packedRankOneAVX2(p[:packedLen(len(k))], c, k)
}

// packedStep is packedStepGo, to the bit.
func packedStep(dst, p []float64, a float64, k, z []float64) {
	i, n := 0, len(z)
	if avx2 {
		i = n &^ 3
		packedStepAVX2(dst[:n], p[:packedLen(n)], a, k[:n], z)
	}
	packedStepFrom(i, dst, p, a, k, z)
}

// dotEight is dotEightGo, to the bit.
func dotEight(s *[8]float64, x []float64, ys [][8]float64, some *hashedColumns) {
	if !avx2 || len(some.at) == 0 {
		dotEightGo(s, x, ys, some.at)
		return
	}
	d := some.at[len(some.at)-1]
	_, _ = x[d], ys[d]
	dotEightAVX2(s, x, ys, some)
}

// formEight is formEightGo, to the bit.
func formEight(s *[8]float64, p []float64, zs [][8]float64, some *hashedColumns) {
	if !avx2 || len(some.at) == 0 {
		formEightGo(s, p, zs, some.at)
		return
	}
	d := int(some.at[len(some.at)-1]) + 1
	formEightAVX2(s, p[:packedLen(d)], zs[:d], some)
}

// addFour is addFourGo, to the bit.
func addFour(dst []float64, w *[4][]float64, z *[4]float64) {
	n := 0
	if avx2 {
		n = len(dst) &^ 3
		addFourAVX2(dst[:n], w, z)
	}
	addFourGo(n, dst, w, z)
}

// cosines is cosinesGo, to the bit.
func cosines(dst, phase []float64, scale float64) {
	n := 0
	if avx2 {
		n = len(dst) &^ 3
		cosinesAVX2(dst[:n], phase[:n], scale, &cosineTerms)
	}
	cosinesGo(dst[n:], phase[n:], scale)
}

// cosineTerms are the numbers of cosinesGo, in all lanes.
var cosineTerms = func() (lanes [14][4]float64) {
	for i, v := range [14]float64{0.5, 0.25, 2 * math.Pi, math.Sqrt2, 1.0 / 51090942171709440000,
		-1.0 / 121645100408832000, 1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
		1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6} {
		lanes[i] = [4]float64{v, v, v, v}
	}
	return lanes
}()
