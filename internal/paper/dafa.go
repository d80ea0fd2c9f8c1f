package paper

import (
	"fmt"
	"strings"

	"hindsight/internal/chart"
	"hindsight/internal/replay"
)

// sigmoid returns the environment of logistic functions with K actions and |F|
// functions.
func sigmoid(rounds, actions, functions int) func(uint64) replay.Environment {
	return func(seed uint64) replay.Environment {
		return replay.NewSigmoid(seed, rounds, replay.SigmoidOptions{Actions: actions, Functions: functions})
	}
}

// sweep is regret over one quantity, the others fixed.
type sweep struct {
	axis      string
	predicted float64 // exponent of the upper bound
	cells     map[string][]*cell
}

// dafaClaim tries the regret bound over T, K, log|F| and D.
func dafaClaim() Claim {
	return Claim{
		Name:   "dafa",
		Source: "thm:DAFA-REGRET with thm:Vovk-regret (DA-FA with the Hedge-Vovk oracle)",
		Says:   "E regret ≤ O(√(KT log|F|) + √(d_max D log|F|)) under delayed feedback in FIFO order.",
		plan: func(o Options) plan {
			sweeps := dafaSweeps(o)
			var all []*cell
			for i := range sweeps {
				for _, p := range presets {
					all = append(all, sweeps[i].cells[p.name]...)
				}
			}
			return plan{jobs(o, all), func(f *Finding) {
				gather(all)
				concludeDAFA(f, sweeps)
			}}
		},
	}
}

// dafaSweeps lays out the axes.
func dafaSweeps(o Options) []sweep {
	const actions, functions, delay = 5, 100, 50
	rounds := size(o, 8000, 2000)
	point := func(p preset, x float64, t, k, n, d int) *cell {
		return &cell{label: p.name, x: x, rounds: t, env: sigmoid(t, k, n), delays: fmt.Sprintf("constant:%d", d), tune: p.tune(t)}
	}
	axes := []struct {
		name      string
		predicted float64
		values    []int
		at        func(p preset, v int) *cell
	}{
		{"T", .5, size(o, []int{1000, 2000, 4000, 8000, 16000, 32000, 64000}, []int{500, 1000, 2000, 4000}),
			func(p preset, v int) *cell { return point(p, float64(v), v, actions, functions, delay) }},
		{"K", .5, size(o, []int{2, 4, 8, 16, 32}, []int{2, 4, 8}),
			func(p preset, v int) *cell { return point(p, float64(v), rounds, v, functions, delay) }},
		{"log|F|", .5, size(o, []int{2, 8, 32, 128, 512, 2048}, []int{4, 32, 256}),
			func(p preset, v int) *cell { return point(p, logOf(v), rounds, actions, v, delay) }},
		{"D/T", 1, size(o, []int{0, 10, 32, 100, 320, 1000}, []int{0, 20, 100, 400}),
			func(p preset, v int) *cell { return point(p, float64(v), rounds, actions, functions, v) }},
	}
	var out []sweep
	for _, a := range axes {
		s := sweep{axis: a.name, predicted: a.predicted, cells: map[string][]*cell{}}
		for _, p := range presets {
			for _, v := range a.values {
				s.cells[p.name] = append(s.cells[p.name], a.at(p, v))
			}
		}
		out = append(out, s)
	}
	return out
}

func concludeDAFA(f *Finding, sweeps []sweep) {
	var seen []string
	for _, s := range sweeps {
		t := Table{Title: "regret over " + s.axis, Columns: []string{s.axis}}
		pic := chart.Chart{Title: "DA-FA: regret over " + s.axis, X: s.axis, Y: "regret", LogX: true, LogY: true}
		for _, p := range presets {
			t.Columns = append(t.Columns, p.name, "ratio", "plausible set", "measured drift", "a priori")
			cells := s.cells[p.name]
			line, bound := lines(p.name, cells)
			pic.Series = append(pic.Series, line, bound)
			if fit, ok := fitSlope("regret over "+s.axis+", "+p.name, "at most", s.predicted, line.X, rise(s, regrets(cells))); ok {
				if b, ok := fitSlope("", "", 0, bound.X, rise(s, bound.Y)); ok {
					fit.Bound = &b.Slope
				}
				f.Fits = append(f.Fits, fit)
				seen = append(seen, fmt.Sprintf("%s^%.2f (%s)", s.axis, fit.Slope, p.name))
			}
			below := true
			for _, c := range cells {
				below = below && within(c.regret, c.bound)
			}
			f.check(below, "mean regret is below the certificate by measured drift at every %s (%s)", s.axis, p.name)
		}
		for i, c := range s.cells[presets[0].name] {
			row := []any{c.x}
			for _, p := range presets {
				c := s.cells[p.name][i]
				r, b := estimate(c.regret), mean(c.bound)
				row = append(row, r, b/r.Value, mean(c.set), b, mean(c.prior))
			}
			t.row(row...)
		}
		f.Tables = append(f.Tables, t)
		f.Charts = append(f.Charts, Picture{"dafa-" + fileName(s.axis), pic})
	}
	f.Checked = "mean regret is below the certificate by measured drift, within two standard errors of the paired difference"
	f.Seen = "regret grew like " + strings.Join(seen, ", ") + ". The exponents of the bound are ½, ½, ½ and, in D/T at fixed T and constant delay, 1 (of what delay adds). A bound on regret does not bound its exponent at sizes where regret is far below it, and it has an exponent of its own there: √(K−1) grows faster than √K. With the paper's constants regret begins near that of uniform play, which is linear in T, and bends from it slowly."
}

// rise returns values; over delays only what they add to the value without delay.
func rise(s sweep, values []float64) (y []float64) {
	base := 0.0
	if s.axis == "D/T" {
		base = values[0]
	}
	for _, v := range values {
		y = append(y, v-base)
	}
	return y
}

// regrets returns mean regrets.
func regrets(cells []*cell) (y []float64) {
	for _, c := range cells {
		y = append(y, mean(c.regret))
	}
	return y
}

// lines returns regret and bound over x.
func lines(name string, cells []*cell) (regret, bound chart.Series) {
	regret.Name, bound.Name, bound.Dashed = name, name+": measured drift", true
	for _, c := range cells {
		e := estimate(c.regret)
		regret.X, regret.Y, regret.Err = append(regret.X, c.x), append(regret.Y, e.Value), append(regret.Err, 2*se(e))
		bound.X, bound.Y = append(bound.X, c.x), append(bound.Y, mean(c.bound))
	}
	return regret, bound
}

// fileName makes a part of a file name of an axis.
func fileName(axis string) string {
	return strings.NewReplacer("|", "", "/", "", "√", "").Replace(axis)
}
