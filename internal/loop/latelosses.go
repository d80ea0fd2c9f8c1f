package loop

import (
	"math"

	"hindsight/pkg/codec"
)

// A round whose outcome comes after its window is not learned from. That biases what is
// learned if the delay depends on the loss, which shows: the losses that came late are
// known, though not used.

// Moments are the mean and the spread of numbers, in one pass (Welford, Note on a Method
// for Calculating Corrected Sums of Squares and Products, Technometrics 1962). The mean
// of equal numbers is that number, with no spread.
type Moments struct {
	N    int64
	mean float64
	m2   float64 // Σ (x−mean)²
}

// Add takes a number.
func (m *Moments) Add(x float64) {
	m.N++
	d := x - m.mean
	m.mean += d / float64(m.N)
	m.m2 += float64(d * (x - m.mean))
}

// Mean returns the mean, NaN of nothing.
func (m *Moments) Mean() float64 {
	if m.N == 0 {
		return math.NaN()
	}
	return m.mean
}

// SE returns the standard error of the mean, NaN of fewer than two numbers.
func (m *Moments) SE() float64 {
	if m.N < 2 {
		return math.NaN()
	}
	return math.Sqrt(m.m2 / (float64(m.N) * float64(m.N-1)))
}

// LateLosses are the losses of rounds that were observed, and those that came for
// rounds without a loss in time: the first of each round. They are of one epoch, the
// last one met; losses are those of its scale, in [0,1]. Of models that sum outcomes
// none is late: it would be but a part of a loss.
type LateLosses struct {
	OnTime, Late Moments
	epoch        int64
}

// minLate is how many losses on both sides are enough to compare them.
const minLate = 30

// Differ reports whether the means differ by more than twice the standard error of
// their difference. Where they are means of the same law that happens to one in
// twenty.
func (l *LateLosses) Differ() bool {
	if l.OnTime.N < minLate || l.Late.N < minLate {
		return false
	}
	a, b := l.OnTime.SE(), l.Late.SE()
	return math.Abs(l.OnTime.mean-l.Late.mean) > 2*math.Sqrt(float64(a*a)+float64(b*b))
}

// AddObserved takes the loss of a round that was observed.
func (l *LateLosses) AddObserved(epoch int64, loss float64) {
	if l.of(epoch) {
		l.OnTime.Add(loss)
	}
}

// AddLate takes the first outcome after the window of a round that was skipped or
// imputed. It reports false if that has no loss: the next one may.
func (l *LateLosses) AddLate(epoch int64, rules *Rules, kind codec.OutcomeKind, value float64) bool {
	if kind != codec.Loss && kind != codec.Reward || rules == nil || rules.Outcomes == Sum {
		return false
	}
	loss, err := rules.Range.toLoss(kind, value)
	if err != nil || !l.of(epoch) {
		return false
	}
	l.Late.Add(loss)
	return true
}

// of reports whether losses of an epoch count, and begins anew with a later epoch.
func (l *LateLosses) of(epoch int64) bool {
	if epoch > l.epoch {
		*l = LateLosses{epoch: epoch}
	}
	return epoch == l.epoch
}

// LateLosses returns the losses that came late beside those in time: of rounds whose
// feedback this joiner emitted, or was told of by Resume, and of outcomes that it
// rejected. After a restart that is what came since the last mark, of both kinds: what
// was rejected behind it is rejected again.
func (j *Joiner) LateLosses() LateLosses { return j.losses }

// lateFor notes the loss of the outcome at hand, which comes after the window of a
// round that waits.
func (j *Joiner) lateFor(p *pending, a *arrival) {
	if p.late || p.count > 0 || p.rules.Activation && !p.activated || a.handled {
		return
	}
	p.late = j.losses.AddLate(p.d.Epoch, p.rules, j.outcome.Kind, j.outcome.Value)
}

// lateAfter is lateFor of a round that has its fate.
func (j *Joiner) lateAfter(m *roundMemo, a *arrival) {
	if m.late || m.fate != codec.Skipped && m.fate != codec.Imputed || a.handled {
		return
	}
	m.late = j.losses.AddLate(m.epoch, j.rules(m.epoch), j.outcome.Kind, j.outcome.Value)
}
