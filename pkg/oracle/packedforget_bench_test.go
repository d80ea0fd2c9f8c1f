package oracle

import (
	"math"
	"math/rand/v2"
	"testing"
)

// unfusedForget is the update with forgetting by its three formulas, one pass over P
// each: P ← DPD, k = P·z, P −= k·kᵀ/(1+v). It is what packedForget is compared with.
func unfusedForget(p, z, s, k []float64, rho, lambda float64) {
	for i := range s {
		s[i] = math.Min(1/math.Sqrt(rho), 1/math.Sqrt(lambda*p[packedLen(i)+i]))
	}
	at := 0
	for i, v := range s {
		for j := range i + 1 {
			p[at] *= float64(v * s[j])
			at++
		}
	}
	packedMul(k, p, z)
	packedRankOne(p, 1/(1+dot(k, z)), k)
}

func BenchmarkForget(b *testing.B) {
	const d, rho, lambda = 145, .998, 7.25
	rng := rand.New(rand.NewPCG(1, 1))
	z := make([]float64, d)
	s, k := make([]float64, d), make([]float64, d)
	p := make([]float64, packedLen(d))
	for i := range d {
		p[packedLen(i)+i] = 1 / lambda
	}
	draw := func() {
		for i := range z {
			z[i] = rng.NormFloat64()
		}
	}
	for range 2000 {
		draw()
		unfusedForget(p, z, s, k, rho, lambda)
	}
	sum := 0.0
	floor := least(func() {
		t := 0.0
		for _, v := range p {
			t += v
		}
		sum += t
	})
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"unfused", func() { unfusedForget(p, z, s, k, rho, lambda) }},
		{"step", func() { packedStep(k, p, 1e-30, z, z) }},
		{"step4", func() { packedStep4(k, p, 1e-30, z, z) }},
		{"mul", func() { packedMul(k, p, z) }},
		{"rank", func() { packedRankOne(p, 1e-30, z) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(least(c.f)*1e9, "least-ns")
			b.ReportMetric(least(c.f)/floor, "×floor")
		})
	}
}

func packedStep4(dst, p []float64, a float64, k, z []float64) {
	n := len(z)
	dst, k = dst[:n], k[:n]
	i := 0
	for ; i+4 <= n; i += 4 {
		at := packedLen(i)
		r0 := p[at:][:i]
		r1 := p[at+i+1:][:i]
		r2 := p[at+2*i+3:][:i]
		r3 := p[at+3*i+6:][:i]
		zs, ds, ks := z[:i], dst[:i], k[:i]
		v0, v1, v2, v3 := z[i], z[i+1], z[i+2], z[i+3]
		a0, a1, a2, a3 := a*k[i], a*k[i+1], a*k[i+2], a*k[i+3]
		var s0, s1, s2, s3 float64
		for j, w := range zs {
			x := ks[j]
			a, b, c, d := r0[j]-a0*x, r1[j]-a1*x, r2[j]-a2*x, r3[j]-a3*x
			r0[j], r1[j], r2[j], r3[j] = a, b, c, d
			s0 += float64(a * w)
			s1 += float64(b * w)
			s2 += float64(c * w)
			s3 += float64(d * w)
			ds[j] += (float64(a*v0) + float64(b*v1)) + (float64(c*v2) + float64(d*v3))
		}
		dst[i], dst[i+1], dst[i+2], dst[i+3] = s0, s1, s2, s3
	}
}
