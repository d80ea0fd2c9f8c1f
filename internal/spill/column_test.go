package spill

import (
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
		files := &Files{Most: rapid.SampledFrom([]int{64, 1 << 12, 1 << 30}).Draw(t, "most")}
		c, x := Column[int32]{In: files}, NewTexts(files)
		var want []int32
		var said []string
		for _, n := range rapid.SliceOfN(rapid.IntRange(-50, 3000), 0, 15).Draw(t, "adds") {
			for i := range n {
				want = append(want, int32(i))
				c.Add(int32(i))
				said = append(said, strconv.Itoa(i))
				x.Add(said[len(said)-1])
			}
			if n < 0 {
				want = want[:max(0, len(want)+n)]
				c.Cut(len(want))
				files.Drop()
			}
		}
		if files.Err != nil || !slices.Equal(c.All, want) {
			t.Fatalf("%d values, want %d (%v)", len(c.All), len(want), files.Err)
		}
		for i, v := range said {
			if x.At(i) != v {
				t.Fatalf("text %d is %q", i, x.At(i))
			}
		}
		if runtime.GOOS == "linux" && files.Most == 64 && len(want) > 100 && len(said) > 100 && len(files.files) != 3 {
			t.Fatalf("%d files", len(files.files))
		}
	})
}

// TestColumnsWithoutAFile: where no file can be made columns are on the heap.
func TestColumnsWithoutAFile(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent/folder")
	files := &Files{Most: 8}
	c := Column[int64]{In: files}
	for i := range 1000 {
		c.Add(int64(i))
	}
	if files.Err != nil || len(files.files) != 0 || c.All[999] != 999 {
		t.Error(files.Err, len(files.files))
	}
}
