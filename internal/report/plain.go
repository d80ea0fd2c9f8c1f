package report

import (
	"math"
	"slices"

	"hindsight/internal/chart"
	"hindsight/internal/ope"
)

// fromChart makes a chart for a page of one that is else a picture: error bars become
// bands, or whiskers where x are names.
func fromChart(id, says string, from *chart.Chart) *pageChart {
	c := &pageChart{ID: id, Title: from.Title, Says: says, Kind: lines, Names: from.Names, X: axis{Label: from.X},
		Y: axis{Label: from.Y}}
	if from.Names != nil {
		c.Kind = points
		for i := range from.Names {
			c.At = append(c.At, float64(i))
		}
	} else {
		c.At = places(from)
	}
	if from.LogX {
		c.X.Scale = logScale
	}
	if from.LogY {
		c.Y.Scale = logScale
	}
	one := view{}
	for i := range from.Series {
		one.Series = append(one.Series, c.series(&from.Series[i], from.LogY))
	}
	c.Views = []view{one}
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
func (c *pageChart) series(s *chart.Series, log bool) series {
	none := func() []ope.Figure {
		v := make([]ope.Figure, len(c.At))
		for i := range v {
			v[i] = ope.Figure(nan)
		}
		return v
	}
	out := series{Name: s.Name, Y: none(), Aside: s.Dashed && c.Kind == lines}
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
