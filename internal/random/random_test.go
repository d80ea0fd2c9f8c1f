package random

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestStreamGolden pins the random function: other bits are other data.
func TestStreamGolden(t *testing.T) {
	s := New(1, "test")
	for _, c := range []struct{ i, j, want uint64 }{
		{0, 0, 0x773727c448d8199c}, {1, 0, 0x66934ce9317eadde}, {0, 1, 0x802ce1f634e6ab7e},
	} {
		if got := s.Uint64(c.i, c.j); got != c.want {
			t.Errorf("(%d, %d) gives %#x, want %#x", c.i, c.j, got, c.want)
		}
	}
	if New(2, "test") == s || New(1, "tesu") == s {
		t.Error("another seed or name gives the same function")
	}
}

// TestUniform checks the law of the random function: chi-square over cells of
// (u(i,j), u(i,j+1)) and (u(i,j), u(i+1,j)), at a fixed seed.
func TestUniform(t *testing.T) {
	const side, n = 16, 200_000
	for name, next := range map[string][2]uint64{"rows": {1, 0}, "columns": {0, 1}} {
		s := New(7, name)
		var cells [side * side]float64
		for i := range uint64(n) {
			a, b := s.Uniform(2*i, 0), s.Uniform(2*i+next[0], next[1])
			cells[int(a*side)*side+int(b*side)]++
		}
		chi := 0.0
		for _, c := range cells {
			const want = float64(n) / (side * side)
			chi += (c - want) * (c - want) / want
		}
		// 255 degrees of freedom: 99.99 % lie in about [180, 345].
		if chi < 180 || chi > 345 {
			t.Errorf("%s: chi-square %v", name, chi)
		}
	}
}

func TestNormalMoments(t *testing.T) {
	s := New(3, "normal")
	const n = 400_000
	var m [5]float64
	for i := range uint64(n) {
		x := s.Normal(i, 9)
		for k, p := 1, x; k <= 4; k, p = k+1, p*x {
			m[k] += p / n
		}
	}
	for k, want := range []float64{1: 0, 2: 1, 3: 0, 4: 3} {
		// Standard deviations of x^k: 1, √2, √15, √96; 4 of their standard errors.
		if sd := []float64{1, 1, math.Sqrt(2), math.Sqrt(15), math.Sqrt(96)}[k]; k > 0 &&
			math.Abs(m[k]-want) > 4*sd/math.Sqrt(n) {
			t.Errorf("moment %d is %v, want %v", k, m[k], want)
		}
	}
}

// TestQuantile holds that the normal distribution function takes the quantile
// back to p, in both tails.
func TestQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := math.Exp2(rapid.Float64Range(-53, -1e-9).Draw(t, "log2 p"))
		x := quantile(p)
		if back := math.Erfc(-x/math.Sqrt2) / 2; math.Abs(back-p) > 1e-12*p {
			t.Fatalf("quantile(%v) = %v, whose probability is %v", p, x, back)
		}
		if p < 0.5 && quantile(1-p) > 0 && math.Abs(quantile(1-p)+quantile(1-(1-p))) > 1e-9 {
			t.Fatalf("quantile(%v) is not symmetric", p)
		}
	})
	if x := quantile(0.5); x != 0 {
		t.Errorf("the median is %v", x)
	}
}

func TestShuffle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		p := New(rapid.Uint64().Draw(t, "seed"), "x").Shuffle(n)
		slices.Sort(p)
		for i, v := range p {
			if int(v) != i {
				t.Fatalf("not a permutation: %v", p)
			}
		}
	})
	// Every one of the 24 orders of 4 comes about equally often.
	seen := map[[4]int32]int{}
	for seed := range uint64(24_000) {
		seen[[4]int32(New(seed, "x").Shuffle(4))]++
	}
	for p, n := range seen {
		if n < 850 || n > 1150 { // 1000 ± 5 sd
			t.Errorf("order %v came %d times of about 1000", p, n)
		}
	}
	if len(seen) != 24 {
		t.Errorf("%d orders of 24", len(seen))
	}
}
