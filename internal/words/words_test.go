package words

import (
	"math"
	"testing"
)

func TestFigures(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.31415926: "0.3142", 0.0054321: "0.005432", 12.3456: "12.35", 999.96: "1000.0", 1000.4: "1,000",
		1234567.8: "1,234,568", -0.5: "-0.5000", 1e-7: "1e-07", 2e15: "2e+15", -54321: "-54,321",
	} {
		if got := Digits(x); got != want {
			t.Errorf("Digits(%v) = %q, want %q", x, got, want)
		}
	}
	if got := Digits(math.NaN()); got != "–" {
		t.Errorf("NaN: %q", got)
	}
}

// An error has two digits, and its value as many decimals, however small or large they are.
func TestWithError(t *testing.T) {
	for _, c := range []struct {
		value, se float64
		want      string
	}{
		{.31415, .0123, "0.314±0.012"}, {1234, 56, "1234±56"}, {-2, 0, "-2.00"}, {3, math.NaN(), "3.00"},
		{5.434e-10, 4.53e-11, "5.43e-10±4.5e-11"}, {.5, 1e-11, "0.500±1e-11"},
		{1e-7, 1.24e-8, "0.000000100±0.000000012"},
		{1.299e17, 9.42e15, "1.3e+17±9.4e+15"}, {0, math.Inf(1), "0±+Inf"}, {-1e300, 2, "-1e+300±2.0"},
	} {
		if got := WithError(c.value, c.se); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.value, c.se, got, c.want)
		}
	}
}
