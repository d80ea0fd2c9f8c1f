package report

import (
	"math"
	"slices"

	"hindsight/internal/chart"
	"hindsight/internal/ope"
)

// FromChart makes a chart for a page of one that is else a picture: error bars become
// bands, or whiskers where x are names.
func FromChart(id, says string, from *chart.Chart) *Chart {
	c := &Chart{ID: id, Title: from.Title, Says: says, Kind: Lines, Names: from.Names, X: Axis{Label: from.X},
		Y: Axis{Label: from.Y}}
	if from.Names != nil {
		c.Kind = Points
		for i := range from.Names {
			c.At = append(c.At, float64(i))
		}
	} else {
		c.At = places(from)
	}
	if from.LogX {
		c.X.Scale = Log
	}
	if from.LogY {
		c.Y.Scale = Log
	}
	view := View{}
	for i := range from.Series {
		view.Series = append(view.Series, c.series(&from.Series[i], from.LogY))
	}
	c.Views = []View{view}
	return c
}

// places are the x of all series, growing.
func places(from *chart.Chart) (at []float64) {
	for _, s := range from.Series {
		for _, x := range s.X {
			if !math.IsNaN(x) && !math.IsInf(x, 0) && (!from.LogX || x > 0) {
				at = append(at, x)
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// series lays a series over the places of the chart; on a logarithmic axis what is not
// positive is not there, and a band ends above 0.
func (c *Chart) series(s *chart.Series, log bool) Series {
	none := func() []ope.Figure {
		v := make([]ope.Figure, len(c.At))
		for i := range v {
			v[i] = ope.Figure(nan)
		}
		return v
	}
	out := Series{Name: s.Name, Y: none(), Aside: s.Dashed && c.Kind == Lines}
	if len(s.Err) > 0 {
		out.Low, out.High = none(), none()
	}
	for k, x := range s.X {
		i, ok := slices.BinarySearch(c.At, x)
		if y := s.Y[k]; !ok || log && !(y > 0) {
			continue
		}
		out.Y[i] = ope.Figure(s.Y[k])
		if len(s.Err) > 0 && !math.IsNaN(s.Err[k]) {
			out.Low[i], out.High[i] = ope.Figure(s.Y[k]-s.Err[k]), ope.Figure(s.Y[k]+s.Err[k])
			if log {
				out.Low[i] = max(out.Low[i], out.Y[i]/10)
			}
		}
	}
	return out
}
