package replay

import (
	"cmp"
	"math"
	"slices"
)

// schedule says in which order outcomes come back. It is built while a run goes on: the
// delay of a round is known once its decision is. It holds the outcomes that are to come.
type schedule struct {
	n     int
	times []int64   // log times of outcomes, which order those that come after the same decision; nil: by round
	next  int       // rounds so far
	queue []awaited // outcomes to come: a heap by due, then by round
	cut   int64     // delay of the round last added: later decisions made before its outcome, or Never
	due   []awaited

	keep bool    // what follows; it grows with the rounds
	raw  []int64 // per round: cut
	late []bool  // its outcome comes after the last decision
	// waits says of a round whether it waits until those before it are released; where rules
	// have rounds that do not ([loop.Rules.Early]).
	waits []bool
}

// awaited is an outcome that is to come.
type awaited struct {
	due    int64 // the decision that it comes after
	time   int64 // its log time, where the schedule has times
	round  int32
	action int32 // played
}

// newSchedule returns the schedule of n rounds, as yet without any.
func newSchedule(n int, times []int64) *schedule { return &schedule{n: n, times: times} }

// add lays out the outcome of the next round, whose action was played.
func (s *schedule) add(delay int64, action int) {
	time := int64(0)
	if s.times != nil {
		time = s.times[s.next]
	}
	s.addAt(delay, time, action)
}

// addAt is add of an outcome that comes at another log time.
func (s *schedule) addAt(delay, time int64, action int) {
	t := s.next
	s.next++
	s.cut = delay
	late := false
	if delay != Never {
		due := int64(t) + delay
		if late = due >= int64(s.n); late {
			s.cut = int64(s.n - 1 - t)
		}
		s.push(awaited{due, time, int32(t), int32(action)})
	}
	if s.keep {
		s.raw, s.late = append(s.raw, s.cut), append(s.late, late)
	}
}

// after returns the outcomes that come right after decision t, in order; the next call
// overwrites them. Round t must have been added.
func (s *schedule) after(t int) []awaited { return s.until(int64(t)) }

// rest returns the outcomes that come after the last decision, in order.
func (s *schedule) rest() []awaited { return s.until(math.MaxInt64) }

// until returns the outcomes that are due by a decision.
func (s *schedule) until(t int64) []awaited {
	s.due = s.due[:0]
	for len(s.queue) > 0 && s.queue[0].due <= t {
		s.due = append(s.due, s.pop())
	}
	if s.times != nil && len(s.due) > 1 {
		slices.SortStableFunc(s.due, func(a, b awaited) int { return cmp.Compare(a.time, b.time) })
	}
	return s.due
}

func (a awaited) before(b awaited) bool { return a.due < b.due || a.due == b.due && a.round < b.round }

func (s *schedule) push(a awaited) {
	s.queue = append(s.queue, a)
	q, i := s.queue, len(s.queue)-1
	for i > 0 && a.before(q[(i-1)/2]) {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = a
}

func (s *schedule) pop() awaited {
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

// delay returns the delay of round t, of a schedule that keeps them; of one that comes
// after the last decision, at least as many decisions as were left.
func (s *schedule) delay(t int) int64 {
	if s.late[t] {
		return int64(s.n)
	}
	return s.raw[t]
}
