//go:build !amd64

package oracle

// dot2 returns dot(p, y) and dot(q, y); len(p) = len(q) = len(y).
func dot2(p, q, y []float64) (s, t float64) { return dot(p, y), dot(q, y) }
