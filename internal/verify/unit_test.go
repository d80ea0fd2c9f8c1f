package verify

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestRejectCutOff: of a record too large for a reject the first bytes are kept, at least so many.
func TestRejectCutOff(t *testing.T) {
	record := bytes.Repeat([]byte("x"), codec.MaxRejectBytes+10)
	for kept, ok := range map[int]bool{codec.MaxRejectBytes: true, codec.MaxRejectBytes + 1: true,
		codec.MaxRejectBytes - 1: false, len(record) - 1: true, len(record): false} {
		for size, ok := range map[int]bool{len(record): ok, len(record) - 1: false, len(record) + 1: false} {
			x := rejectIndex{seed: maphash.MakeSeed()}
			info := rejectInfo{kept: kept, size: size, bytes: maphash.Bytes(x.seed, record[:kept]),
				id: maphash.String(x.seed, "")}
			if field, _, _ := x.compare(&info, &stream.Record{Value: record}); (field == "") != ok {
				t.Errorf("%d bytes kept of %d, said to be %d: %q", kept, len(record), size, field)
			}
		}
	}
}

// TestFirstDifference: of one record two checks may tell, in any order, and the field is told.
func TestFirstDifference(t *testing.T) {
	all := []Difference{{Partition: 1, Field: "n"}, {Field: "bytes"}, {Field: "n"}, {Field: "n", Want: "x"}}
	for range 2 {
		var r Report
		for i := range all {
			r.add(&all[i])
		}
		if *r.First != (Difference{Field: "n"}) {
			t.Errorf("%+v", *r.First)
		}
		slices.Reverse(all)
	}
}

// TestRulesAreGone: of an epoch before the oldest of a log that has lost its beginning the rules are gone, and only
// then.
func TestRulesAreGone(t *testing.T) {
	for _, c := range []struct {
		known         bool
		first, oldest int64
		epoch         int64
		want          bool
	}{{false, 9, 3, 2, true}, {false, 9, 0, 2, true}, {false, 9, 3, 3, false}, {false, 1, 3, 2, false},
		{true, 9, 3, 2, false}} {
		f := &fateCheck{feedback: &logCursor{first: c.first}, oldest: c.oldest, rules: func(int64) *loop.Rules {
			if c.known {
				return &loop.Rules{}
			}
			return nil
		}}
		if (knownEpochs{f}).Rules(c.epoch); f.ruleless != c.want {
			t.Errorf("%+v: gone %v", c, f.ruleless)
		}
	}
}

