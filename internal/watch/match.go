package watch

// matchWindow holds how probable the learner would have made what its baseline did, in the last
// rounds of an apprentice.
type matchWindow struct {
	ring[float64]
	last int64 // feedback taken
}

// matchRate says how often an apprentice would have done what the baseline did.
type matchRate struct {
	Rounds int     // at most [windowSize]
	Rate   float64 // mean probability; NaN of none
}

// Matched takes what the learner, asked just before it learned a round of an apprentice, would
// have given the action that was played; of several deciders that learn it the first.
func (s *Scope) Matched(n int64, p float64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := &s.matches; n > w.last {
		w.last = n
		w.add(p)
	}
}

// match returns the match rate; s.mu is held.
func (s *Scope) match() matchRate {
	m := matchRate{Rounds: s.matches.n}
	sum := 0.0
	for _, p := range s.matches.all[:m.Rounds] {
		sum += p
	}
	m.Rate = sum / float64(m.Rounds) // 0/0 is NaN
	return m
}
