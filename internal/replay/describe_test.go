package replay

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hindsight/internal/dataset"
)

// TestPropensityRanks compares with sorted propensities.
func TestPropensityRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.SampledFrom([]float64{.5, .25, 1e-9, 1, math.Nextafter(.5, 1), 1. / 3}), 1,
			60).Draw(t, "p")
		v := &Rounds{Log: &dataset.Table{Props: p}, n: len(p)}
		sorted := slices.Sorted(slices.Values(p))
		for _, percent := range []int{1, 50} {
			want := sorted[max(0, int(math.Ceil(float64(len(p)*percent)/100))-1)]
			if got := v.propensityRank(percent); got != want {
				t.Fatalf("%d %%: %v, want %v of %v", percent, got, want, sorted)
			}
		}
	})
}
