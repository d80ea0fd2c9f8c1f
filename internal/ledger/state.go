package ledger

import (
	"errors"
	"math"

	"hindsight/pkg/oracle"
)

// version is the first byte of what [Ledger.Append] writes.
const version = 1

var errState = errors.New("not the state of a ledger with these candidates")

// code writes all that a ledger keeps, or reads it.
func (l *Ledger) code(c *oracle.Coder) {
	low := math.Inf(-1)
	sequence := func(s *Sequence) {
		sums := s.sums()
		c.Ints(&s.N)
		c.Float(low, sums[:]...)
	}
	c.Ints(&l.rounds, &l.unknown, &l.fired)
	for b := range buckets {
		c.Float(low, &l.predictor.n[b], &l.predictor.sum[b])
	}
	for i := range l.candidates {
		x := &l.candidates[i]
		c.Float(low, &x.weight, &x.squares)
		for k := range x.known {
			sequence(&x.known[k])
			if l.unknown > 0 {
				sequence(&x.all[k])
			}
		}
	}
	if l.rule.Alpha > 0 {
		sequence(&l.gain)
	}
}

// Append appends the state.
func (l *Ledger) Append(b []byte) []byte {
	c := oracle.NewWriter(append(b, version))
	l.code(&c)
	return c.Bytes()
}

// Restore sets a new ledger to the state that one of the same candidates and rule appended.
func (l *Ledger) Restore(b []byte) error {
	if len(b) == 0 || b[0] != version {
		return errState
	}
	c := oracle.NewReader(b[1:], "", errState)
	l.code(&c)
	return c.Err()
}
