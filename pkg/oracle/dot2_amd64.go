package oracle

// dotPair returns the sums over groups of four that [dot] makes of p and q with y: SSE2,
// which every amd64 machine has, adds s0 and s1 in one register and s2 and s3 in another,
// in the same order, rounding each product.
//
//go:noescape
func dotPair(p, q, y *float64, groups int) (s, t float64)

// dot2 returns dot(p, y) and dot(q, y), to the bit; len(p) = len(q) = len(y). The two do
// not wait for each other, and y is read once.
func dot2(p, q, y []float64) (s, t float64) {
	n := len(y)
	if n == 0 {
		return 0, 0
	}
	p, q = p[:n], q[:n]
	s, t = dotPair(&p[0], &q[0], &y[0], n/4)
	for i := n &^ 3; i < n; i++ {
		s += float64(p[i] * y[i])
		t += float64(q[i] * y[i])
	}
	return s, t
}
