package service

import (
	"testing"

	"hindsight/internal/follow"
	"hindsight/pkg/stream"
)

// Simulated is what a simulation leaves, for tests of what builds on this package.
type Simulated struct {
	Log   stream.Log
	Name  string
	Seed  []byte
	Build follow.Build
	Dedup int
	Clock bool // it is one clock, which never goes back
	Equal bool // log times are whole milliseconds
}

// Simulate runs the simulation of a seed.
func Simulate(t testing.TB, seed int64) *Simulated {
	s := newSim(t, seed, planted{})
	s.run()
	s.verify()
	return s.simulated()
}

// SimulatePower runs the simulation of a seed with power losses, in which some topics lose their tails; nil: all.
func SimulatePower(t testing.TB, seed int64, only []string) *Simulated {
	return playPower(t, seed, power{only: only}).simulated()
}

func (s *sim) simulated() *Simulated {
	for _, text := range s.broken {
		s.t.Errorf("seed %d: %s", s.seed, text)
	}
	return &Simulated{Log: s.log, Name: "m", Seed: simKey, Build: s.build, Dedup: 1000,
		Clock: !s.o.backwards && s.o.skew == 0, Equal: s.o.coarse}
}
