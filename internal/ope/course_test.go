package ope

import (
	"math"
	"testing"
)

// By hand, in the style of hand_test.go: four rows, each a stretch of its own.
func TestCourseByHand(t *testing.T) {
	s := &Sample{Actions: 2, Action: []int32{0, 1, 0, 0}, Propensity: []float64{.5, .5, .25, .5},
		Reward: []float64{1, 1, 0, 1}}
	e, err := Evaluate(s, "always 0", func(dst []float64, _ int) { dst[0] = 1 }, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	c := e.Course
	want := []float64{1, 1, 2. / 6, 4. / 8} // weights 2, 0, 4, 2
	for i, v := range want {
		if c.Rows[i] != i+1 || math.Abs(float64(c.SoFar[i])-v) > 1e-12 {
			t.Errorf("to row %d: %v, want %v", c.Rows[i], c.SoFar[i], v)
		}
	}
	if !math.IsNaN(float64(c.Value[1])) || c.Value[2] != 0 || math.Abs(float64(c.ESS[3])-64./24) > 1e-12 {
		t.Errorf("%+v", c)
	}
	// Σw²(r−½)² = (4+16+4)/4 = 6, and √6/8.
	if math.Abs(float64(c.SoFarSE[3])-math.Sqrt(6)/8) > 1e-12 {
		t.Errorf("standard error %v", c.SoFarSE[3])
	}
}

// The whole course ends with the SNIPS estimate, in at most so many stretches.
func TestCourseEndsWithSNIPS(t *testing.T) {
	s := &Sample{Actions: 3}
	for i := range 1000 {
		s.Action = append(s.Action, int32(i*i%3))
		s.Propensity = append(s.Propensity, .2+.1*float64(i%4))
		s.Reward = append(s.Reward, float64(i%7)/7)
	}
	e, err := Evaluate(s, "uniform", func(dst []float64, _ int) { dst[0], dst[1], dst[2] = 1./3, 1./3, 1./3 },
		Defaults())
	if err != nil {
		t.Fatal(err)
	}
	c, snips := e.Course, e.Estimates.Get("snips")
	last := len(c.Rows) - 1
	if last+1 != courseStretches || c.Rows[last] != 1000 || math.Abs(float64(c.SoFar[last]-snips.Value)) > 1e-12 ||
		math.Abs(float64(c.SoFarSE[last]-snips.SE)) > 1e-9 || math.Abs(float64(c.ESS[last]-e.ESS)) > 1e-9 {
		t.Errorf("%v ± %v of %d rows, SNIPS %v ± %v", c.SoFar[last], c.SoFarSE[last], c.Rows[last],
			snips.Value, snips.SE)
	}
}
