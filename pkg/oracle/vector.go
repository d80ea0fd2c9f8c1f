package oracle

// The kernels of this file are plain Go with one fixed order of summation, four partial sums wide: element i goes to
// sum i mod 4 within whole groups of four, the rest is added one by one to the total (s0+s1)+(s2+s3). Where a decision
// and an update spend their time, vector_amd64.go has them with AVX2, to the same bits.
//
// A packed symmetric d×d matrix is its lower triangle by rows: element (i, j), j ≤ i, is at i(i+1)/2 + j. Growing the
// matrix by one row and column appends d+1 elements.

// dot returns Σ x[i]·y[i]; len(y) ≥ len(x).
func dot(x, y []float64) float64 {
	n := len(x)
	y = y[:n]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i <= n-4; i += 4 {
		a, b := (*[4]float64)(x[i:]), (*[4]float64)(y[i:])
		s0 += float64(a[0] * b[0])
		s1 += float64(a[1] * b[1])
		s2 += float64(a[2] * b[2])
		s3 += float64(a[3] * b[3])
	}
	s := (s0 + s1) + (s2 + s3)
	for ; i < n; i++ {
		s += float64(x[i] * y[i])
	}
	return s
}

// axpy adds a·x to y; len(y) ≥ len(x).
func axpy(y []float64, a float64, x []float64) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float64(a * v)
	}
}

// resize returns a slice of length n that has s's memory if it is large enough.
func resize(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n, n+n/2)
	}
	return s[:n]
}

// packedLen returns the number of elements of a packed d×d matrix.
func packedLen(d int) int { return d * (d + 1) / 2 }

// dot4Go sets s[i] = dot(p[i], y); each p[i] has at least the length of y.
func dot4Go(s *[4]float64, p *[4][]float64, y []float64) {
	for i, row := range p {
		s[i] = dot(row[:len(y)], y)
	}
}

// packedOuterGo sets dst so that zᵀPz = dot(dst, P) for every packed P: 2·z_i·z_j
// off the diagonal, z_i² on it. len(dst) = packedLen(len(z)).
func packedOuterGo(dst, z []float64) {
	for i, v := range z {
		row := dst[:i+1]
		dst = dst[i+1:]
		twice := 2 * v
		for j, w := range z[:i] {
			row[j] = twice * w
		}
		row[i] = v * v
	}
}

// packedForm returns zᵀPz for a packed P, row by row. Rows where z is 0 add nothing: of hashed columns few are not.
func packedForm(p, z []float64) float64 {
	s := 0.0
	for i, v := range z {
		row := p[:i+1]
		p = p[i+1:]
		if v == 0 {
			continue
		}
		s += float64(v * (float64(2*dot(row[:i], z)) + float64(row[i]*v)))
	}
	return s
}

// formEightGo sets s[q] = packedForm(p, z) for each of eight z, the columns q of zs, to the bit. All are 0 but at some
// rows: what is 0 changes no sum.
func formEightGo(s *[8]float64, p []float64, zs [][8]float64, at []int32) {
	var t [8]float64
	*s = [8]float64{}
	for n, i := range at {
		row, z := p[packedLen(int(i)):][:i+1], &zs[i]
		dotEightGo(&t, row[:i], zs, at[:n])
		for q, v := range z {
			s[q] += float64(v * (float64(2*t[q]) + float64(row[i]*v)))
		}
	}
}

// dotEightGo sets s[q] = dot(x, y) for each of eight y, as formEightGo.
func dotEightGo(s *[8]float64, x []float64, ys [][8]float64, at []int32) {
	var sums [4][8]float64
	whole, n := int32(len(x)&^3), 0
	for ; n < len(at) && at[n] < whole; n++ {
		v, sum := x[at[n]], &sums[at[n]&3]
		for q, y := range &ys[at[n]] {
			sum[q] += float64(v * y)
		}
	}
	for q := range s {
		s[q] = (sums[0][q] + sums[1][q]) + (sums[2][q] + sums[3][q])
	}
	for _, i := range at[n:] {
		for q, y := range &ys[i] {
			s[q] += float64(x[i] * y)
		}
	}
}

