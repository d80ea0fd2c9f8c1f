//go:build !purego

package oracle

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
