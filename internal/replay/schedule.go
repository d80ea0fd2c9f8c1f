package replay

import (
	"cmp"
	"slices"
)

// schedule says in which order outcomes come back. It is built while a run goes on:
// the delay of a round is known once its decision is.
type schedule struct {
	n          int
	head, last []int32 // of the list of each decision: the rounds whose outcome comes after it; -1: none
	next       []int32 // the lists; -1 ends
	raw        []int64 // per round so far: later decisions made before its outcome, or Never
	late       []bool  // its outcome comes after the last decision
	behind     []unsettled
	oldest     int     // see open
	times      []int64 // log times of outcomes, which order those that come after the same decision; nil: by round
	due        []int32
}

type unsettled struct {
	due int64
	t   int32
}

// newSchedule returns the schedule of n rounds, as yet without any.
func newSchedule(n int, times []int64) *schedule {
	s := &schedule{n: n, head: make([]int32, n), last: make([]int32, n), next: make([]int32, n),
		raw: make([]int64, 0, n), late: make([]bool, n), times: slices.Clone(times)}
	for t := range s.head {
		s.head[t] = -1
	}
	return s
}

// add lays out the outcome of the next round.
func (s *schedule) add(delay int64) {
	t := len(s.raw)
	s.next[t] = -1
	switch {
	case delay == Never:
		s.raw = append(s.raw, Never)
	case int64(t)+delay >= int64(s.n):
		s.raw = append(s.raw, int64(s.n-1-t))
		s.late[t] = true
		s.behind = append(s.behind, unsettled{int64(t) + delay, int32(t)})
	default:
		s.raw = append(s.raw, delay)
		due := t + int(delay)
		if s.head[due] < 0 {
			s.head[due] = int32(t)
		} else {
			s.next[s.last[due]] = int32(t)
		}
		s.last[due] = int32(t)
	}
}

// after returns the rounds whose outcome comes right after decision t, in order; the
// next call overwrites them. Round t must have been added.
func (s *schedule) after(t int) []int32 {
	s.due = s.due[:0]
	for r := s.head[t]; r >= 0; r = s.next[r] {
		s.due = append(s.due, r)
	}
	s.sort(s.due)
	return s.due
}

// open returns the first round whose outcome comes after decision t−1, at most t; t must
// not decrease from call to call, and be added.
func (s *schedule) open(t int) int {
	for s.oldest < t && (s.raw[s.oldest] == Never || !s.late[s.oldest] && int64(s.oldest)+s.raw[s.oldest] < int64(t)) {
		s.oldest++
	}
	return s.oldest
}

// rest returns the rounds whose outcome comes after the last decision, in order.
func (s *schedule) rest() []int32 {
	slices.SortFunc(s.behind, func(a, b unsettled) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.t, b.t)) })
	out := make([]int32, 0, len(s.behind))
	for _, l := range s.behind {
		out = append(out, l.t)
	}
	s.sort(out)
	return out
}

// sort puts rounds into the order of the log times of their outcomes, if there are any.
func (s *schedule) sort(rounds []int32) {
	if s.times != nil && len(rounds) > 1 {
		slices.SortStableFunc(rounds, func(a, b int32) int { return cmp.Compare(s.times[a], s.times[b]) })
	}
}

// delay returns the delay of round t; of one that comes after the last decision, at
// least as many decisions as were left.
func (s *schedule) delay(t int) int64 {
	if s.late[t] {
		return int64(s.n)
	}
	return s.raw[t]
}
