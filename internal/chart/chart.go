// Package chart draws the pictures of reports: lines with bands of error, on linear
// or logarithmic axes, as PNG or SVG by the name of the file.
package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"hindsight/internal/style"
	"hindsight/internal/whole"
)

// Series is one line: X and Y have the same length, Err is empty or as long and holds the half width of the error bar
// at each point. Points that are not finite, and on a logarithmic axis those that are not positive, are left out.
type Series struct {
	Name   string
	X, Y   []float64
	Err    []float64
	Dashed bool // for what is predicted, not measured
}

// Chart is a picture.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool
	// Names are what x = 0, 1, 2, … stand for, when they are not numbers: points are not
	// joined, and a little apart. nil: x is a number.
	Names  []string
	Series []Series
	Mark   *float64 // x of a vertical line, nil: none
}

// formats are the file name extensions that Save knows.
var formats = []string{".png", ".svg"}

// Save draws the chart into a file.
func (c *Chart) Save(file string) error {
	if ext := filepath.Ext(file); !slices.Contains(formats, ext) {
		return fmt.Errorf("%s: pictures are written as %v, not %q", file, formats, ext)
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Title.Padding = vg.Points(6)
	p.Legend.Top, p.Legend.Left = true, true
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 6}
	}
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 6}
	}
	p.Add(plotter.NewGrid())
	drawn, palette := 0, style.Palette()
	for i := range c.Series {
		n, err := c.add(p, c.apart(i), palette[i%len(palette)])
		if err != nil {
			return fmt.Errorf("%s: series %q: %w", file, c.Series[i].Name, err)
		}
		drawn += n
	}
	if drawn == 0 {
		return fmt.Errorf("%s: nothing to draw: no series has a point", file)
	}
	c.room(p)
	c.mark(p)
	c.name(p)
	picture, err := p.WriterTo(20*vg.Centimeter, 12*vg.Centimeter, strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return err
	}
	return whole.Write(file, func(w io.Writer) error {
		_, err := picture.WriteTo(w)
		return err
	})
}

// add draws a series and returns how many points it has.
func (c *Chart) add(p *plot.Plot, s *Series, col color.RGBA) (int, error) {
	if len(s.Y) != len(s.X) || (len(s.Err) != 0 && len(s.Err) != len(s.X)) {
		return 0, fmt.Errorf("%d x, %d y and %d errors", len(s.X), len(s.Y), len(s.Err))
	}
	pts := c.points(s)
	if len(pts.XYs) == 0 {
		return 0, nil
	}
	line, dots, err := plotter.NewLinePoints(pts.XYs)
	if err != nil {
		return 0, err
	}
	line.Color, line.Width = col, vg.Points(1.5)
	dots.GlyphStyle = draw.GlyphStyle{Color: col, Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
	if c.Names != nil {
		line.Color = color.Transparent
		if s.Dashed {
			dots.GlyphStyle.Shape, dots.GlyphStyle.Radius = draw.RingGlyph{}, vg.Points(3)
		}
	} else if s.Dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		p.Add(line)
		p.Legend.Add(s.Name, line)
		return len(pts.XYs), nil
	}
	if len(s.Err) > 0 {
		bars, err := plotter.NewYErrorBars(pts)
		if err != nil {
			return 0, err
		}
		bars.Color = col
		p.Add(bars)
	}
	p.Add(line, dots)
	p.Legend.Add(s.Name, line, dots)
	return len(pts.XYs), nil
}

// withErrors are points with error bars.
type withErrors struct {
	plotter.XYs
	plotter.YErrors
}

// points returns the points of a series that can be drawn.
func (c *Chart) points(s *Series) (out withErrors) {
	for i, x := range s.X {
		y, half := s.Y[i], 0.0
		if len(s.Err) > 0 && s.Err[i] > 0 && !math.IsInf(s.Err[i], 0) {
			half = s.Err[i]
		}
		if !drawable(x, c.LogX) || !drawable(y, c.LogY) {
			continue
		}
		low := half
		if c.LogY {
			low = min(low, y*.99) // a bar down to 0 has no end on this axis
		}
		out.XYs = append(out.XYs, plotter.XY{X: x, Y: y})
		out.YErrors = append(out.YErrors, struct{ Low, High float64 }{low, half})
	}
	return out
}

func drawable(v float64, log bool) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!log || v > 0)
}

// room leaves space for the legend above the lines.
func (c *Chart) room(p *plot.Plot) {
	if c.LogY {
		p.Y.Max *= math.Pow(p.Y.Max/p.Y.Min, .25) * 1.1
		return
	}
	p.Y.Min = min(p.Y.Min, 0)
	p.Y.Max += .3 * (p.Y.Max - p.Y.Min)
}

// apart returns a series, beside the others where x is a name.
func (c *Chart) apart(i int) *Series {
	s := c.Series[i]
	if c.Names == nil {
		return &s
	}
	shift := (float64(i) - float64(len(c.Series)-1)/2) * .6 / float64(len(c.Series))
	s.X = slices.Clone(s.X)
	for k := range s.X {
		s.X[k] += shift
	}
	return &s
}

// name writes names under the axis, slanted where they would meet.
func (c *Chart) name(p *plot.Plot) {
	if c.Names == nil {
		return
	}
	p.NominalX(c.Names...)
	p.X.Min, p.X.Max = -.5, float64(len(c.Names))-.5
	if len(c.Names) > 6 {
		p.X.Tick.Label.Rotation = math.Pi / 6
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
}

// mark draws the vertical line.
func (c *Chart) mark(p *plot.Plot) {
	if c.Mark == nil {
		return
	}
	line, err := plotter.NewLine(plotter.XYs{{X: *c.Mark, Y: p.Y.Min}, {X: *c.Mark, Y: p.Y.Max}})
	if err != nil {
		return // two finite points always make a line
	}
	line.Color, line.Dashes = color.Gray{0x80}, []vg.Length{vg.Points(2), vg.Points(2)}
	p.Add(line)
}
