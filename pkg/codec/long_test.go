package codec

import (
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
		pos.Refused = append(pos.Refused, Refusal{7_000_000_000 + 300*i, []string{ReasonOrphan, ReasonLate, ReasonDuplicate}[i%7%3]})
	}
	return m
}

// TestLongMarks holds that lists of marks are written as they always were up to a length,
// and that longer ones are read back equal from a record of the version that has them.
func TestLongMarks(t *testing.T) {
	for n, want := range map[int]int{longList: Version, longList + 1: markVersion} {
		m := longMark(n)
		b := AppendFeedbackMark(nil, &m)
		got, err := ParseFeedbackMark(b)
		m.V = want
		if err != nil || !same(got, m) {
			t.Errorf("%d items: version %d, want %d: %v", n, got.V, want, err)
		}
		plain := m
		plain.V = Version
		if old := appendRare(nil, &plain); (want == Version) != (string(old) == string(b)) {
			t.Errorf("%d items: %d bytes, and %d as a list", n, len(b), len(old))
		}
	}
}

// TestLongMarkFits holds that a mark with lists as long as a joiner lets them become fits into
// a record, which was full with 200,000 rounds ahead.
func TestLongMarkFits(t *testing.T) {
	m := longMark(0)
	pos := &m.Positions[0]
	for i := range int64(4_000_000) { // loop's limits, as the service sets them
		if i%3 > 0 {
			pos.Ahead = append(pos.Ahead, pos.Released+1+i)
		}
	}
	for i := range int64(50_000) {
		pos.Parked = append(pos.Parked, 7_000_000_000+20_000*i)
		pos.Refused = append(pos.Refused, Refusal{7_000_000_000 + 20_000*i, ReasonOrphan})
	}
	b := AppendFeedbackMark(nil, &m)
	if len(b) > MaxRecordBytes-128<<10 {
		t.Errorf("%d bytes leave no room for the rest of a record of %d", len(b), MaxRecordBytes)
	}
	got, err := ParseFeedbackMark(b)
	if err != nil || !slices.Equal(got.Positions[0].Ahead, pos.Ahead) || !slices.Equal(got.Positions[0].Parked, pos.Parked) || !slices.Equal(got.Positions[0].Refused, pos.Refused) {
		t.Errorf("other lists: %v", err)
	}
}

// Both forms of every list read back equal, whatever is in it.
func TestLongListForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := func(name string, least int64) []int64 {
			list := rapid.SliceOfN(genCount(least), 0, 40).Draw(t, name)
			from := rapid.OneOf(rapid.Int64Range(least, 300), rapid.Int64Range(least, math.MaxInt64-2*longList)).Draw(t, name+" from")
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
		got, err := ParseFeedbackMark(AppendFeedbackMark(nil, &m))
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
	wrongLong(t, markVersion, "refused_runs", Position{RefusedRuns: []RefusedRun{{"late", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}}}})
	wrongLong(t, Version, "", Position{AheadBits: []byte{6}})
}

func wrongLong(t *testing.T, version int, key string, pos Position) {
	t.Helper()
	_, err := ParseFeedbackMark(appendRare(nil, &FeedbackMark{V: version, Positions: []Position{pos}}))
	var e *Error
	if field := "positions[0]." + key; key == "" && !errors.Is(err, errLongForm) || key != "" && (!errors.As(err, &e) || e.Field != field) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("%s of %+v: %v", key, pos, err)
	}
}
