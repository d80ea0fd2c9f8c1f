package oracle

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// fourier draws random Fourier features of z (Rahimi and Recht 2007),
//
//	√2·cos(w_j·z + b_j), j = 1..m,  w_j ~ N(0, I/(d·wide²)), b_j ~ U[0, 2π)
//
// for a z whose columns are added one by one. What belongs to a column is a function of
// the seed, the column's feature and j, so that it does not matter when or in which
// order columns came, and nothing of it is kept in snapshots. Column 0, the constant,
// has no weight: it would only turn b_j.
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
	b = append(b, s.scope, byte(c.kind))
	b = appendString(b, s.name)
	b = appendString(b, c.text)
	h := sha256.Sum256(b)
	return binary.BigEndian.Uint64(h[:])
}

// uniform returns the i-th number in (0,1) of a key: SplitMix64 (Steele, Lea, Flood
// 2014) at a place.
func uniform(key, i uint64) float64 {
	z := key + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
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
		w := [4][]float64{f.w[int(at[0])*m:][:m], f.w[int(at[1])*m:][:m], f.w[int(at[2])*m:][:m], f.w[int(at[3])*m:][:m]}
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
