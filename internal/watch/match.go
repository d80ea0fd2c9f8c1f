package watch

// matchWindow holds how probable the learner would have made what its baseline did, in the last
// rounds of an apprentice.
type matchWindow struct {
	ring [windowSize]float64
	n    int
	at   int
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
	w := &s.matches
	if n <= w.last {
		return
	}
	w.last = n
	w.ring[w.at] = p
	w.at, w.n = (w.at+1)%windowSize, min(w.n+1, windowSize)
}

// match returns the match rate; s.mu is held.
func (s *Scope) match() matchRate {
	m := matchRate{Rounds: s.matches.n}
	sum := 0.0
	for _, p := range s.matches.ring[:m.Rounds] {
		sum += p
	}
	m.Rate = sum / float64(m.Rounds) // 0/0 is NaN
	return m
}
