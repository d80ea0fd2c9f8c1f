package codec

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The lists of a mark up to version 3 may be long: with order: arrival or early each round that is released ahead of
// one that waits is in Ahead, and in a backlog each outcome of no round is in Parked. Lists of some thousand items
// have a form of their own in version 3, of a bit, or mostly one or two bytes, an item. No joiner writes such marks any
// more.

// RefusedRun are the refusals of one reason, in the form of long lists.
type RefusedRun struct {
	Reason  string `msgpack:"reason"`
	Offsets []byte `msgpack:"offsets"`
}

// Errors of the form of long lists.
var (
	errBothForms = fmt.Errorf("%w: the list is there in both its forms", ErrCorrupt)
	errLongForm  = fmt.Errorf("%w: a form of lists that records of this version do not have", ErrCorrupt)
	errDeltas    = fmt.Errorf("%w: want ascending numbers within int64 as base-128 differences", ErrCorrupt)
)

// unpack makes lists of a record's long lists.
func (x *FeedbackMark) unpack() error {
	for i := range x.Positions {
		p := &x.Positions[i]
		if x.V < markVersion && (p.AheadBits != nil || p.ParkedDeltas != nil || p.RefusedRuns != nil) {
			return wrong("feedback mark", item("positions", i), errLongForm)
		}
		if key, err := p.unpack(); err != nil {
			return wrong("feedback mark", item("positions", i)+"."+key, err)
		}
	}
	return nil
}

func (p *Position) unpack() (key string, err error) {
	if p.Ahead, err = unpacked(p.Ahead, p.AheadBits, func(b []byte) ([]int64, error) {
		return parseBits(p.Released, b)
	}); err != nil {
		return "ahead_bits", err
	}
	if p.Parked, err = unpacked(p.Parked, p.ParkedDeltas, parseDeltas); err != nil {
		return "parked_deltas", err
	}
	if len(p.Refused) > 0 && len(p.RefusedRuns) > 0 {
		return "refused_runs", errBothForms
	}
	for _, run := range p.RefusedRuns {
		offsets, err := parseDeltas(run.Offsets)
		if err != nil {
			return "refused_runs", err
		}
		for _, at := range offsets {
			p.Refused = append(p.Refused, Refusal{Offset: at, Reason: run.Reason})
		}
	}
	if len(p.RefusedRuns) > 0 {
		slices.SortStableFunc(p.Refused, func(a, b Refusal) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	p.AheadBits, p.ParkedDeltas, p.RefusedRuns = nil, nil, nil
	return "", nil
}

// unpacked returns a list that has one of two forms.
func unpacked(list []int64, packed []byte, parse func([]byte) ([]int64, error)) ([]int64, error) {
	if len(packed) == 0 {
		return list, nil
	}
	if len(list) > 0 {
		return nil, errBothForms
	}
	return parse(packed)
}

// parseBits returns a set of numbers above base, of which bit i%8 of byte i/8 stands for base+1+i.
func parseBits(base int64, b []byte) (set []int64, err error) {
	if base > math.MaxInt64-8*int64(len(b)) {
		return nil, errRange
	}
	for i, bits := range b {
		for k := range int64(8) {
			if bits&(1<<k) != 0 {
				set = append(set, base+1+8*int64(i)+k)
			}
		}
	}
	return set, nil
}

// parseDeltas returns ascending numbers of at least 0, each of which is the difference from the one before in base 128
// (Go's and Protocol Buffers' uvarint).
func parseDeltas(b []byte) (list []int64, err error) {
	last := uint64(0)
	for len(b) > 0 {
		d, n := binary.Uvarint(b)
		if n <= 0 || d > math.MaxInt64-last {
			return nil, errDeltas
		}
		last += d
		list, b = append(list, int64(last)), b[n:]
	}
	return list, nil
}
