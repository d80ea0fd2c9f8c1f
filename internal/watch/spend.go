package watch

import (
	"math"
	"slices"

	"hindsight/pkg/learner"
)

const (
	spendRounds = 1000 // of which the mean of late is
	spendLooks  = 20   // at least, before a miss is told from chance
	spendErrors = 4    // standard errors that chance does not explain
	spendPoints = 96
)

// Spend is how one budget is kept.
type Spend struct {
	learner.Spending
	Late   float64 // the mean of about the last 1,000 rounds whose cost was learned; NaN before two looks at it
	Error  float64 // its standard error
	Missed bool    // overspent as a whole, and by more than chance of late; of a good the same the other way
	Points []SpendPoint
}

// SpendPoint is what was when some more costs were learned.
type SpendPoint struct {
	Rounds      int64   // whose cost was learned
	Price, Mean float64 // λ; the mean of the costs since the point before
}

// look is how much was learned between two looks at a learner.
type look struct{ rounds, sum float64 }

// spendWindow follows one budget from look to look.
type spendWindow struct {
	now    Spend
	looks  []look // of the last spendRounds rounds, oldest first
	rounds float64
	total  float64 // Σ of costs at the last look
	open   look    // since the last point
	every  float64 // rounds from one point to the next, at least
}

// take takes a look at a budget.
func (w *spendWindow) take(s learner.Spending) {
	total := 0.0
	if s.Costs > 0 {
		total = s.Mean * float64(s.Costs)
	}
	if was := &w.now; was.Budget == nil || s.Costs < was.Costs || s.Budget.Mean != was.Budget.Mean { // another account
		*w = spendWindow{now: Spend{Spending: s, Late: math.NaN(), Error: math.NaN()}, total: total, every: 1}
		return
	}
	l := look{float64(s.Costs - w.now.Costs), total - w.total}
	w.now.Spending, w.total = s, total
	if l.rounds == 0 {
		return
	}
	w.looks, w.rounds = append(w.looks, l), w.rounds+l.rounds
	for len(w.looks) > spendLooks && w.rounds-w.looks[0].rounds >= spendRounds {
		w.rounds -= w.looks[0].rounds
		w.looks = append(w.looks[:0], w.looks[1:]...)
	}
	w.judge()
	w.note(l)
}

// judge compares the costs of late with the bound. Looks vary as sums of rounds do, whatever their number.
func (w *spendWindow) judge() {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, l := range w.looks {
		n, sum = n+l.rounds, sum+l.sum
	}
	mean := sum / n
	for _, l := range w.looks {
		d := l.sum - mean*l.rounds
		squares += d * d
	}
	s := &w.now
	s.Late, s.Error = mean, math.Sqrt(squares)/n
	late, whole := mean-s.Budget.Mean, s.Mean-s.Budget.Mean
	if s.Budget.AtLeast {
		late, whole = -late, -whole
	}
	s.Missed = len(w.looks) >= spendLooks && whole > 0 && late > spendErrors*s.Error
}

// note adds to the points, which halve in number when there would be too many.
func (w *spendWindow) note(l look) {
	s := &w.now
	w.open.rounds, w.open.sum = w.open.rounds+l.rounds, w.open.sum+l.sum
	if w.open.rounds < w.every {
		return
	}
	if len(s.Points) == spendPoints {
		for i := range spendPoints / 2 {
			a, b := s.Points[2*i], s.Points[2*i+1]
			s.Points[i] = SpendPoint{b.Rounds, b.Price, (a.Mean + b.Mean) / 2}
		}
		s.Points, w.every = s.Points[:spendPoints/2], 2*w.every
	}
	s.Points = append(s.Points, SpendPoint{s.Costs, s.Price, w.open.sum / w.open.rounds})
	w.open = look{}
}

// Spends takes how a learner keeps its budgets after feedback through; of several replicas of it what the one that is
// ahead says. It reports whether one is missed by more than chance.
func (s *Scope) Spends(through int64, of []learner.Spending) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if through > s.spentThrough {
		s.spentThrough = through
		if len(s.spends) != len(of) {
			s.spends = make([]spendWindow, len(of))
		}
		for i := range of {
			s.spends[i].take(of[i])
		}
	}
	for i := range s.spends {
		missed = missed || s.spends[i].now.Missed
	}
	return missed
}

// spending returns a copy of how budgets are kept; s.mu is held.
func (s *Scope) spending() (out []Spend) {
	for i := range s.spends {
		b := s.spends[i].now
		b.Points = slices.Clone(b.Points)
		out = append(out, b)
	}
	return out
}
