package replay

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
