package paper

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hindsight/internal/chart"
)

// sweep is regret over one quantity, the others fixed.
type sweep struct {
	axis  string
	lines []line // by learner, over the same values
}

// line is what one learner regrets.
type line struct {
	points []point
	bent   bool // regret is far below its bound and has another exponent, which is not checked
}

// point is a cell with the bound on its expected regret.
type point struct {
	*cell
	proved float64
}

// sweepPlan plays sweeps and checks all of their regrets against what is proved.
func sweepPlan(o Options, name string, sweeps []sweep) plan {
	var all []*cell
	for _, s := range sweeps {
		for _, l := range s.lines {
			for _, p := range l.points {
				all = append(all, p.cell)
			}
		}
	}
	return played(o, all, func(f *Finding, _ []*cell) {
		for _, s := range sweeps {
			f.sweep(name, &s)
		}
		f.Checked = "mean regret is below the bound that is proved and below half of that of uniform play, within " +
			"two standard errors, and grows no faster than the bound"
		var seen []string
		for _, fit := range f.Fits {
			seen = append(seen, fmt.Sprintf("%s: %.2f", strings.TrimPrefix(fit.What, "regret over "), fit.Slope))
		}
		f.Seen = "exponents of regret: " + strings.Join(seen, "; ") +
			". Those of the bound are ½, or what it has at such sizes."
	})
}

// sweep adds a sweep's table and picture, and its checks.
func (f *Finding) sweep(name string, s *sweep) {
	t := Table{Title: "regret over " + s.axis, Columns: []string{s.axis, "uniform play"}}
	pic := chart.Chart{Title: name + ": regret over " + s.axis, X: s.axis, Y: "regret", LogX: true, LogY: true}
	for i, p := range s.lines[0].points {
		row := []any{p.x, estimate(p.uniform())}
		for _, l := range s.lines {
			row = append(row, estimate(l.points[i].regret), l.points[i].proved)
		}
		t.row(row...)
	}
	var columns []int
	for _, l := range s.lines {
		label := l.points[0].label
		columns = append(columns, len(t.Columns), len(t.Columns)+1)
		t.Columns = append(t.Columns, label, "proved")
		for _, p := range l.points {
			what := fmt.Sprintf("%s = %.4g, %s", s.axis, p.x, label)
			f.check(within(p.regret, slices.Repeat([]float64{p.proved}, len(p.regret))) && p.proved < mean(p.uniform()),
				"%s: mean regret is below the bound that is proved, and that below the regret of uniform play", what)
			f.learns(what, p.cell)
		}
		if !l.bent {
			f.exponent(s.axis, l.points)
		}
	}
	file := strings.NewReplacer("|", "", "/", "", " ", "", "+", "").Replace(s.axis)
	f.draw(t, f.Claim+"-"+file, pic, columns...)
}

// finite is by how much an exponent that is seen at sizes like these may exceed that of
// the bound: constants and lower orders bend the line.
const finite = 0.1

// exponent fits regret over an axis for each seed and checks that its mean exponent is at
// most that of the bound over the same points.
func (f *Finding) exponent(axis string, points []point) {
	what := "regret over " + axis + ", " + points[0].label
	var x, bound, slopes []float64
	for _, p := range points {
		x, bound = append(x, p.x), append(bound, p.proved)
	}
	for k := range points[0].regret {
		var y []float64
		for _, p := range points {
			y = append(y, math.Max(p.regret[k], 0))
		}
		if fit, ok := fitSlope("", "", 0, x, y); ok {
			slopes = append(slopes, fit.Slope)
		}
	}
	of, ok := fitSlope("", "", 0, x, bound)
	if slopes == nil || !ok { // regret is nowhere positive
		return
	}
	e := estimate(slopes)
	f.Fits = append(f.Fits, slopeFit{What: what, Kind: "at most", Predicted: .5, Slope: e.Value, SE: e.SE,
		Bound: &of.Slope})
	f.check(e.Value <= of.Slope+finite+2*se(e), "the exponent of %s is at most that of its bound", what)
}
