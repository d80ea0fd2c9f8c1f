package codec

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The lists of a mark may be long: with order: arrival or early each round that is released ahead of
// one that waits is in Ahead, and in a backlog each outcome of no round is in Parked. As
// lists they take 5 to 9 bytes an item, and with some 200,000 of them a mark would not fit
// into a record. Lists of more than longList items in all have a form of their own in the
// record, of a bit, or mostly one or two bytes, an item; shorter ones stay as they always
// were. What counts is all of a mark, since it is one record: with many partitions each list
// may be short.

// longList is how many items the lists of a mark have at most before they take the other form.
const longList = 4096

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

// pack returns a mark as it is written.
func (x *FeedbackMark) pack() FeedbackMark {
	y := *x
	y.V, y.Positions = Version, slices.Clone(x.Positions)
	items := 0
	for i := range y.Positions {
		p := &y.Positions[i]
		p.AheadBits, p.ParkedDeltas, p.RefusedRuns = nil, nil, nil
		items += len(p.Ahead) + len(p.Parked) + len(p.Refused)
	}
	if items <= longList {
		return y
	}
	for i := range y.Positions {
		if y.Positions[i].pack() {
			y.V = markVersion
		}
	}
	return y
}

// pack puts the lists into their other form and reports whether there was one.
func (p *Position) pack() bool {
	if n := len(p.Ahead); n > 0 && p.Ahead[0] > p.Released && ascending(p.Ahead, true) {
		// Not where a list is shorter: most rounds wait, and few were released.
		if last := p.Ahead[n-1]; (uint64(last)-uint64(p.Released))/8 < width(last)*uint64(n) {
			p.AheadBits = appendBits(nil, p.Released, p.Ahead)
			p.Ahead = nil
		}
	}
	if len(p.Parked) > 0 && ascending(p.Parked, false) && p.Parked[0] >= 0 {
		p.ParkedDeltas = appendDeltas(nil, p.Parked)
		p.Parked = nil
	}
	if len(p.Refused) > 0 {
		if runs := refusedRuns(p.Refused); runs != nil {
			p.RefusedRuns, p.Refused = runs, nil
		}
	}
	return p.AheadBits != nil || p.ParkedDeltas != nil || p.RefusedRuns != nil
}

// width returns how many bytes numbers up to n take at most in a list.
func width(n int64) uint64 {
	switch {
	case n < 1<<16:
		return 3
	case n < 1<<32:
		return 5
	}
	return 9
}

// refusedRuns returns refusals by their reasons, nil if they are not in order.
func refusedRuns(list []Refusal) (runs []RefusedRun) {
	var offsets [][]int64
	for i, r := range list {
		if r.Offset < 0 || i > 0 && r.Offset <= list[i-1].Offset {
			return nil
		}
		k := slices.IndexFunc(runs, func(x RefusedRun) bool { return x.Reason == r.Reason })
		if k < 0 {
			k, runs, offsets = len(runs), append(runs, RefusedRun{Reason: r.Reason}), append(offsets, nil)
		}
		offsets[k] = append(offsets[k], r.Offset)
	}
	for k := range runs {
		runs[k].Offsets = appendDeltas(nil, offsets[k])
	}
	return runs
}

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

// ascending reports whether no number is less than the one before, nor, if strict, equal to it.
func ascending(list []int64, strict bool) bool {
	for i := 1; i < len(list); i++ {
		if list[i] < list[i-1] || strict && list[i] == list[i-1] {
			return false
		}
	}
	return true
}

// appendBits appends a set of numbers above base, bit i%8 of byte i/8 for base+1+i.
func appendBits(dst []byte, base int64, set []int64) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, (uint64(set[len(set)-1])-uint64(base)+7)/8)...)
	for _, n := range set {
		i := uint64(n) - uint64(base) - 1
		dst[from+int(i/8)] |= 1 << (i % 8)
	}
	return dst
}

// parseBits is the inverse of appendBits.
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

// appendDeltas appends ascending numbers of at least 0, each as the difference from the one
// before in base 128 (Go's and Protocol Buffers' uvarint).
func appendDeltas(dst []byte, list []int64) []byte {
	last := int64(0)
	for _, n := range list {
		dst = binary.AppendUvarint(dst, uint64(n-last))
		last = n
	}
	return dst
}

// parseDeltas is the inverse of appendDeltas.
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
