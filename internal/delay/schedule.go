package delay

import (
	"cmp"
	"math"
	"slices"
)

// Schedule says in which order outcomes come back. It is built while a run goes on: the
// delay of a round is known once its decision is. It holds the outcomes that are to come.
type Schedule struct {
	n     int
	Times []int64   // log times of outcomes; nil: there are none
	next  int       // rounds so far
	queue []Awaited // outcomes to come: a heap by due, then by round
	due   []Awaited
	one   [1]Part

	Timed  bool  // outcomes that come after the same decision are in the order of their times
	Cut    int64 // of the round last added: later decisions made before all of its outcome is there, or Never
	Silent bool  // of it nothing comes
}

// Awaited is an outcome that is to come.
type Awaited struct {
	due    int64 // the decision that it comes after
	Time   int64 // its log time, where the schedule has times
	Round  int32
	Action int32 // played
	Part   int32 // of the round's outcomes
	Last   bool  // of the parts that come
}

// NewSchedule returns the schedule of n rounds, as yet without any.
func NewSchedule(n int, times []int64) *Schedule {
	return &Schedule{n: n, Times: times, Timed: times != nil}
}

// Part is an outcome, or are outcomes, of a round that come together.
type Part struct {
	Delay int64
	Time  int64 // log time; 0 where the schedule has no times
}

// Add lays out the outcome of the next round, whose action was played.
func (s *Schedule) Add(delay int64, action int) {
	time := int64(0)
	if s.Times != nil {
		time = s.Times[s.next]
	}
	s.AddAt(delay, time, action)
}

// AddAt is add of an outcome that comes at another log time.
func (s *Schedule) AddAt(delay, time int64, action int) {
	s.one[0] = Part{delay, time}
	s.AddParts(s.one[:], action)
}

// AddParts lays out the parts of the next round.
func (s *Schedule) AddParts(parts []Part, action int) {
	t := s.next
	s.next++
	last, most := -1, int64(0)
	for i, p := range parts {
		if p.Delay == Never {
			most = Never
			continue
		}
		if most != Never {
			most = max(most, p.Delay)
		}
		if last < 0 || s.behind(t, p, parts[last]) {
			last = i
		}
	}
	s.Cut, s.Silent = most, last < 0
	if most != Never {
		s.Cut = min(most, int64(s.n-1-t))
	}
	for i, p := range parts {
		if p.Delay != Never {
			s.push(Awaited{int64(t) + p.Delay, p.Time, int32(t), int32(action), int32(i), i == last})
		}
	}
}

// behind reports whether of two parts of round t the first one comes later, or not before the second one.
func (s *Schedule) behind(t int, a, b Part) bool {
	end := int64(s.n - t) // all that is due from here on comes at once
	if d := cmp.Compare(min(a.Delay, end), min(b.Delay, end)); d != 0 {
		return d > 0
	}
	if s.Timed && a.Time != b.Time {
		return a.Time > b.Time
	}
	return a.Delay >= b.Delay
}

// After returns the outcomes that come right after decision t, in order; the next call
// overwrites them. Round t must have been added.
func (s *Schedule) After(t int) []Awaited { return s.until(int64(t)) }

// Rest returns the outcomes that come after the last decision, in order.
func (s *Schedule) Rest() []Awaited { return s.until(math.MaxInt64) }

// until returns the outcomes that are due by a decision.
func (s *Schedule) until(t int64) []Awaited {
	s.due = s.due[:0]
	for len(s.queue) > 0 && s.queue[0].due <= t {
		s.due = append(s.due, s.pop())
	}
	if s.Timed && len(s.due) > 1 {
		slices.SortStableFunc(s.due, func(a, b Awaited) int { return cmp.Compare(a.Time, b.Time) })
	}
	return s.due
}

func (a Awaited) before(b Awaited) bool {
	return a.due < b.due || a.due == b.due && (a.Round < b.Round || a.Round == b.Round && a.Part < b.Part)
}

func (s *Schedule) push(a Awaited) {
	s.queue = append(s.queue, a)
	q, i := s.queue, len(s.queue)-1
	for i > 0 && a.before(q[(i-1)/2]) {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = a
}

func (s *Schedule) pop() Awaited {
	q := s.queue
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	s.queue = q
	for i := 0; len(q) > 0; {
		k := 2*i + 1
		if k+1 < len(q) && q[k+1].before(q[k]) {
			k++
		}
		if k >= len(q) || last.before(q[k]) {
			q[i] = last
			break
		}
		q[i] = q[k]
		i = k
	}
	return top
}
