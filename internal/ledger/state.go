package ledger

import (
	"encoding/binary"
	"errors"
	"math"
)

// version is the first byte of what [Ledger.Append] writes.
const version = 1

var errState = errors.New("not the state of a ledger with these candidates")

// fields calls f with all that a ledger keeps, in the order of its bytes.
func (l *Ledger) fields(integer func(*int64), float func(*float64)) {
	sequence := func(s *Sequence) {
		integer(&s.N)
		for _, v := range s.sums() {
			float(v)
		}
	}
	integer(&l.rounds)
	integer(&l.unknown)
	integer(&l.fired)
	for b := range buckets {
		float(&l.predictor.n[b])
		float(&l.predictor.sum[b])
	}
	for i := range l.candidates {
		c := &l.candidates[i]
		float(&c.weight)
		float(&c.squares)
		for k := range c.known {
			sequence(&c.known[k])
			if l.unknown > 0 {
				sequence(&c.all[k])
			}
		}
	}
	if l.rule.Alpha > 0 {
		sequence(&l.gain)
	}
}

// Append appends the state.
func (l *Ledger) Append(b []byte) []byte {
	b = append(b, version)
	l.fields(func(n *int64) { b = binary.AppendUvarint(b, uint64(*n)) },
		func(x *float64) { b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*x)) })
	return b
}

// Restore sets a new ledger to the state that one of the same candidates and rule appended.
func (l *Ledger) Restore(b []byte) error {
	if len(b) == 0 || b[0] != version {
		return errState
	}
	bad := false
	b = b[1:]
	l.fields(func(n *int64) {
		v, k := binary.Uvarint(b)
		if bad = bad || k <= 0 || int64(v) < 0; !bad {
			*n, b = int64(v), b[k:]
		}
	}, func(x *float64) {
		if bad = bad || len(b) < 8; !bad {
			*x, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
			bad = *x-*x != 0
		}
	})
	if bad || len(b) > 0 {
		return errState
	}
	return nil
}
