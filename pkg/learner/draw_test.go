package learner

import (
	"strings"
	"testing"
)

// TestGoldenUniform: 53 bits that were computed with Python's hashlib from the
// documented format.
func TestGoldenUniform(t *testing.T) {
	for _, c := range []struct {
		seed, name string
		partition  int
		n          int64
		id         string
		want       uint64
	}{
		{"", "", 0, 0, "", 8896913235099345},
		{"secret", "shop", 0, 1, "8f3a", 8576911390090546},
		{"secret", "shop", 3, 1099511627776, strings.Repeat("x", 256), 5720984018680455},
		{strings.Repeat("s", 200), "m", 1, 7, "é", 4619109466290886},
	} {
		if got := Uniform([]byte(c.seed), c.name, c.partition, c.n, c.id); got != c.want {
			t.Errorf("Uniform(%q, %q, %d, %d, %q) = %d, want %d", c.seed, c.name, c.partition, c.n, c.id, got, c.want)
		}
	}
}

// TestUniformFields: moving a byte from one field to the next gives another draw.
func TestUniformFields(t *testing.T) {
	seen := map[uint64]bool{}
	for _, u := range []uint64{
		Uniform([]byte("ab"), "c", 0, 1, "d"), Uniform([]byte("a"), "bc", 0, 1, "d"), Uniform([]byte("abc"), "",
			0, 1, "d"),
		Uniform([]byte("ab"), "c", 1, 1, "d"), Uniform([]byte("ab"), "c", 0, 2, "d"), Uniform([]byte("ab"), "c",
			1, 0, "d"),
		Uniform([]byte("ab"), "c", 0, 1, ""), Uniform([]byte("ab"), "c", 0, 1, "dd"),
	} {
		if u>>53 != 0 || seen[u] {
			t.Errorf("draw %d is too large or repeats", u)
		}
		seen[u] = true
	}
}

func TestUniformAllocates(t *testing.T) {
	seed, id := make([]byte, 32), strings.Repeat("x", 256)
	if n := testing.AllocsPerRun(100, func() { Uniform(seed, "a-model-name", 3, 4, id) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
