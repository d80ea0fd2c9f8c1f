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
