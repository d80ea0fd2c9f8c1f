package oracle

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// same reports whether two numbers have the same bits, or both are none.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// margin surrounds what a kernel may write.
const margin = 4

// kernelCase is one z of d columns, with a packed P and all else that kernels take, cut
// out of longer slices.
type kernelCase struct {
	z, k   []float64
	c      float64
	matrix [4][]float64
	buffer []float64 // room of packedLen(d) + 2 margins
}

// newKernelCase takes numbers from next; skew, below 4, is where z and the matrix begin.
func newKernelCase(d, skew int, next func() float64) kernelCase {
	vector := func(n int) []float64 {
		x := make([]float64, n+skew)
		for i := range x {
			x[i] = next()
		}
		return x[skew:]
	}
	t := kernelCase{z: vector(d), k: vector(d), c: next()}
	for i := range t.matrix {
		t.matrix[i] = vector(packedLen(d))
	}
	t.buffer = make([]float64, packedLen(d)+2*margin)
	return t
}

// inside fills a copy of x into the room, with marks around it.
func (c *kernelCase) inside(x []float64) []float64 {
	room := c.buffer[:len(x)+2*margin]
	for i := range room {
		room[i] = 12345
	}
	copy(room[margin:], x)
	return room[margin:][:len(x)]
}

// check compares the kernels with their Go twins.
func (c *kernelCase) check(t *testing.T) {
	t.Helper()
	p, d := c.matrix[0], len(c.z)
	compare := func(name string, got, want []float64) {
		t.Helper()
		for i := range want {
			if !same(got[i], want[i]) {
				t.Fatalf("d = %d: %s[%d] = %v, not %v", d, name, i, got[i], want[i])
			}
		}
		room := c.buffer[:len(want)+2*margin]
		for i := range margin {
			if room[i] != 12345 || room[len(room)-1-i] != 12345 {
				t.Fatalf("d = %d: %s wrote around its room: %v", d, name, room)
			}
		}
	}
	var s, want [4]float64
	for _, y := range [][]float64{c.matrix[3], c.z} {
		dot4(&s, &c.matrix, y)
		dot4Go(&want, &c.matrix, y)
		for i := range s {
			if !same(s[i], want[i]) {
				t.Fatalf("d = %d: dot4[%d] = %v, not %v", d, i, s[i], want[i])
			}
		}
	}
	outer := make([]float64, len(p))
	packedOuterGo(outer, c.z)
	got := c.inside(p)
	packedOuter(got, c.z)
	compare("packedOuter", got, outer)

	product := make([]float64, d)
	packedMulGo(product, p, c.z)
	got = c.inside(c.k)
	packedMul(got, p, c.z)
	compare("packedMul", got, product)

	product = append([]float64(nil), c.matrix[1][:d]...)
	less := append([]float64(nil), p...)
	packedStepGo(product, less, c.c, c.k, c.z)
	got = c.inside(c.matrix[1][:d])
	packedStep(got, append([]float64(nil), p...), c.c, c.k, c.z)
	compare("packedStep", got, product)
	got = c.inside(p)
	packedStep(append([]float64(nil), c.matrix[1][:d]...), got, c.c, c.k, c.z)
	compare("the P of packedStep", got, less)

	sums, z := append([]float64(nil), p...), [4]float64{c.c, 2, 3, 4}
	addFourGo(0, sums, &c.matrix, &z)
	got = c.inside(p)
	addFour(got, &c.matrix, &z)
	compare("addFour", got, sums)
	cosinesGo(sums, c.matrix[2], c.c)
	cosines(got, c.matrix[2], c.c)
	compare("cosines", got, sums)

	less = append([]float64(nil), p...)
	packedRankOneGo(less, c.c, c.k)
	got = c.inside(p)
	packedRankOne(got, c.c, c.k)
	compare("packedRankOne", got, less)
}

// Kernels give the bits of their Go twins, whatever the number of columns, the sizes of the
// numbers and where the vectors begin, and write nothing beside.
func TestKernelsHaveTheBitsOfTheirTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	strange := []float64{0, math.Copysign(0, -1), 0x1p-1070, 1e300, math.Inf(-1), math.NaN()}
	for d := range 75 {
		for turn := range 8 {
			c := newKernelCase(d, turn%4, func() float64 {
				if turn > 3 && rng.IntN(100) == 0 {
					return strange[rng.IntN(len(strange))]
				}
				return math.Ldexp(rng.NormFloat64(), rng.IntN(80)-40)
			})
			c.check(t)
		}
	}
}

func FuzzKernelsHaveTheBitsOfTheirTwins(f *testing.F) {
	for d := range 20 {
		b := make([]byte, 8*packedLen(d))
		for i := range b {
			b[i] = byte(i * i)
		}
		f.Add(d, d%4, b)
	}
	f.Fuzz(func(t *testing.T, d, skew int, b []byte) {
		if d < 0 || d > 100 {
			t.Skip()
		}
		at := 0
		c := newKernelCase(d, skew&3, func() float64 {
			var v [8]byte
			if len(b) > 0 {
				at = (at + 7) % len(b)
				copy(v[:], b[at:])
			}
			return math.Float64frombits(binary.LittleEndian.Uint64(v[:]))
		})
		c.check(t)
	})
}

// No assembly fuses a product with a sum.
func TestAssemblyFusesNothing(t *testing.T) {
	files, err := filepath.Glob("*.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"FMADD", "FMSUB", "FNMADD", "FNMSUB"} {
			if bytes.Contains(bytes.ToUpper(b), []byte(word)) {
				t.Errorf("%s has a %s instruction: it does not round the product", name, word)
			}
		}
	}
}

// TestEightSparse compares the kernels that skip what is 0 with those that do not, to the bit.
func TestEightSparse(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for d := range 40 {
		p, h := make([]float64, packedLen(d)), make([][8]float64, d)
		set := make([]uint64, (d+63)/64)
		for i := range p {
			p[i] = rng.Float64() - 0.5
		}
		for i := range h {
			if rng.IntN(3) == 0 {
				set[i>>6] |= 1 << (i & 63)
				for q := range h[i] {
					h[i][q] = float64(rng.IntN(3)-1) * rng.Float64() // some are 0, or −0
				}
			}
		}
		sum := [8]float64{1, 2, 3, 4, 5, 6, 7, 8} // what was there counts for nothing
		form, sumGo, formGo := sum, sum, sum
		var some hashedColumns
		some.list(set)
		dotEight(&sum, p[:d], h, &some)
		formEight(&form, p, h, &some)
		dotEightGo(&sumGo, p[:d], h, some.at)
		formEightGo(&formGo, p, h, some.at)
		for q := range 8 {
			z := make([]float64, d)
			for i := range h {
				z[i] = h[i][q]
			}
			if want := dot(p[:d], z); !same(sum[q], want) || !same(sumGo[q], want) {
				t.Errorf("d=%d: sum %v, in Go %v, want %v", d, sum[q], sumGo[q], want)
			}
			if want := packedForm(p, z); !same(form[q], want) || !same(formGo[q], want) {
				t.Errorf("d=%d: form %v, in Go %v, want %v", d, form[q], formGo[q], want)
			}
		}
	}
}
