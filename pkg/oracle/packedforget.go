package oracle

// packedStep takes a·k·kᵀ from a packed P and multiplies it by z, in one pass: every
// element is loaded once and stored once. It sets dst = (P − a·k·kᵀ)·z; the slices have
// the length of P's rows. Two rows are taken together, so that sums run beside each
// other. With a = 0 it leaves P as it was.
func packedStep(dst, p []float64, a float64, k, z []float64) {
	n := len(z)
	dst, k = dst[:n], k[:n]
	i := 0
	for ; i+2 <= n; i += 2 {
		at := packedLen(i)
		r0, r1 := p[at:][:i+1], p[at+i+1:][:i+2]
		k0, k1 := float64(a*k[i]), float64(a*k[i+1])
		z0, z1 := z[i], z[i+1]
		s0, s1 := packedStepRows(dst[:i], r0[:i], r1[:i], k[:i], z[:i], k0, k1, z0, z1)
		// The little triangle on the diagonal.
		r0[i] -= float64(k0 * k[i])
		r1[i] -= float64(k1 * k[i])
		r1[i+1] -= float64(k1 * k[i+1])
		s0 += float64(r0[i]*z0) + float64(r1[i]*z1)
		s1 += float64(r1[i]*z0) + float64(r1[i+1]*z1)
		dst[i], dst[i+1] = s0, s1
	}
	if i < n {
		row := p[packedLen(i):][:n]
		k0, z0 := float64(a*k[i]), z[i]
		s := 0.0
		for j := range i {
			x := row[j] - float64(k0*k[j])
			row[j] = x
			s += float64(x * z[j])
			dst[j] += float64(x * z0)
		}
		row[i] -= float64(k0 * k[i])
		dst[i] = s + float64(row[i]*z0)
	}
}

// packedStepRows is packedStep for two rows, but for their ends on the diagonal.
func packedStepRows(dst, r0, r1, k, z []float64, k0, k1, z0, z1 float64) (s0, s1 float64) {
	n := len(r0)
	dst, r1, k, z = dst[:n], r1[:n], k[:n], z[:n]
	for j, w := range k {
		x, y := r0[j]-float64(k0*w), r1[j]-float64(k1*w)
		r0[j], r1[j] = x, y
		s0 += float64(x * z[j])
		s1 += float64(y * z[j])
		dst[j] += float64(x*z0) + float64(y*z1)
	}
	return s0, s1
}
