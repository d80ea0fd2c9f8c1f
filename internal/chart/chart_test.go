package chart

import (
	"bytes"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hindsight/internal/style"
)

func line() *Chart {
	return &Chart{Title: "regret", X: "T", Y: "regret", LogX: true, LogY: true, Series: []Series{
		{Name: "measured", X: []float64{100, 1000, 10000}, Y: []float64{10, 31, 99}, Err: []float64{1, 40, 5}},
		{Name: "√T", X: []float64{100, 10000}, Y: []float64{10, 100}, Dashed: true},
	}}
}

func TestPicturesAreWritten(t *testing.T) {
	dir := t.TempDir()
	for _, ext := range formats {
		file := filepath.Join(dir, "a"+ext)
		if err := line().Save(file); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch ext {
		case ".png":
			img, err := png.Decode(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			want := style.Palette()[0]
			found := 0
			for y := range img.Bounds().Dy() {
				for x := range img.Bounds().Dx() {
					if r, g, b, _ := img.At(x, y).RGBA(); uint8(r>>8) == want.R && uint8(g>>8) == want.G &&
						uint8(b>>8) == want.B {
						found++
					}
				}
			}
			if found < 100 {
				t.Errorf("the picture has %d pixels of the first line", found)
			}
		case ".svg":
			for _, want := range []string{"measured", "√T", "regret"} {
				if !strings.Contains(string(b), want) {
					t.Errorf("the SVG does not say %q", want)
				}
			}
		}
	}
}

func TestPointsThatCannotBeDrawnAreLeftOut(t *testing.T) {
	c := line()
	c.Series[0].Y = []float64{math.NaN(), 0, math.Inf(1)}
	if got := len(c.points(&c.Series[0]).XYs); got != 0 {
		t.Errorf("%d points of none", got)
	}
	c.Series = c.Series[:1]
	if err := c.Save(filepath.Join(t.TempDir(), "a.png")); err == nil {
		t.Error("an empty picture was written")
	}
}

func TestWrongCharts(t *testing.T) {
	c := line()
	if err := c.Save(filepath.Join(t.TempDir(), "a.gif")); err == nil || !strings.Contains(err.Error(), ".gif") {
		t.Errorf("a.gif: %v", err)
	}
	c.Series[0].Err = c.Series[0].Err[:1]
	if err := c.Save(filepath.Join(t.TempDir(), "a.png")); err == nil || !strings.Contains(err.Error(), "measured") {
		t.Errorf("short errors: %v", err)
	}
}

// Names stand under the axis, and what belongs to one name lies beside each other.
func TestNames(t *testing.T) {
	c := &Chart{Names: []string{"none", "late"}, Series: []Series{
		{Name: "fifo", X: []float64{0, 1}, Y: []float64{1, 2}}, {Name: "bound", X: []float64{0, 1}, Y: []float64{3, 4},
			Dashed: true}}}
	file := filepath.Join(t.TempDir(), "a.svg")
	if err := c.Save(file); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"none", "late", "fifo", "bound"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the SVG does not say %q", want)
		}
	}
	if l, r := c.apart(0).X[1], c.apart(1).X[1]; !(l < 1 && r > 1) || c.Series[0].X[1] != 1 {
		t.Errorf("%v and %v, of %v", l, r, c.Series[0].X)
	}
}
