package ope

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawUnits draws a log of units with one to nine draws each. What a unit earns by an action moves with it: all its
// rewards are higher or lower together.
func drawUnits(rng *rand.Rand, units int) *Sample {
	s := &Sample{Actions: 2, Units: units}
	for u := range units {
		level := .3 * float64(2*rng.IntN(2)-1)
		for range 1 + rng.IntN(9) {
			a := rng.IntN(2)
			s.Action, s.Propensity = append(s.Action, int32(a)), append(s.Propensity, .5)
			s.Reward = append(s.Reward, .5+level+.1*float64(2*a-1)*rng.Float64())
			s.Unit = append(s.Unit, int32(u))
		}
	}
	return s
}

// TestIntervalsByUnit: where the rewards of a unit depend on each other, intervals by unit hold the truth as often as
// they say, and those for independent rows do not. Planted: rows for units.
func TestIntervalsByUnit(t *testing.T) {
	n := max(runs(t)/4, 200)
	rng := rand.New(rand.NewPCG(3, 21))
	mostly := func(dst []float64, _ int) { dst[0], dst[1] = .4, .6 }
	const truth = .5 + .2*.05
	o := Defaults()
	o.Bootstrap = 100
	var normal, resampled, course, independent int
	holds := func(count *int, low, high Figure) {
		if float64(low) <= truth && truth <= float64(high) {
			*count++
		}
	}
	for i := range n {
		o.Seed = uint64(i)
		s := drawUnits(rng, 100)
		e, err := Evaluate(s, "mostly", mostly, o)
		if err != nil {
			t.Fatal(err)
		}
		dr := e.Estimates.Get("dr")
		holds(&normal, dr.Low, dr.High)
		holds(&resampled, dr.Bootstrap.Low, dr.Bootstrap.High)
		last := len(e.Course.SoFar) - 1
		mean, off := e.Course.SoFar[last], 1.96*e.Course.SoFarSE[last]
		holds(&course, mean-off, mean+off)
		if !math.IsNaN(float64(dr.Bernstein.Low)) {
			t.Fatal("an empirical Bernstein interval of dependent rows")
		}
		s.Unit, s.Units = nil, 0
		if e, err = Evaluate(s, "mostly", mostly, o); err != nil {
			t.Fatal(err)
		}
		dr = e.Estimates.Get("dr")
		holds(&independent, dr.Low, dr.High)
	}
	share := func(count int) float64 { return float64(count) / float64(n) }
	t.Logf("%d logs of 100 units: normal %.3f, bootstrap %.3f, course %.3f, for independent rows %.3f", n,
		share(normal), share(resampled), share(course), share(independent))
	noise := 3 * math.Sqrt(.95*.05/float64(n))
	for name, count := range map[string]int{"normal": normal, "bootstrap": resampled, "course": course} {
		if share(count) < .95-.02-noise {
			t.Errorf("%s: coverage %.3f", name, share(count))
		}
	}
	if share(independent) > .8 {
		t.Errorf("rows for units hold the truth in %.3f of the logs: the test shows nothing", share(independent))
	}
}

// TestAUnitARow: units of one row each are rows, to the bit.
func TestAUnitARow(t *testing.T) {
	s, policy := newWorld().draw(rand.New(rand.NewPCG(1, 2)), 300, right)
	rows, err := Evaluate(s, "target", policy, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Action {
		s.Unit = append(s.Unit, int32(i))
	}
	s.Units = len(s.Unit)
	units, err := Evaluate(s, "target", policy, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range units.Estimates {
		r := rows.Estimates[i]
		if r.SE != e.SE && !math.IsNaN(float64(r.SE)) ||
			r.Bootstrap != e.Bootstrap && !math.IsNaN(float64(r.Bootstrap.Low)) {
			t.Errorf("%s: %+v, by row %+v", e.Name, e, r)
		}
	}
	for i := range rows.Course.SE {
		if rows.Course.SE[i] != units.Course.SE[i] || rows.Course.SoFarSE[i] != units.Course.SoFarSE[i] {
			t.Fatalf("course at %d: %v, by row %v", i, units.Course.SE[i], rows.Course.SE[i])
		}
	}
}
