package learner_test

import (
	"testing"

	"pgregory.net/rapid"
)

// TestUnorderedSquares holds what the a-priori bounds rest on (package comment): with
// d_s = #{n : τ(n) < s < n} and σ_n = n−1−τ(n), Σd² ≤ Σσ² for any τ(n) < n, and Σd² = Σσ² where
// τ never falls.
func TestUnorderedSquares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "rounds")
		rises := rapid.Bool().Draw(t, "rises")
		tau, d := make([]int, n+1), make([]int, n+1)
		squares := 0
		for i := 1; i <= n; i++ {
			low := 0
			if rises && i > 1 {
				low = tau[i-1]
			}
			tau[i] = rapid.IntRange(low, i-1).Draw(t, "τ")
			squares += (i - 1 - tau[i]) * (i - 1 - tau[i])
			for s := tau[i] + 1; s < i; s++ {
				d[s]++
			}
		}
		sum := 0
		for _, v := range d {
			sum += v * v
		}
		if sum > squares || rises && sum != squares {
			t.Fatalf("Σd² = %d, Σσ² = %d, τ = %v", sum, squares, tau[1:])
		}
	})
}
