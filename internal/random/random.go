// Package random holds random functions: values that depend on a seed, a name and indices alone, so that they
// are the same in any order and on any machine.
package random

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"

	"hindsight/pkg/oracle"
)

// Stream is a random function: its values are independent over (i, j), and over
// streams of other seeds or names. It has no state.
type Stream struct{ key [2]uint64 }

// New returns the random function of a seed and a name.
func New(seed uint64, name string) Stream {
	b := binary.BigEndian.AppendUint64([]byte("hindsight/replay/1\x00"), seed)
	h := sha256.Sum256(append(b, name...))
	return Stream{[2]uint64{binary.BigEndian.Uint64(h[:]), binary.BigEndian.Uint64(h[8:])}}
}

// Uint64 returns 64 random bits.
func (s Stream) Uint64(i, j uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15
	return mix(mix(i*golden+s.key[0]) ^ mix(j*golden+s.key[1]) ^ bits.RotateLeft64(s.key[0], 32))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014; constants of Stafford's variant 13).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Uniform returns a number in (0,1), a multiple of 2^-53 and never 0 or 1.
func (s Stream) Uniform(i, j uint64) float64 {
	return (float64(s.Uint64(i, j)>>12) + 0.5) * 0x1p-52
}

// Normal returns a standard normal number.
func (s Stream) Normal(i, j uint64) float64 { return quantile(s.Uniform(i, j)) }

// Shuffle returns a seeded permutation of 0…n−1 (Fisher and Yates).
func (s Stream) Shuffle(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i)
		// The bias of a 64-bit product is below n·2^-64.
		j, _ := bits.Mul64(s.Uint64(uint64(i), 0), uint64(i+1))
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// quantile is the inverse of the normal distribution function, p in (0,1), with
// a relative error of about 1e-16 (Wichura 1988, algorithm AS 241, PPND16).
func quantile(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * poly(r, 3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3,
			1.3731693765509461125e4,
			4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3) /
			poly(r, 1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
				2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3)
	}
	r := math.Sqrt(-oracle.Log(math.Min(p, 1-p)))
	v := 0.0
	if r <= 5 {
		r -= 1.6
		v = poly(r, 1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
			1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4) /
			poly(r, 1, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
				1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
				1.05075007164441684324e-9)
	} else {
		r -= 5
		v = poly(r, 6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 2.96560571828504891230e-1,
			2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
			2.01033439929228813265e-7) /
			poly(r, 1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
				7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
				2.04426310338993978564e-15)
	}
	if q < 0 {
		return -v
	}
	return v
}

// poly returns Σ c_i·r^i.
func poly(r float64, c0, c1, c2, c3, c4, c5, c6, c7 float64) float64 {
	s := c7
	for _, c := range [...]float64{c6, c5, c4, c3, c2, c1, c0} {
		s = float64(s*r) + c
	}
	return s
}
