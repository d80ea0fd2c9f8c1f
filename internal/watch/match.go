package watch

// matchWindow holds how probable the learner would have made what its baseline did, in the last
// rounds of an apprentice.
type matchWindow struct {
	ring [Window]float64
	n    int
	at   int
	last int64 // feedback taken
}

// Match says how often an apprentice would have done what the baseline did.
type Match struct {
	Rounds int     // at most [Window]
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
	w.at, w.n = (w.at+1)%Window, min(w.n+1, Window)
}

// match returns the match rate; s.mu is held.
func (s *Scope) match() Match {
	m := Match{Rounds: s.matches.n}
	sum := 0.0
	for _, p := range s.matches.ring[:m.Rounds] {
		sum += p
	}
	m.Rate = sum / float64(m.Rounds) // 0/0 is NaN
	return m
}
