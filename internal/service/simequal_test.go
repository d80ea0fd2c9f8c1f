package service

import "math/rand/v2"

// coarsen gives a third of the simulations log times in whole milliseconds, and users
// who write outcomes early and to any partition. It draws from numbers of its own.
func (o *simOptions) coarsen(seed int64) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0xc0a25e))
	if rng.IntN(3) > 0 {
		return
	}
	o.coarse = true
	if o.partitions == 1 && rng.IntN(2) == 0 {
		o.partitions = 2 + rng.IntN(2)
	}
	o.guesses = o.guesses || rng.IntN(2) == 0
}

// clock is the log's: it goes on by less than a millisecond an append, or back. It may
// tell whole milliseconds only.
func (s *sim) clock() int64 {
	if s.o.backwards && s.rng.IntN(40) == 0 {
		s.now -= s.rng.Int64N(500 * millisecond)
	}
	if s.o.coarse {
		s.now += s.rng.Int64N(millisecond / 2)
		return s.now - s.now%millisecond
	}
	s.now += 1 + s.rng.Int64N(millisecond)
	return s.now
}
