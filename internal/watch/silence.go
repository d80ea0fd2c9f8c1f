package watch

import (
	"math/bits"
	"time"

	"hindsight/pkg/codec"
)

const (
	// patience is how long no outcome may come before it is worth a thought.
	patience = 10 * time.Minute
	// usualDelays is how many median delays outcomes may take to come: those that are reported
	// in batches come at least twice as seldom as the median round waits.
	usualDelays = 3
	// shareAtFirst is the share of rounds whose outcome is expected before the first has come.
	shareAtFirst = .01
)

// silence tells whether outcomes stay away, in log time: of the decisions read since the last
// one it knows, to a factor of 2, how many are older than any time.
type silence struct {
	n       int64     // decisions read since the last outcome
	reached [64]int64 // the log time at which n came to 1, 2, 4, …
	closed  int64     // of them, those released without an outcome: they had waited for their whole window
}

func (s *silence) decision(at int64) {
	s.n++
	if s.n&(s.n-1) == 0 {
		s.reached[bits.Len64(uint64(s.n))-1] = at
	}
}

func (s *silence) outcome() { s.n, s.closed = 0, 0 }

func (s *silence) release(f *codec.Feedback) {
	if s.n > 0 && f.Time >= s.reached[0] && (f.Fate == codec.Skipped || f.Fate == codec.Imputed) &&
		f.Reason != codec.ReasonOverflow && f.First.N == 0 {
		s.closed++
	}
}

// older returns how many decisions were read since the last outcome and before a log time, of
// n the largest power of two that is no more.
func (s *silence) older(t int64) int64 {
	for k := bits.Len64(uint64(s.n)) - 1; k >= 0; k-- {
		if s.reached[k] <= t {
			return 1 << k
		}
	}
	return 0
}

// missing returns how many outcomes should have come by a log time since the last one did, at
// least; 0 while they may just be late. usual returns the share of rounds that are observed,
// and the median of their delays in seconds; NaN where nothing is known of it.
func (s *silence) missing(now int64, usual func() (share, delay float64)) float64 {
	if s.older(now-int64(patience)) == 0 {
		return 0
	}
	share, delay := usual()
	if !(share > 0) {
		share = shareAtFirst
	}
	due := s.closed
	if wait := usualDelays * delay; wait < 1e9 { // of NaN nothing is less
		due = max(due, s.older(now-max(int64(patience), int64(wait*1e9))))
	}
	return share * float64(due)
}
