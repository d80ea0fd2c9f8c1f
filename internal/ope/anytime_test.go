package ope

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/internal/ledger"
)

// adaptiveLog is one of a policy that plays what did better so far with probability 0.9, of two actions with mean
// rewards ½ and ½.
func adaptiveLog(seed uint64, rows int) *Sample {
	r, s := rand.New(rand.NewPCG(seed, 3)), &Sample{Actions: 2}
	sum, n := [2]float64{}, [2]float64{1, 1}
	for range rows {
		best := 0
		if sum[1]/n[1] > sum[0]/n[0] {
			best = 1
		}
		a, p := best, 0.9
		if r.Float64() > p {
			a, p = 1-best, 1-p
		}
		x := float64(r.IntN(2))
		sum[a], n[a] = sum[a]+x, n[a]+1
		s.Action, s.Propensity = append(s.Action, int32(a)), append(s.Propensity, p)
		s.Reward = append(s.Reward, x)
	}
	return s
}

// TestAnyTime: on logs of a policy that learned the interval covers the mean at the end in all but few, and is that of
// package ledger on terms of IPS. Rows without an outcome widen the worst one.
func TestAnyTime(t *testing.T) {
	o := Defaults()
	o.Bootstrap, o.Model.Folds = 0, 0
	first := func(dst []float64, _ int) { dst[0] = 1 }
	wrong := 0
	for seed := range uint64(100) {
		e, err := Evaluate(adaptiveLog(seed, 400), "first", first, o)
		if err != nil {
			t.Fatal(err)
		}
		if a := e.AnyTime; !(a.Low <= .5 && .5 <= a.High) {
			wrong++
		} else if a.Worst != (interval{a.Low, a.High}) {
			t.Fatalf("nothing is missing: %+v", a)
		}
	}
	if wrong > 5 {
		t.Errorf("wrong in %d of 100 logs", wrong)
	}
	s := adaptiveLog(1, 400)
	// two before row 400, which is the end, 1 each before
	s.Missing = func(row int) int { return (row + 1) % 2 * row / 200 }
	e, err := Evaluate(s, "first", first, o)
	if err != nil {
		t.Fatal(err)
	}
	level, low, worst := ledger.Level(.025), ledger.Sequence{}, ledger.Sequence{}
	for i, x := range s.Reward {
		for range s.Missing(i) {
			worst.Add(0, level)
		}
		if s.Action[i] != 0 {
			x = 0
		}
		low.Add(x/s.Propensity[i], level)
		worst.Add(x/s.Propensity[i], level)
	}
	for range s.Missing(400) {
		worst.Add(0, level)
	}
	for _, c := range []struct{ got, want float64 }{{float64(e.AnyTime.Low), low.Low(level)},
		{float64(e.AnyTime.Worst.Low), worst.Low(level)}} {
		if math.Abs(c.got-max(0, c.want)) > 1e-12 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	if !(e.AnyTime.Worst.Low < e.AnyTime.Low && e.AnyTime.High < e.AnyTime.Worst.High) {
		t.Errorf("%+v", e.AnyTime)
	}
	s.Reward[7] = 2
	if e, err = Evaluate(s, "first", first, o); err != nil || !math.IsNaN(float64(e.AnyTime.Low)) {
		t.Errorf("a reward out of its range: %+v, %v", e, err)
	}
}
