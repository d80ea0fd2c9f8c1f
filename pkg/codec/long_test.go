package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// longMark is a mark whose lists have n items each, of rounds and outcomes of which every
// third waits.
func longMark(n int) FeedbackMark {
	m := sampleFeedbackMark()
	pos := &m.Positions[0]
	*pos = Position{Released: 6_000_000_000, DecisionsFrom: 9, OutcomesThrough: 8_000_000_000, OutcomesFrom: 7}
	for i := range int64(n) {
		pos.Ahead = append(pos.Ahead, pos.Released+2+i+i/2)
		pos.Parked = append(pos.Parked, 7_000_000_000+100*i)
		pos.Refused = append(pos.Refused,
			Refusal{7_000_000_000 + 300*i, []string{ReasonOrphan, ReasonLate, ReasonDuplicate}[i%7%3]})
	}
	return m
}

// spreadMark is a mark whose lists lie in so many partitions: in each ahead says which of the
// rounds are ahead, and of all the parked outcomes, which are refused, each partition has as many.
func spreadMark(partitions int, rounds, parked int64, ahead func(i int64) bool) FeedbackMark {
	m := sampleFeedbackMark()
	m.Positions = make([]Position, partitions)
	for i := range m.Positions {
		m.Positions[i] = Position{Partition: i, Released: 6_000_000_000, DecisionsFrom: 9_000_000_000,
			DecisionsTime: m.Time, DecisionsThrough: 9_000_000_000,
			OutcomesThrough: 9_000_000_000, OutcomesFrom: 7_000_000_000, OutcomesTime: m.Time,
			Ahead: make([]int64, 0, rounds/int64(partitions)+1)}
	}
	for i := range rounds {
		if pos := &m.Positions[i%int64(partitions)]; ahead(i / int64(partitions)) {
			pos.Ahead = append(pos.Ahead, pos.Released+2+i/int64(partitions))
		}
	}
	for i := range parked {
		pos, at := &m.Positions[i%int64(partitions)], 7_000_000_000+20_000*(i/int64(partitions))
		pos.Parked = append(pos.Parked, at)
		pos.Refused = append(pos.Refused, Refusal{at, []string{ReasonOrphan, ReasonLate}[i/101%2]})
	}
	return m
}

// appendOldMark appends a mark as joiners that logged no cuts wrote it.
func appendOldMark(m FeedbackMark) []byte {
	m = m.pack()
	return AppendFeedbackMark(nil, &m)
}

// longList is how many items the lists of a mark had at most before they took the other form.
const longList = 4096

// pack returns a mark as it was written.
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

// TestLongMarks holds that lists of marks are written as they always were up to a number of
// items in all, and that longer ones are read back equal from a record of the version that has
// them.
func TestLongMarks(t *testing.T) {
	every := func(int64) bool { return true }
	for _, partitions := range []int{1, 13, 128} {
		for n, want := range map[int64]int{longList: Version, longList + 1: markVersion} {
			m := spreadMark(partitions, n-2*1000, 1000, every)
			b := appendOldMark(m)
			got, err := ParseFeedbackMark(b)
			m.V = want
			if err != nil || !same(got, m) {
				t.Errorf("%d items in %d partitions: version %d, want %d: %v", n, partitions, got.V, want, err)
			}
			plain := m
			if old := appendRare(nil, feedbackMarkRecord, Version, &plain); (want == Version) != (string(old) == string(b)) {
				t.Errorf("%d items in %d partitions: %d bytes, and %d as a list", n, partitions, len(b), len(old))
			}
		}
	}
}

// Lists of either form beside each other are read, as marks had them where the length of each
// list decided on its form.
func TestLongMarkOfEach(t *testing.T) {
	m := longMark(longList + 1)
	m.V = markVersion
	m.Positions[1].Ahead, m.Positions[1].Refused = []int64{405, 407}, []Refusal{{66_000, ReasonLate}}
	m.Positions = append(m.Positions, m.Positions[0], m.Positions[0], m.Positions[0])
	was := m
	was.Positions = slices.Clone(m.Positions)
	for i, p := range m.Positions {
		if q := &was.Positions[i]; i == 2 {
			q.Ahead, q.AheadBits = nil, appendBits(nil, p.Released, p.Ahead)
		} else if i == 3 {
			q.Parked, q.ParkedDeltas = nil, appendDeltas(nil, p.Parked)
		} else if i == 4 {
			q.Refused, q.RefusedRuns = nil, refusedRuns(p.Refused)
		}
	}
	if got, err := ParseFeedbackMark(appendRare(nil, feedbackMarkRecord, markVersion, &was)); err != nil ||
		!same(got, m) {
		t.Errorf("read otherwise: %v", err)
	}
}

