package dataset

import (
	"slices"
	"testing"

	"hindsight/internal/random"
	"hindsight/internal/spill"
)

// TestRowsSortedInFiles compares merged runs with a stable sort.
func TestRowsSortedInFiles(t *testing.T) {
	n := 3*sortRun + 7
	stream := random.New(1, "times")
	c := newEventColumns(&spill.Files{Most: 1 << 16})
	type row struct{ at, row int64 }
	var want []row
	for i := range n {
		at := int64(stream.Uint64(uint64(i), 0) % 1000)
		c.decided.Add(at)
		flags := uint8(0)
		if i%5 == 0 {
			flags = rowWithdrawn
		} else {
			want = append(want, row{at, int64(i)})
		}
		c.flags.Add(flags)
	}
	slices.SortStableFunc(want, func(a, b row) int { return int(a.at - b.at) })
	got := c.byTime()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i, r := range want {
		if int64(got[i]) != r.row {
			t.Fatalf("row %d is %d, want %d", i, got[i], r.row)
		}
	}
}