// packedFormAt returns zᵀPz where z is zero except at the columns at, which ascend.
func packedFormAt(p, z []float64, at []int32) float64 {
	s := 0.0
	for n, i := range at {
		row := p[packedLen(int(i)):]
		row = row[:i+1]
		var s0, s1 float64
		below := at[:n]
		for len(below) >= 2 {
			j0, j1 := below[0], below[1]
			s0 += float64(row[j0] * z[j0])
			s1 += float64(row[j1] * z[j1])
			below = below[2:]
		}
		if len(below) > 0 {
			s0 += float64(row[below[0]] * z[below[0]])
		}
		v := z[i]
		s += float64(v * (float64(2*(s0+s1)) + float64(row[i]*v)))
	}
	return s
}

// dotAt returns Σ x[i]·y[i] over the columns at.
func dotAt(x, y []float64, at []int32) float64 {
	s := 0.0
	for _, i := range at {
		s += float64(x[i] * y[i])
	}
	return s
}

// packedMulGo sets dst = P·z for a packed P; len(dst) = len(z).
func packedMulGo(dst, p, z []float64) {
	dst = dst[:len(z)]
	for i, v := range z {
		row := p[:i+1]
		p = p[i+1:]
		zs, ds := z[:len(row)-1], dst[:len(row)-1]
		s := 0.0
		for j := range zs {
			w := row[j]
			s += float64(w * zs[j])
			ds[j] += float64(w * v)
		}
		dst[i] = s + float64(row[i]*v)
	}
}

// packedMulAt sets dst = P·z where z is zero except at the columns at, which ascend.
func packedMulAt(dst, p, z []float64, at []int32) {
	for i := range dst {
		row := p[:i+1]
		p = p[i+1:]
		s := 0.0
		for _, j := range at {
			if int(j) > i {
				break
			}
			s += float64(row[j] * z[j])
		}
		dst[i] = s
		v := z[i]
		if v == 0 {
			continue
		}
		for j, w := range row[:i] {
			dst[j] += float64(w * v)
		}
	}
}

// packedRankOneGo subtracts c·k·kᵀ from a packed P.
func packedRankOneGo(p []float64, c float64, k []float64) {
	for i, v := range k {
		row := p[:i+1]
		p = p[i+1:]
		v *= c
		for j, w := range k[:i+1] {
			row[j] -= float64(v * w)
		}
	}
}

// packedStep takes a·k·kᵀ from a packed P and multiplies it by z, in one pass: every element is loaded once and stored
// once. It sets dst = (P − a·k·kᵀ)·z; the slices have the length of P's rows. Two rows are taken together, so that sums
// run beside each other. With a = 0 it leaves P as it was.
func packedStepGo(dst, p []float64, a float64, k, z []float64) {
	packedStepFrom(0, dst, p, a, k, z)
}

// packedStepFrom is packedStepGo of the rows from i on, an even number.
func packedStepFrom(i int, dst, p []float64, a float64, k, z []float64) {
	n := len(z)
	dst, k = dst[:n], k[:n]
	for ; i+2 <= n; i += 2 {
		at := packedLen(i)
		r0, r1 := p[at:][:i+1], p[at+i+1:][:i+2]
		k0, k1 := float64(a*k[i]), float64(a*k[i+1])
		z0, z1 := z[i], z[i+1]
		s0, s1 := packedStepRows(0, 0, dst[:i], r0[:i], r1[:i], k[:i], z[:i], k0, k1, z0, z1)
		packedStepEnds(s0, s1, dst[i:], r0[i:], r1[i:], k[i:], k0, k1, z0, z1)
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

// packedStepEnds ends packedStep for two rows with the little triangle on the diagonal.
func packedStepEnds(s0, s1 float64, dst, r0, r1, k []float64, k0, k1, z0, z1 float64) {
	r0[0] -= float64(k0 * k[0])
	r1[0] -= float64(k1 * k[0])
	r1[1] -= float64(k1 * k[1])
	dst[0] = s0 + (float64(r0[0]*z0) + float64(r1[0]*z1))
	dst[1] = s1 + (float64(r1[0]*z0) + float64(r1[1]*z1))
}

// packedStepRows is packedStep for two rows, but for their ends on the diagonal; s0 and s1
// are what earlier columns add up to.
func packedStepRows(s0, s1 float64, dst, r0, r1, k, z []float64, k0, k1, z0, z1 float64) (float64, float64) {
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
