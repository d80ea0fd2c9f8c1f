package oracle

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

// fourier draws random Fourier features of z (Rahimi and Recht 2007),
//
//	√2·cos(w_j·z + b_j), j = 1..m,  w_j ~ N(0, I/(d·wide²)), b_j ~ U[0, 2π)
//
// for a z whose columns are added one by one. What belongs to a column is a function of the seed, the column's feature
// and j, so that it does not matter when or in which order columns came, and nothing of it is kept in snapshots. Column
// 0, the constant, has no weight: it would only turn b_j.
type fourier struct {
	seed  uint64
	wide  float64   // how far in z, in units of √d, the cosines are alike
	phase []float64 // b_j in turns

	expected int       // d that the oracle expects; 0: not known
	w        []float64 // by column, from column 1: m frequencies in turns, for d = 1
	at       []int32   // scratch
}

func newFourier(m int, seed uint64) fourier {
	f := fourier{seed: seed, wide: 1, phase: make([]float64, m)}
	key := f.key(column{}, slot{})
	for j := range f.phase {
		f.phase[j] = uniform(key, uint64(j))
	}
	return f
}

// key hashes a column: column 0 is that of the phases.
func (f *fourier) key(c column, s slot) uint64 {
	b := binary.BigEndian.AppendUint64([]byte("hindsight/fourier/1\x00"), f.seed)
	w := NewWriter(append(b, s.scope, byte(c.kind)))
	w.String(&s.name)
	w.String(&c.text)
	h := sha256.Sum256(w.b)
	return binary.BigEndian.Uint64(h[:])
}

// uniform returns the i-th number in (0,1) of a key: SplitMix64 (Steele, Lea, Flood
// 2014) at a place.
func uniform(key, i uint64) float64 {
	z := mix64(key + (i+1)*0x9e3779b97f4a7c15)
	return (float64(z>>12) + 0.5) * 0x1p-52
}

// grow draws the frequencies of the columns that are new.
func (f *fourier) grow(x *features) {
	m := len(f.phase)
	if m == 0 {
		return
	}
	for c := len(f.w)/m + 1; c < len(x.cols); c++ {
		key := f.key(x.cols[c], x.slots[x.cols[c].slot])
		for j := range uint64(m) {
			// Box and Muller 1958; 1/2π makes radians turns.
			r := math.Sqrt(-2 * Log(uniform(key, 2*j)))
			f.w = append(f.w, r*CosTurns(uniform(key, 2*j+1))/(2*math.Pi))
		}
	}
}

// fill sets dst[j] = √2·cos(w_j·z + b_j); len(dst) = m. The sum over columns is in
// their order, four columns that are not 0 at a time.
func (f *fourier) fill(dst, z []float64, d int) {
	f.at = f.at[:0]
	for c, v := range z {
		if v != 0 && c > 0 {
			f.at = append(f.at, int32(c-1))
		}
	}
	m := len(dst)
	clear(dst)
	at := f.at
	for ; len(at) >= 4; at = at[4:] {
		w := [4][]float64{f.w[int(at[0])*m:][:m], f.w[int(at[1])*m:][:m],
			f.w[int(at[2])*m:][:m], f.w[int(at[3])*m:][:m]}
		addFour(dst, &w, &[4]float64{z[at[0]+1], z[at[1]+1], z[at[2]+1], z[at[3]+1]})
	}
	for _, c := range at {
		axpy(dst, z[c+1], f.w[int(c)*m:][:m])
	}
	scale := 1 / float64(f.wide*math.Sqrt(float64(d)))
	cosines(dst, f.phase[:m], scale)
}

// addFourGo adds four vectors w, times z, to dst, from column i on.
func addFourGo(i int, dst []float64, w *[4][]float64, z *[4]float64) {
	for j := i; j < len(dst); j++ {
		dst[j] += (float64(z[0]*w[0][j]) + float64(z[1]*w[1][j])) + (float64(z[2]*w[2][j]) + float64(z[3]*w[3][j]))
	}
}

// cosinesGo makes each t of dst √2·cos(2π(t·scale + phase)).
func cosinesGo(dst, phase []float64, scale float64) {
	for j, t := range dst {
		dst[j] = math.Sqrt2 * CosTurns(float64(t*scale)+phase[j])
	}
}

// MaxFourier is the most random features of an oracle.
const MaxFourier = 4096

// random returns what draws the random features of o.
func (o *LinearOptions) random() (fourier, error) {
	if o.Bandwidth == 0 {
		o.Bandwidth = 1
	}
	switch {
	case o.Fourier < 0 || o.Fourier > MaxFourier:
		return fourier{}, fmt.Errorf("fourier is %d: it must be in [0, %d]", o.Fourier, MaxFourier)
	case o.Columns < 0 || o.Columns > 1<<16+1:
		return fourier{}, fmt.Errorf("columns is %d: it must be in [0, 65537]", o.Columns)
	case !(o.Bandwidth >= 1e-3 && o.Bandwidth <= 1e3):
		return fourier{}, fmt.Errorf("bandwidth is %v: it must be in [1e-3, 1e3]", o.Bandwidth)
	}
	f := newFourier(o.Fourier, o.Seed)
	f.wide, f.expected = o.Bandwidth, o.Columns
	return f, nil
}

// randomised reports whether regressions take random features.
func (o *Linear) randomised() bool { return len(o.fourier.phase) > 0 }

// point returns what regressions take: z, or phi, which [Linear.project] made of it.
func (o *Linear) point() []float64 {
	if o.randomised() {
		return o.phi
	}
	return o.z
}

// project sets phi from z: the constant, the random features, the other columns. New
// columns come behind the old, so that a regression only grows at its end.
func (o *Linear) project() {
	m, d := len(o.fourier.phase), len(o.z)
	if d == 1 {
		o.phi = append(o.phi[:0], 1)
		return
	}
	o.phi = resize(o.phi, m+d)
	o.phi[0] = 1
	o.fourier.fill(o.phi[1:m+1], o.z, max(d, o.fourier.expected))
	copy(o.phi[m+1:], o.z[1:])
}

// fits reports whether a regression can have d columns.
func (o *Linear) fits(d int) bool {
	if d > 1 {
		d -= len(o.fourier.phase)
		return d > 1 && d <= len(o.cols)
	}
	return d == 1
}

// fresh returns f without frequencies: those of the columns of another dictionary differ.
func (f *fourier) fresh() fourier {
	return fourier{seed: f.seed, wide: f.wide, expected: f.expected, phase: f.phase}
}
