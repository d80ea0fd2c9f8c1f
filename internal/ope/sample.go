package ope

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"hindsight/pkg/oracle"
)

// Sample is the logged rows that policies are judged on.
type Sample struct {
	Actions    int       // K ≥ 1
	Action     []int32   // [n] in [0, K)
	Propensity []float64 // [n] in (0, 1]: of Action
	Reward     []float64 // [n] finite
	// [n] ≥ 1 and finite: that the row stands for, 1/(1 − probability of being dropped); nil: 1 each
	Events []float64
	// [n] in [0, Units): the one that the row is of. Rows of one unit may depend on each other, units do not.
	// nil: each row is a unit
	Unit  []int32
	Units int

	// Context sets x to what the action of row t was chosen by and from, and returns which
	// of the sample's actions those of x are; names of actions are not asked for. x and what
	// is returned may alias what the next call reuses. nil: rows have no features.
	Context func(x *oracle.Input, t int) []int32

	// Missing returns how many rows without an outcome lie between row t and the one before it; of t = n behind the
	// last. nil: none does.
	Missing func(t int) int

	Memory Memory // in which a judgement keeps what it has of every row; nil: the heap
}

// Memory is where what is kept of every row lies. Rows are gone over in order.
type Memory interface {
	// Floats returns room for n numbers, and what gives it back.
	Floats(n int) (room []float64, free func(), err error)
	// Drop is called now and then: what was read before is not read soon.
	Drop()
}

// heap is the memory that there always is.
type heap struct{}

func (heap) Floats(n int) ([]float64, func(), error) { return make([]float64, n), func() {}, nil }
func (heap) Drop()                                   {}

func (s *Sample) memory() Memory {
	if s.Memory == nil {
		return heap{}
	}
	return s.Memory
}

// dropEvery is after how many rows memory is dropped.
const dropEvery = 1 << 14

// all goes over the rows.
func (s *Sample) all() iter.Seq[int] { return s.upTo(s.Len()) }

// upTo goes over so many rows, or units.
func (s *Sample) upTo(n int) iter.Seq[int] {
	return func(yield func(t int) bool) {
		for t := range n {
			if t%dropEvery == dropEvery-1 {
				s.memory().Drop()
			}
			if !yield(t) {
				return
			}
		}
	}
}

// events returns how many events row t stands for.
func (s *Sample) events(t int) float64 {
	if s.Events == nil {
		return 1
	}
	return s.Events[t]
}

func (s *Sample) missing(t int) int {
	if s.Missing == nil {
		return 0
	}
	return s.Missing(t)
}

// even reports whether all rows stand for equally many events: then they are
// independent terms of a mean, and otherwise of a ratio.
func (s *Sample) even() bool {
	if s.Events == nil {
		return true
	}
	for t := range s.all() {
		if s.Events[t] != s.Events[0] {
			return false
		}
	}
	return true
}

// shares returns how many of n rows each row counts for: 1 on average, and all 1 where
// rows stand for equally many events.
func (s *Sample) shares() func(t int) float64 {
	if s.even() {
		return func(int) float64 { return 1 }
	}
	sum := 0.0
	for t := range s.all() {
		sum += s.events(t)
	}
	n := float64(s.Len())
	return func(t int) float64 { return s.Events[t] * n / sum }
}

// Len returns the number n of rows.
func (s *Sample) Len() int { return len(s.Action) }

// RowError says which row of a sample cannot be used. Row counts from 0.
type rowError struct {
	Row int
	Msg string
}

func (e *rowError) Error() string { return fmt.Sprintf("row %d: %s", e.Row, e.Msg) }

var errShape = errors.New("off-policy sample: no rows, no actions, or columns of different lengths")

