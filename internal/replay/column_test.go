package replay

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestColumns: values are what was added, on the heap and in a file, after their memory was
// given back and after some were cut.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := &rowFiles{most: rapid.SampledFrom([]int{64, 1 << 12, 1 << 30}).Draw(t, "most")}
		c, x := column[int32]{of: files}, newTexts(files)
		var want []int32
		var said []string
		for _, n := range rapid.SliceOfN(rapid.IntRange(-50, 3000), 0, 15).Draw(t, "adds") {
			for i := range n {
				want = append(want, int32(i))
				c.add(int32(i))
				said = append(said, strconv.Itoa(i))
				x.add(said[len(said)-1])
			}
			if n < 0 {
				want = want[:max(0, len(want)+n)]
				c.cut(len(want))
				files.drop()
			}
		}
		if files.err != nil || !slices.Equal(c.s, want) {
			t.Fatalf("%d values, want %d (%v)", len(c.s), len(want), files.err)
		}
		for i, v := range said {
			if x.at(i) != v {
				t.Fatalf("text %d is %q", i, x.at(i))
			}
		}
		if runtime.GOOS == "linux" && files.most == 64 && len(want) > 100 && len(said) > 100 && len(files.files) != 3 {
			t.Fatalf("%d files", len(files.files))
		}
	})
}

// TestColumnsWithoutAFile: where no file can be made columns are on the heap.
func TestColumnsWithoutAFile(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent/folder")
	files := &rowFiles{most: 8}
	c := column[int64]{of: files}
	for i := range 1000 {
		c.add(int64(i))
	}
	if files.err != nil || len(files.files) != 0 || c.s[999] != 999 {
		t.Error(files.err, len(files.files))
	}
}

// TestRowsSortedInFiles compares merged runs with a stable sort.
func TestRowsSortedInFiles(t *testing.T) {
	n := 3*sortRun + 7
	stream := NewStream(1, "times")
	c := newEventColumns(&rowFiles{most: 1 << 16})
	type row struct{ at, row int64 }
	var want []row
	for i := range n {
		at := int64(stream.Uint64(uint64(i), 0) % 1000)
		c.decided.add(at)
		flags := uint8(0)
		if i%5 == 0 {
			flags = rowWithdrawn
		} else {
			want = append(want, row{at, int64(i)})
		}
		c.flags.add(flags)
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

// TestPropensityRanks compares with sorted propensities.
func TestPropensityRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.SampledFrom([]float64{.5, .25, 1e-9, 1, math.Nextafter(.5, 1), 1. / 3}), 1, 60).Draw(t, "p")
		v := &Rounds{Log: &BanditLog{props: p}, n: len(p)}
		sorted := slices.Sorted(slices.Values(p))
		for _, percent := range []int{1, 50} {
			want := sorted[max(0, int(math.Ceil(float64(len(p)*percent)/100))-1)]
			if got := v.propensityRank(percent); got != want {
				t.Fatalf("%d %%: %v, want %v of %v", percent, got, want, sorted)
			}
		}
	})
}
