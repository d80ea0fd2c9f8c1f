package service

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

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

// skews gives some simulations partitions whose clocks differ, by seconds in every other. It draws from numbers of
// its own.
func (o *simOptions) skews(seed int64) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x5ce3))
	switch rng.IntN(12) {
	case 0:
		o.skew = 1000 * millisecond
	case 1:
		o.skew = 9000 * millisecond
	}
}

// aheadOf returns by how much the clock of a partition is ahead of the slowest one.
func (s *sim) aheadOf(topic string, partition int) int64 {
	if s.o.skew == 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, s.seed, topic, partition)
	return int64(h.Sum64() % uint64(s.o.skew))
}

// clock is the log's: it goes on by less than a millisecond an append, or back. It may
// tell whole milliseconds only.
func (s *sim) clock() int64 {
	if s.o.backwards && s.rng.IntN(40) == 0 {
		s.now -= s.rng.Int64N(500 * millisecond)
	}
	if s.o.coarse {
		s.now += s.rng.Int64N(millisecond / 2)
		t := s.now + s.ahead
		return t - t%millisecond
	}
	s.now += 1 + s.rng.Int64N(millisecond)
	return s.now + s.ahead
}
