package watch

import (
	"math"
	"math/rand/v2"
	"testing"

	"hindsight/pkg/learner"
)

// account adds up costs, and shows what a learner would.
type account struct {
	budget *learner.Budget
	n      int64
	sum    float64
}

func (a *account) spend(c float64) { a.n, a.sum = a.n+1, a.sum+c }

func (a *account) spending() []learner.Spending {
	return []learner.Spending{{Budget: a.budget, Price: 0.5, Costs: a.n, Mean: a.sum / float64(a.n), Expected: 1}}
}

// A budget is missed where more is spent than chance explains, as a whole and of late; of a good where less is. What
// was overspent and is paid back is no miss, nor what was saved and is spent.
func TestBudgetMissed(t *testing.T) {
	for name, c := range map[string]struct {
		atLeast bool
		means   []float64 // of 2,000 rounds each
		missed  bool
	}{
		"kept": {false, []float64{1}, false}, "missed": {false, []float64{1.5}, true},
		"paid back":     {false, []float64{1.5, .8}, false},
		"saved":         {false, []float64{.2, 1.3}, false},
		"missed again":  {false, []float64{.9, 1.8}, true},
		"a good":        {true, []float64{1.5}, false},
		"too little":    {true, []float64{.6}, true},
		"made up again": {true, []float64{.6, 1.2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, rng := NewScope(), rand.New(rand.NewPCG(1, 2))
			a := &account{budget: &learner.Budget{Name: "cost", Mean: 1, AtLeast: c.atLeast}}
			missed := s.Spends(0, a.spending())
			for i := range 2000 * len(c.means) {
				a.spend(c.means[i/2000] * rng.ExpFloat64())
				if rng.IntN(20) == 0 { // between two looks there are rounds, now more and now fewer
					missed = s.Spends(a.n, a.spending())
				}
			}
			if missed != c.missed {
				t.Errorf("missed: %v, by %+v", missed, s.View().Spends)
			}
		})
	}
}

// What is shown: the mean of late, prices in at most 96 points, one account after another.
func TestSpends(t *testing.T) {
	s := NewScope()
	a := &account{budget: &learner.Budget{Name: "cost", Mean: 2}}
	s.Spends(1, a.spending())
	if v := s.View().Spends; len(v) != 1 || len(v[0].Points) > 0 || !math.IsNaN(v[0].Late) {
		t.Errorf("before any cost: %+v", v)
	}
	by := NewScope() // looks at 0 in one round, and at 12 in three: as if single rounds cost 0, 4, 4 and 4
	for i, c := range []account{{a.budget, 0, 0}, {a.budget, 1, 0}, {a.budget, 4, 12}} {
		by.Spends(int64(i+1), c.spending())
	}
	if v := by.View().Spends[0]; v.Late != 3 || math.Abs(v.Error-math.Sqrt(3*3+3*3)/4) > 1e-12 {
		t.Errorf("by hand: %+v", v)
	}
	for i := range 5000 {
		a.spend(float64(i / 2500)) // 0, then 1
		s.Spends(a.n+1, a.spending())
	}
	v := s.View().Spends[0]
	if v.Late != 1 || v.Mean != 0.5 || len(v.Points) != 79 || v.Points[0] != (SpendPoint{64, .5, 0}) ||
		math.Abs(v.Points[60].Mean-1) > 1e-12 {
		t.Errorf("%d points: %+v", len(v.Points), v)
	}
	s.Spends(a.n, (&account{budget: a.budget, n: 1, sum: 7}).spending()) // of a replica that is behind
	if got := s.View().Spends[0]; got.Mean != 0.5 {
		t.Errorf("a replica behind tells %v", got.Mean)
	}
	b := &account{budget: &learner.Budget{Name: "cost", Mean: 3}, n: 5001, sum: 10}
	if s.Spends(a.n+2, b.spending()); s.View().Spends[0].Points != nil || s.View().Spends[0].Budget.Mean != 3 {
		t.Errorf("another limit: %+v", s.View().Spends[0])
	}
}