// TestMemoryOfMarks: a mark's memory goes back to what the mark that it restarts from remembers; one that does not say
// remembers what the limits say.
func TestMemoryOfMarks(t *testing.T) {
	for _, c := range []struct {
		remembers, memory int64
		ok                bool
	}{{60, 59, true}, {60, 60, false}, {0, 80, true}, {0, 81, false}} {
		v := &verification{found: map[site]Difference{}}
		f := &fateCheck{v: v, heart: loop.NewJoiner(1, codec.Limits{Heart: 1, Dedup: 20}, 1, nil),
			feedback: &logCursor{}, marks: map[int64]markPlace{5: {0, c.memory, 1}, 10: {0, 100, c.remembers}}}
		f.refers(&stream.Record{Offset: 20}, &codec.FeedbackMark{From: 10, Memory: 5, Limits: codec.Limits{Dedup: 20}},
			false)
		if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "memory" {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestFromOfMarks: a mark that names no mark before it begins with the logs, or with itself where no cut waits.
func TestFromOfMarks(t *testing.T) {
	for _, c := range []struct {
		from, fromCut, cut int64
		field              string
	}{{-1, -1, 9, ""}, {-1, 0, 0, ""}, {-1, 3, 0, "from_cut"}, {-1, 1, 1, "from"}, {-1, 9, 9, "from"},
		{20, 0, 0, "from"}, {10, 0, 5, ""}, {10, 1, 5, "from_cut"}, {11, 0, 5, "from"}, {12, 1, 5, "from"}} {
		v := &verification{found: map[site]Difference{}}
		// the oldest cut is 1
		f := &fateCheck{v: v, heart: loop.NewJoiner(1, codec.Limits{Heart: 1, Dedup: 20}, 1, nil),
			feedback: &logCursor{}, marks: map[int64]markPlace{10: {0, 100, 1}, 12: {1, 100, 1}}}
		f.refers(&stream.Record{Offset: 20},
			&codec.FeedbackMark{From: c.from, FromCut: c.fromCut, Cut: c.cut, Memory: -1},
			false)
		if d := v.report.First; (d == nil) != (c.field == "") || d != nil && d.Field != c.field {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestFirstLine: the round of the first difference is told if it has one, and values of any length in one line.
func TestFirstLine(t *testing.T) {
	for _, c := range []struct {
		round int64
		n     int
		want  string
	}{{0, 400, "  first  t[2]@7 n\n    want " + strings.Repeat("x", 400) + "\n    got  y\n"},
		{1, 401, "  first  t[2]@7 round 1 \"i\" n\n    want " + strings.Repeat("x", 400) + "…\n    got  y\n"}} {
		r := Report{Differences: 1, First: &Difference{Topic: "t", Partition: 2, Offset: 7, Round: c.round, ID: "i",
			Field: "n", Want: strings.Repeat("x", c.n), Got: "y"}}
		var out strings.Builder
		if err := r.Write(&out); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v:\n%s", err, out.String())
		}
	}
}

// TestKnownDifferences: a difference that two attempts find is reported alone.
func TestKnownDifferences(t *testing.T) {
	both, one := Difference{Topic: "t", Offset: 1}, Difference{Topic: "t", Offset: 2, foreign: true}
	v := &verification{found: map[site]Difference{}}
	v.differ(one)
	if v.keepKnown(map[site]Difference{both.site(): both}) || v.report.Differences != 1 || v.report.Foreign != 1 {
		t.Errorf("kept though none is known: %+v", v.report)
	}
	v.differ(both)
	if !v.keepKnown(map[site]Difference{both.site(): both}) || v.report.Differences != 1 || v.report.Foreign != 0 ||
		v.report.First.Offset != 1 || v.report.Beside != nil {
		t.Errorf("%+v", v.report)
	}
}

// TestLeftOutBySkew: a record that a cut left out is excused by the skew of clocks, and where a log's clock ran
// through a stretch of time twice, with the skew on both sides.
func TestLeftOutBySkew(t *testing.T) {
	heart := (&verification{}).newFates(nil, nil).history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10})
	if err := heart.Take(&codec.Cut{Cut: 1, Time: 1000}, nil); err != nil {
		t.Fatal(err)
	}
	const skew = 10
	for _, c := range []struct {
		time    int64
		offset  int64
		twice   []stretch
		suspect bool
	}{
		{989, 5, nil, true}, {990, 5, nil, false}, {1000, 5, nil, false}, {989, 4, nil, false},
		{205, 5, []stretch{{100, 200}}, false}, {210, 5, []stretch{{100, 200}}, false},
		{211, 5, []stretch{{100, 200}}, true}, {95, 5, []stretch{{100, 200}}, false},
		{90, 5, []stretch{{100, 200}}, false}, {89, 5, []stretch{{100, 200}}, true},
		{150, 5, []stretch{{100, 200}}, false}, {300, 5, []stretch{{100, 200}, {290, 295}}, false},
	} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		l := newLegality(v, 2)
		l.skew, l.twice, l.was[0] = skew, c.twice, 5
		l.take(0, true, c.offset, c.time, heart, func(field string, want, got any) Difference {
			return Difference{Field: field}
		})
		v.settle()
		if got := v.report.Differences > 0; got != c.suspect {
			t.Errorf("%+v: suspected %v", c, got)
		}
	}
}

// TestTwice: where a log's clock goes back, the stretch that it runs through again is noted, and one that
// touches the last is one with it.
func TestTwice(t *testing.T) {
	l := newLegality(&verification{}, 2)
	for i, x := range []int64{100, 200, 150, 180, 250, 240, 400, 390} {
		l.pass(0, int64(i), x)
	}
	l.pass(0, 3, 1) // was passed
	want := []stretch{{150, 200}, {240, 250}, {390, 400}}
	if len(l.twice) != len(want) || l.told != 400 || l.skew != 0 {
		t.Fatalf("%v, told %d", l.twice, l.told)
	}
	for i := range want {
		if l.twice[i] != want[i] {
			t.Errorf("%v, want %v", l.twice, want)
		}
	}
}

// TestEpochGone: where retention has dropped the epoch meanwhile that recomputing was to begin at, the log is
// read to its end.
func TestEpochGone(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.use(0)
	w.rounds(3)
	v := &verification{Config: Config{Log: w.log}, topics: w.ts, partitions: 1, found: map[site]Difference{}}
	c, err := v.openCursor(w.ctx, w.ts.Feedback, 0)
	w.no(err)
	w.no((&decisionCheck{v: v, feedback: c}).beginEpoch(w.ctx, &startPoint{offset: 1 << 40}))
	if r, err := c.head(w.ctx); r != nil || err != nil {
		t.Errorf("left: %+v, %v", r, err)
	}
}

// TestEraAfterFeedback: the mark of an era tells of as much feedback as there is before it, if that is known.
func TestEraAfterFeedback(t *testing.T) {
	for _, c := range []struct {
		n, told int64
		ok      bool
	}{{-1, 5, true}, {0, 0, true}, {0, 1, false}, {3, 3, true}, {3, 4, false}, {3, 2, false}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.n, f.rejects = c.n, newOutcomeRejects(v, &logCursor{})
		f.opens(&stream.Record{Offset: 20}, &codec.FeedbackMark{N: c.told, Era: 1})
		if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "n" {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}