// TestLongMarkFits holds that a mark with lists as long as a joiner lets them become fits into
// a record, whatever the number of partitions over which they spread: it was full with 200,000
// rounds ahead, and in 13 partitions with 50,000 outcomes.
func TestLongMarkFits(t *testing.T) {
	for _, partitions := range []int{1, 13, 128} {
		for name, k := range map[string]struct {
			rounds, parked int64
			ahead          func(i int64) bool
		}{ // loop's limits, as the service sets them
			"orphans":    {0, 50_000, nil},
			"few ahead":  {4096 * int64(partitions), 50_000, func(int64) bool { return true }},
			"most ahead": {4_000_000, 50_000, func(i int64) bool { return i%3 > 0 }},
			// 9 bytes an item are more than a bit a round
			"each 50th ahead": {4_000_000, 50_000, func(i int64) bool { return i%50 == 0 }},
		} {
			m := spreadMark(partitions, k.rounds, k.parked, k.ahead)
			b := appendOldMark(m)
			if len(b) > MaxRecordBytes-128<<10 {
				t.Errorf("%s, %d partitions: %d bytes leave no room for the rest of a record of %d", name,
					partitions, len(b), MaxRecordBytes)
			}
			got, err := ParseFeedbackMark(b)
			if err != nil || !slices.EqualFunc(got.Positions, m.Positions, func(a, b Position) bool {
				return slices.Equal(a.Ahead, b.Ahead) && slices.Equal(a.Parked, b.Parked) && slices.Equal(a.Refused,
					b.Refused)
			}) {
				t.Errorf("%s, %d partitions: other lists: %v", name, partitions, err)
			}
		}
	}
}

// Both forms of every list read back equal, whatever is in it.
func TestLongListForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := func(name string, least int64) []int64 {
			list := rapid.SliceOfN(genCount(least), 0, 40).Draw(t, name)
			from := rapid.OneOf(rapid.Int64Range(least, 300), rapid.Int64Range(least, math.MaxInt64-2*longList)).Draw(
				t, name+" from")
			for i := range int64(rapid.SampledFrom([]int{0, longList - 20, longList + 20}).Draw(t, name+" run")) {
				list = append(list, from+i)
			}
			if rapid.IntRange(0, 9).Draw(t, name+" sorted") > 0 {
				slices.Sort(list)
			}
			return list
		}
		m := sampleFeedbackMark()
		pos := &m.Positions[1]
		pos.Released = rapid.OneOf(rapid.Int64Range(-2, 300), rapid.Int64()).Draw(t, "released")
		pos.Ahead, pos.Parked = numbers("ahead", -3), numbers("parked", -3)
		for i, at := range numbers("refused", 0) {
			pos.Refused = append(pos.Refused, Refusal{at, []string{"", ReasonOrphan, ReasonLate}[i%3]})
		}
		got, err := ParseFeedbackMark(appendOldMark(m))
		m.V = got.V
		if err != nil || !same(got, m) {
			t.Fatalf("%v\n got %+v\nwant %+v", err, got.Positions[1], m.Positions[1])
		}
	})
}

// Long lists that are none are refused, with their place.
func TestLongListsMalformed(t *testing.T) {
	for key, pos := range map[string]Position{
		"ahead_bits":    {Ahead: []int64{7}, AheadBits: []byte{6}},
		"parked_deltas": {Parked: []int64{7}, ParkedDeltas: []byte{6}},
		"refused_runs":  {Refused: []Refusal{{7, "late"}}, RefusedRuns: []RefusedRun{{"late", []byte{6}}}},
	} {
		wrongLong(t, markVersion, key, pos)
	}
	wrongLong(t, markVersion, "ahead_bits", Position{Released: math.MaxInt64 - 15, AheadBits: []byte{1, 1}})
	wrongLong(t, markVersion, "parked_deltas", Position{ParkedDeltas: []byte{1, 0x80}})
	wrongLong(t, markVersion, "refused_runs",
		Position{RefusedRuns: []RefusedRun{{"late", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}}}})
	wrongLong(t, Version, "", Position{AheadBits: []byte{6}})
}

func wrongLong(t *testing.T, version int, key string, pos Position) {
	t.Helper()
	_, err := ParseFeedbackMark(appendRare(nil, feedbackMarkRecord, version, &FeedbackMark{Positions: []Position{pos}}))
	var e *Error
	if field := "positions[0]." + key; key == "" && !errors.Is(err, errLongForm) || key != "" &&
		(!errors.As(err, &e) || e.Field != field) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("%s of %+v: %v", key, pos, err)
	}
}