// Validate reports the first row that breaks what the fields say, as a [*RowError].
func (s *Sample) validate() error {
	n := len(s.Action)
	if s.Actions < 1 || n == 0 || len(s.Propensity) != n || len(s.Reward) != n || s.Events != nil &&
		len(s.Events) != n || s.Unit != nil && len(s.Unit) != n {
		return errShape
	}
	for t := range s.all() {
		a, p, r := s.Action[t], s.Propensity[t], s.Reward[t]
		switch {
		case a < 0 || int(a) >= s.Actions:
			return &rowError{t, fmt.Sprintf("action %d is none of %d", a, s.Actions)}
		case !(p > 0 && p <= 1):
			return &rowError{t, fmt.Sprintf("propensity %v of the action played is not in (0, 1]", p)}
		case math.IsNaN(r) || math.IsInf(r, 0):
			return &rowError{t, fmt.Sprintf("reward %v is not finite", r)}
		case !(s.events(t) >= 1) || math.IsInf(s.events(t), 0):
			return &rowError{t, fmt.Sprintf("the row stands for %v events: expected at least 1", s.events(t))}
		}
	}
	return nil
}

// Policy sets dst[a] to the probability with which the policy plays action a in row t;
// len(dst) = K, and the caller gives it zeroed. A nil Policy is the one that made the log.
type Policy func(dst []float64, t int)

// lookAt returns what a policy does in each row: its weight w, the model's value dm and its
// error e, and the most that its weight could be by the smallest propensity of the log.
//
// The logging policy's other propensities are not in the log: its dm is q̂ of the action
// that it drew, whose mean is that of Σ_a p(a|x)·q̂(x,a).
func (s *Sample) lookAt(policy Policy, q *fitted) (*look, error) {
	n := s.Len()
	room, free, err := s.memory().Floats(lookFloats * n)
	if err != nil {
		return nil, err
	}
	l := &look{s: s, model: q.within, c: s.shares(), of: room, free: free, mass: make([]float64, s.Actions),
		pMin: math.Inf(1)}
	probs, rewards := make([]float64, s.Actions), make([]float64, s.Actions)
	for t := range s.all() {
		a, row := s.Action[t], l.of[lookFloats*t:][:lookFloats]
		l.pMin = min(l.pMin, s.Propensity[t])
		q.fill(rewards, t)
		row[2] = s.Reward[t] - rewards[a]
		if policy == nil {
			row[0], row[1], l.piMax = 1, rewards[a], 1
			l.mass[a] += l.c(t) / float64(n)
			continue
		}
		clear(probs)
		policy(probs, t)
		sum, dm := 0.0, 0.0
		for b, p := range probs {
			if !(p >= 0 && p <= 1+probabilitySlack) {
				free()
				return nil, &rowError{t, fmt.Sprintf("the policy plays action %d with probability %v", b, p)}
			}
			if p > 0 {
				sum += p
				dm += float64(p * rewards[b])
				l.mass[b] += p * l.c(t) / float64(n)
				l.piMax = max(l.piMax, p)
			}
		}
		if math.Abs(sum-1) > probabilitySlack {
			free()
			return nil, &rowError{t, fmt.Sprintf("the policy's probabilities sum to %v", sum)}
		}
		row[0], row[1] = probs[a]/s.Propensity[t], dm
	}
	return l, nil
}

// probabilitySlack is how far probabilities may be off by rounding.
const probabilitySlack = 1e-4

// lookFloats is how many numbers a judgement keeps of a row.
const lookFloats = 3

// look is what one policy does on a sample.
type look struct {
	s     *Sample
	model Range               // of q̂
	c     func(t int) float64 // rows that each counts for, see [Sample.shares]
	of    []float64           // [n][lookFloats]: weight, the model's value, its error on the action played
	free  func()              // gives of back
	mass  []float64           // [K]: mean probability of each action
	piMax float64             // largest probability of an action
	pMin  float64             // smallest propensity of the log
}

// w returns the weight of row t.
func (l *look) w(t int) float64 { return l.of[lookFloats*t] }

// dm returns the model's value of the policy in row t.
func (l *look) dm(t int) float64 { return l.of[lookFloats*t+1] }

// e returns the reward of row t less what the model says of its action.
func (l *look) e(t int) float64 { return l.of[lookFloats*t+2] }

// weightBound is the largest weight that can be if no propensity is below those of the log.
func (l *look) weightBound() float64 { return l.piMax / l.pMin }
