package verify

import (
	"bytes"
	"context"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/latelosses"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestRejectCutOff: of a record too large for a reject the first bytes are kept, at least so many.
func TestRejectCutOff(t *testing.T) {
	record := bytes.Repeat([]byte("x"), codec.MaxRejectBytes+10)
	for kept, ok := range map[int]bool{codec.MaxRejectBytes: true, codec.MaxRejectBytes + 1: true,
		codec.MaxRejectBytes - 1: false, len(record) - 1: true, len(record): false} {
		for size, ok := range map[int]bool{len(record): ok, len(record) - 1: false, len(record) + 1: false, 1: false} {
			x := rejectIndex{seed: maphash.MakeSeed(), all: map[rejectKey]*rejectInfo{}}
			x.add(nil, rejectKey{}, &stream.Record{}, &codec.Reject{Bytes: record[:kept], Size: size})
			if field, _, _ := x.compare(x.find(rejectKey{}), &stream.Record{Value: record}); (field == "") != ok {
				t.Errorf("%d bytes kept of %d, said to be %d: %q", kept, len(record), size, field)
			}
		}
	}
}

// TestRejectsAgain: a reject of a context that is stored again says the same, or another reason, which is kept too.
func TestRejectsAgain(t *testing.T) {
	for field, change := range map[string]func(x *codec.Reject){
		"":   func(x *codec.Reject) { x.Reason = codec.ReasonDuplicateID },
		"id": func(x *codec.Reject) { x.ID = "b" }, "bytes": func(x *codec.Reject) { x.Bytes = nil },
	} {
		v := &verification{found: map[site]Difference{}}
		x := &rejectIndex{c: &logCursor{}, seed: maphash.MakeSeed(), all: map[rejectKey]*rejectInfo{}}
		was := codec.Reject{Reason: codec.ReasonMalformed, ID: "a", Bytes: []byte("x")}
		again := was
		change(&again)
		x.add(v, rejectKey{}, &stream.Record{Offset: 1}, &was)
		for range 2 {
			x.add(v, rejectKey{}, &stream.Record{Offset: 2}, &again)
		}
		if info := x.all[rejectKey{}]; info.reason != was.Reason || len(info.again) > 1 ||
			(len(info.again) == 1) != (again.Reason != was.Reason) {
			t.Errorf("%s: %+v", field, info)
		}
		if d := v.report.First; (d == nil) != (field == "") || d != nil && (d.Field != field || d.Offset != 2) {
			t.Errorf("%s: %+v", field, d)
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
		first              int64 // offset that is kept
		field              string
	}{{-1, -1, 9, 0, ""}, {-1, 0, 0, 0, ""}, {-1, 3, 0, 0, "from_cut"}, {-1, 1, 1, 0, "from"}, {-1, 9, 9, 0, "from"},
		{0, -1, 5, 0, "from"}, {0, 3, 5, 5, ""}, {4, 3, 5, 5, ""}, {5, 3, 5, 5, "from"},
		{20, 0, 0, 0, "from"}, {10, 0, 5, 0, ""}, {10, 1, 5, 0, "from_cut"}, {11, 0, 5, 0, "from"},
		{12, 1, 5, 0, "from"}} {
		v := &verification{found: map[site]Difference{}}
		// the oldest cut is 1
		f := &fateCheck{v: v, heart: loop.NewJoiner(1, codec.Limits{Heart: 1, Dedup: 20}, 1, nil),
			feedback: &logCursor{first: c.first}, marks: map[int64]markPlace{10: {0, 100, 1}, 12: {1, 100, 1}}}
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
	for i, x := range []int64{100, 200, 150, 180, 130, 250, 240, 400, 390} {
		l.pass(0, int64(i), x)
	}
	l.pass(0, 8, 1) // was passed
	l.restart(300)
	want := []stretch{{130, 200}, {240, 250}, {390, 400}}
	if len(l.twice) != len(want) || l.told != 400 || l.skew != 0 {
		t.Fatalf("%v, told %d", l.twice, l.told)
	}
	for i := range want {
		if l.twice[i] != want[i] {
			t.Errorf("%v, want %v", l.twice, want)
		}
	}
	if l.restart(500); l.told != 500 {
		t.Errorf("told %d", l.told)
	}
}

// TestCutOfDecisions: of the decisions that a cut takes the first alone must not be older than what earlier cuts came
// to, and none has learned what comes later. Marks and gaps have learned nothing.
func TestCutOfDecisions(t *testing.T) {
	heart := (&verification{}).newFates(nil, nil).history.Heart(codec.Limits{Heart: loop.Heart, Pending: 10, Dedup: 10})
	if err := heart.Take(&codec.Cut{Cut: 1, Time: 1000}, nil); err != nil {
		t.Fatal(err)
	}
	event := func(offset, time, n, learned, gap int64) loop.DecisionEvent {
		return loop.DecisionEvent{Offset: offset, Time: time, D: codec.Decision{N: n, LearnedThrough: learned},
			GapTo: gap}
	}
	for _, c := range []struct {
		events []loop.DecisionEvent
		field  string
	}{
		{[]loop.DecisionEvent{event(1, 1000, 1, 0, 0), event(2, 1001, 2, 0, 0)}, ""},
		{[]loop.DecisionEvent{event(1, 999, 1, 0, 0)}, "decisions[0]"},
		{[]loop.DecisionEvent{event(1, 1000, 1, 0, 0), event(2, 999, 2, 0, 0)}, ""},
		{[]loop.DecisionEvent{event(1, 1000, 1, 1, 0)}, "decisions.learned_through"},
		{[]loop.DecisionEvent{event(1, 1000, 0, 1, 0), event(2, 1000, 1, 1, 5)}, ""},
	} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		l := newLegality(v, 2)
		l.check(&logCursor{}, &stream.Record{}, &codec.Cut{Cut: 2, Time: 1000, Decisions: []codec.Range{{Next: 9}}},
			[]loop.Batch{{Decisions: c.events}}, heart)
		v.settle()
		if d := v.report.First; (d == nil) != (c.field == "") || d != nil && d.Field != c.field {
			t.Errorf("%+v: %+v", c, d)
		}
	}
	for first, want := range map[int64]string{999: "outcomes[0]", 1000: ""} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		l := newLegality(v, 2)
		l.check(&logCursor{}, &stream.Record{}, &codec.Cut{Cut: 2, Time: 1000, Outcomes: []codec.Range{{Next: 9}}},
			[]loop.Batch{{Outcomes: []loop.OutcomeEvent{{Offset: 1, Time: first}, {Offset: 2, Time: 1000}}}}, heart)
		v.settle()
		if d := v.report.First; (d == nil) != (want == "") || d != nil && d.Field != want {
			t.Errorf("an outcome of %d: %+v", first, d)
		}
	}
}

// TestStart: recomputing begins where all later feedback is kept: at the first epoch that needs nothing older, or at
// the oldest snapshot if that is earlier; without any feedback at the last.
func TestStart(t *testing.T) {
	third := startPoint{epoch: 3, through: 20}
	continued := startPoint{epoch: 3, through: 20, goesOn: true}
	warm := func(from int64) startPoint { return startPoint{epoch: 4, through: 30, warm: from} }
	at := func(through, epoch int64) place { return place{0, through, epoch} }
	for name, c := range map[string]struct {
		starts                []startPoint
		snapshots             []place
		firstN, lastN, marked int64
		epoch, snapshot       int64 // of the start; feedback that the snapshot learned
	}{
		"the whole log":             {[]startPoint{{epoch: 1}, third}, []place{at(0, 1)}, 1, 40, 0, 1, 0},
		"an epoch":                  {[]startPoint{third}, []place{at(30, 3)}, 21, 40, 0, 3, 0},
		"an epoch, later":           {[]startPoint{third}, []place{at(21, 3)}, 1, 40, 0, 3, 0},
		"no feedback is kept":       {[]startPoint{third}, nil, 0, 0, 0, 3, 0},
		"an older snapshot":         {[]startPoint{third}, []place{at(20, 2), at(25, 3)}, 21, 40, 0, 0, 20},
		"one that is too old":       {[]startPoint{third}, []place{at(19, 2)}, 21, 40, 0, 3, 0},
		"the next epoch is gone":    {[]startPoint{third}, []place{at(20, 1)}, 21, 40, 0, 3, 0},
		"the epoch goes on":         {[]startPoint{continued}, nil, 21, 40, 0, 0, 0},
		"of it a snapshot":          {[]startPoint{continued}, []place{at(25, 3), at(30, 3)}, 21, 40, 0, 0, 25},
		"the last feedback's":       {nil, []place{at(40, 3)}, 21, 40, 0, 0, 40},
		"one of what is not read":   {nil, []place{at(41, 3)}, 21, 40, 0, 0, 0},
		"the last":                  {nil, []place{at(5, 1), at(9, 1)}, 0, 0, 0, 0, 9},
		"a mark tells of a later":   {nil, []place{at(5, 1)}, 0, 0, 2, 0, 0},
		"a mark tells of the same":  {nil, []place{at(5, 2)}, 0, 0, 2, 0, 5},
		"and goes on with it":       {[]startPoint{continued}, []place{at(25, 3)}, 21, 40, 4, 0, 0},
		"what it began with":        {[]startPoint{third, warm(21)}, nil, 21, 40, 0, 3, 0},
		"from the first feedback":   {nil, []place{at(5, 1), at(9, 1)}, 1, 40, 0, 0, 5},
		"which is gone":             {[]startPoint{third, warm(20)}, nil, 21, 40, 0, 0, 0},
		"the first epoch's":         {[]startPoint{{epoch: 1}}, []place{at(0, 1)}, 1, 40, 0, 1, 0},
		"which is gone, all of it":  {[]startPoint{{epoch: 4, through: 30, warm: 1}}, nil, 0, 0, 0, 0, 0},
		"which is gone: a snapshot": {[]startPoint{third, warm(20)}, []place{at(25, 3), at(30, 4)}, 21, 40, 0, 0, 30},
	} {
		v := &verification{}
		for _, p := range c.snapshots {
			v.snapshots = append(v.snapshots, &snapshotInfo{place: p})
		}
		m := modelReader{v: v, starts: c.starts, firstN: c.firstN, lastN: c.lastN, marked: c.marked}
		from, snap := m.start()
		var epoch, through int64
		if from != nil {
			epoch = from.epoch
		}
		if snap != nil {
			through = snap.through
		}
		if epoch != c.epoch || through != c.snapshot {
			t.Errorf("%s: epoch %d, snapshot %d", name, epoch, through)
		}
	}
}

// TestBegun: the epoch in which a decider had learned so much is the last that begins no later. Of a log that has lost
// its beginning it may be any before the first that is kept.
func TestBegun(t *testing.T) {
	starts := []startPoint{{epoch: 3, through: 20}, {epoch: 4, through: 30}}
	for _, c := range []struct {
		starts        []startPoint
		ahead         bool
		through, want int64
	}{{starts, false, 19, 2}, {starts, false, 20, 3}, {starts, true, 29, 3}, {starts, true, 30, 4}, {nil, false, 5, 0},
		{nil, true, 5, math.MaxInt64}} {
		if got := (&modelReader{starts: c.starts, ahead: c.ahead}).begun(c.through); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestForgot: the ids that a mark remembers are known if the log keeps the feedback from there on.
func TestForgot(t *testing.T) {
	for _, c := range []struct {
		cut, n, remembers, from, first int64
		want                           bool
	}{{9, 30, 20, 0, 21, true}, {9, 30, 20, 0, 20, false}, {1, 30, 20, 0, 21, false}, {9, 20, 20, 0, 0, true},
		{9, 19, 20, 0, 0, false}, {9, 30, 20, 1, 2, true}, {9, 30, 20, 10, 11, true}, {9, 30, 20, 10, 10, false}} {
		f := &fateCheck{feedback: &logCursor{first: c.cut}, first: c.first,
			marks: map[int64]markPlace{5: {0, 0, c.from}}}
		if got := f.forgot(&codec.FeedbackMark{N: c.n, Remembers: c.remembers, From: 5}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// firstKept is a log that keeps partitions from an offset on.
type firstKept struct {
	stream.Log
	of map[stream.Place]int64
}

func (l firstKept) Bounds(_ context.Context, topic string, partition int) (first, next int64, err error) {
	return l.of[stream.Place{Topic: topic, Partition: partition}], 100, nil
}

// Read says that retention has dropped what is read.
func (l firstKept) Read(context.Context, string, int, int64) (stream.Reader, error) {
	return nil, stream.ErrTruncated
}

// TestGone: retention may have dropped what a mark goes back to, in each partition of decisions and outcomes and in the
// feedback: of the logs' beginning anything, and of the mark itself what lies behind its positions.
func TestGone(t *testing.T) {
	begins := codec.FeedbackMark{From: -1, FromCut: -1, Memory: -1}
	itself := codec.FeedbackMark{From: -1, FromCut: 5, Memory: 4,
		Positions: []codec.Position{{Decisions: 6, Outcomes: 7}, {Decisions: 8, Outcomes: 9}}}
	before := codec.FeedbackMark{From: 4, Memory: 4}
	for _, c := range []struct {
		m         codec.FeedbackMark
		topic     string
		partition int
		first     int64
		want      bool
	}{
		{begins, "d", 0, 3, true}, {begins, "d", 1, 3, true}, {begins, "o", 0, 3, true}, {begins, "o", 1, 3, true},
		{begins, "o", 1, 2, false}, {begins, "f", 0, 2, true}, {begins, "f", 0, 1, false},
		{itself, "d", 0, 7, true}, {itself, "d", 1, 9, true}, {itself, "o", 0, 8, true}, {itself, "o", 1, 10, true},
		{itself, "d", 0, 6, false}, {itself, "d", 1, 8, false}, {itself, "o", 0, 7, false}, {itself, "o", 1, 9, false},
		{itself, "f", 0, 5, true}, {itself, "f", 0, 4, false}, {before, "f", 0, 4, true}, {before, "f", 0, 1, false},
	} {
		log := firstKept{of: map[stream.Place]int64{{Topic: c.topic, Partition: c.partition}: c.first}}
		v := &verification{Config: Config{Log: log}, partitions: 2, topics: join.Topics{Decisions: "d", Outcomes: "o"}}
		feedback := &logCursor{first: log.of[stream.Place{Topic: "f"}]}
		if got := v.newFates(feedback, nil).gone(t.Context(), &c.m); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestLostTails: the mark of an era names inputs, or rejects, and the cut that it stands behind.
func TestLostTails(t *testing.T) {
	reject, other := codec.LostTail{Topic: "rejects", Offset: 5}, codec.LostTail{Topic: "contexts"}
	for _, c := range []struct {
		known, cut int64
		tails      []codec.LostTail
		fields     string
	}{{3, 3, []codec.LostTail{reject}, ""}, {3, 4, []codec.LostTail{reject}, "cut"},
		{0, 4, []codec.LostTail{reject}, ""}, {1, 4, []codec.LostTail{reject}, "cut"},
		{3, 3, []codec.LostTail{reject, other}, "lost"}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, &logCursor{})
		f.cut, f.rejects.own, f.rejects.last = c.known, 9, 4
		f.opens(&stream.Record{}, &codec.FeedbackMark{Cut: c.cut, Era: 1, LostTails: c.tails})
		if d := v.report.First; (d == nil) != (c.fields == "") || d != nil && d.Field != c.fields {
			t.Errorf("%+v: %+v", c, d)
		}
		if x := f.rejects; !slices.Equal(x.tails, []int64{5}) || x.own != 5 || x.last != 4 ||
			x.again != (len(c.tails) > 1) {
			t.Errorf("%+v: %+v", c, x)
		}
	}
}

// TestErasFollow: the mark of an era has a later one than those before it, and those, and its own.
func TestErasFollow(t *testing.T) {
	start := func(eras ...int64) (all []codec.EraStart) {
		for _, era := range eras {
			all = append(all, codec.EraStart{Era: era, N: era * 10})
		}
		return all
	}
	for _, c := range []struct {
		begun bool
		era   int64
		eras  []codec.EraStart
		ok    bool
	}{{true, 3, start(1, 2, 3), true}, {true, 3, start(1, 3), false}, {true, 2, start(1, 2, 2), false},
		{true, 1, start(1, 2, 1), false}, {false, 1, start(1), true}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.begun, f.mark.Era, f.mark.Eras = c.begun, 2, start(1, 2)
		f.opens(&stream.Record{}, &codec.FeedbackMark{Era: c.era, Eras: c.eras, N: c.era * 10, Cut: 7})
		if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "eras" || !f.rejects.exempt(
			&codec.Reject{Era: c.era - 1, Cut: 8}) {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestTakenAgain: what an era says of inputs that have lost their tails is known of each, whatever else it names.
func TestTakenAgain(t *testing.T) {
	v := &verification{found: map[site]Difference{}, partitions: 2}
	f := v.newFates(&logCursor{}, nil)
	l := &f.legal
	for i := range l.was {
		l.was[i], l.seen[i] = 5, 9
	}
	f.opens(&stream.Record{}, &codec.FeedbackMark{LostTails: []codec.LostTail{{Topic: "rejects", Offset: 1, Was: 8},
		{Topic: "decisions", Partition: 1, Offset: 3, Was: 7}, {Topic: "outcomes", Offset: 10, Was: 4}}})
	if !slices.Equal(l.was, []int64{5, 7, 5, 5}) || !slices.Equal(l.seen, []int64{9, 3, 9, 9, 0}) {
		t.Errorf("taken before %v, passed %v", l.was, l.seen)
	}
}

// logOf returns a log of one topic that holds records, and gives one at a time.
func logOf(t *testing.T, topic string, records []stream.Record) *mem.Log {
	t.Helper()
	log := mem.New(mem.Options{MaxBatch: 1})
	if err := log.Create(t.Context(), topic, 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := log.Writer(t.Context(), topic, 0, nil)
	for i := range records {
		if err == nil {
			_, err = w.Append(t.Context(), &records[i])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestReadRejects: rejects are read with their times. Those of contexts, and of partitions that are not the model's,
// are looked up by their records; of the others the late ones tell of losses.
func TestReadRejects(t *testing.T) {
	ts := join.TopicsOf(worldName)
	reject := func(topic string, partition int, reason string) []byte {
		return codec.AppendReject(nil, &codec.Reject{Topic: topic, Partition: partition, Offset: 7, Time: 70,
			Reason: reason, Bytes: []byte(`{"id":"","loss":1}`)})
	}
	log := logOf(t, ts.Rejects, []stream.Record{{Value: reject(contextsTopic, 0, codec.ReasonMalformed)},
		{Type: codec.TypeMark}, {Value: reject(outcomesTopic, 0, codec.ReasonLate)},
		{Value: reject(outcomesTopic, 0, codec.ReasonOrphan)}, {Value: reject(outcomesTopic, 1, codec.ReasonLate)},
		{Value: []byte("{")}})
	v := &verification{Config: Config{Log: log}, topics: ts, found: map[site]Difference{}, partitions: 1,
		late: latelosses.Outcomes{}}
	if err := v.readRejects(t.Context()); err != nil {
		t.Fatal(err)
	}
	var times []int64
	if err := stream.Scan(t.Context(), log, ts.Rejects, 0, 0, 100, func(r *stream.Record) error {
		times = append(times, r.Time)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	x := v.rejects
	if v.report.Rejects != (Tally{Records: 5}) || !slices.Equal(x.times, times) || len(v.late) != 1 ||
		len(x.all) != 2 || x.find(rejectKey{false, 0, 7, 70}) == nil || x.find(rejectKey{true, 1, 7, 70}) == nil {
		t.Errorf("%+v, times %v, %d late, %+v", v.report.Rejects, x.times, len(v.late), x.all)
	}
	fields := map[string]int64{}
	for at, d := range v.found {
		fields[at.field] = d.Round
	}
	if !maps.Equal(fields, map[string]int64{"type": 0, "bytes": 0}) {
		t.Errorf("%+v", v.found)
	}
}

// TestChecksOfRejects: of each reject the topic, the partition, the reason and the key are checked.
func TestChecksOfRejects(t *testing.T) {
	for _, c := range []struct {
		topic     string
		partition int
		reason    string
		key       string
		field     string
	}{{contextsTopic, 0, codec.ReasonMalformed, "", ""}, {outcomesTopic, 1, codec.ReasonMismatch, "a", ""},
		{"decisions", 0, codec.ReasonLate, "", "topic"}, {contextsTopic, -1, codec.ReasonLate, "", "partition"},
		{outcomesTopic, 0, "mood", "a", "reason"}, {outcomesTopic, 0, codec.ReasonLate, "", "key"},
		{contextsTopic, 0, codec.ReasonLate, "a", "key"}} {
		v := &verification{found: map[site]Difference{}, rejects: &rejectIndex{c: &logCursor{}}}
		v.checkReject(&stream.Record{Key: []byte(c.key)},
			&codec.Reject{Topic: c.topic, Partition: c.partition, Reason: c.reason, ID: "a"})
		if d := v.report.First; (d == nil) != (c.field == "") || d != nil && d.Field != c.field {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestTurns: a copy's decision is the first that waits, if its rules have it wait; those before it had their feedback.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		rules *loop.Rules
		i     int
		turn  int64
		left  string
	}{{nil, 1, 2, "1 3"}, {nil, 0, 1, "2 3"}, {&loop.Rules{Arrival: true}, 2, 3, "1 2"}, {&loop.Rules{}, 0, 1, "2 3"},
		{&loop.Rules{}, 1, 1, "3"}, {&loop.Rules{Early: true}, 2, 3, "1 2"}} {
		l := copyLane{waiting: []copied{{n: 1}, {n: 2}, {n: 3}}}
		turn := l.done(c.i, c.rules, &codec.Decision{N: int64(c.i) + 1})
		left := ""
		for _, w := range l.waiting {
			left += " " + i64(w.n)
		}
		if turn != c.turn || left != " "+c.left {
			t.Errorf("%+v: turn %d, left%s", c, turn, left)
		}
	}
}

// TestCopiedDecisions: decisions are read up to a round; of gaps only marks of decisions tell, and of those that lie in
// one no copy is missed.
func TestCopiedDecisions(t *testing.T) {
	decision := func(n int64) []byte {
		return codec.AppendDecision(nil, &codec.Decision{N: n, ID: "a", Epoch: 1, Source: loop.RequestSource,
			Context: []byte("{}"), Actions: []string{"a"}, Propensities: []float64{1}})
	}
	gap := func(m codec.DecisionMark) []byte { return codec.AppendDecisionMark(nil, &m) }
	log := logOf(t, "d", []stream.Record{
		{Type: codec.TypeMark, Value: gap(codec.DecisionMark{N: 2, GapFrom: 1, GapTo: 2})},
		{Type: codec.TypeMark, Value: gap(codec.DecisionMark{N: 3})}, {Value: decision(4)}, {Value: []byte("{}")},
		{Type: "of others", Value: decision(5)},
		{Type: "of others", Value: gap(codec.DecisionMark{N: 99, GapFrom: 5, GapTo: 99})},
		{Type: codec.TypeMark, Value: []byte("{}")}, {Value: decision(5)},
		{Type: codec.TypeMark, Value: gap(codec.DecisionMark{N: 7, GapFrom: 6, GapTo: 7})}, {Value: decision(8)}})
	v := &verification{Config: Config{Log: log}}
	k := copyCheck{f: &fateCheck{v: v, feedback: &logCursor{}, rules: func(int64) *loop.Rules { return nil }},
		lanes: make([]copyLane, 1)}
	l := &k.lanes[0]
	var err error
	if l.c, err = v.openCursor(t.Context(), "d", 0); err != nil {
		t.Fatal(err)
	}
	defer k.close()
	for _, c := range []struct{ round, next, waiting int64 }{{3, 5, 1}, {4, 5, 1}, {5, 6, 2}, {6, 8, 2}, {7, 8, 2},
		{8, 9, 3}, {9, 9, 3}} {
		err := l.read(t.Context(), new(codec.Decision), c.round)
		if err != nil || l.first != 4 || l.next != c.next || int64(len(l.waiting)) != c.waiting {
			t.Errorf("%+v: %v, first %d, next %d, %d wait", c, err, l.first, l.next, len(l.waiting))
		}
	}
	for round, want := range map[int64]string{0: "round", 1: "", 2: "", 3: "round", 6: "", 7: "", 9: "round"} {
		got := ""
		err := k.check(t.Context(), &stream.Record{}, &codec.Feedback{Round: round},
			func(field string, _, _ any) { got += field })
		if err != nil || got != want {
			t.Errorf("round %d: %q, %v", round, got, err)
		}
	}
	l.waiting, k.f.feedback.first = nil, 9 // all have their feedback; that of older ones may be gone
	for round, want := range map[int64]string{3: "", 4: "round", 5: "round"} {
		got := ""
		err := k.check(t.Context(), &stream.Record{}, &codec.Feedback{Round: round},
			func(field string, _, _ any) { got += field })
		if err != nil || got != want {
			t.Errorf("round %d again: %q, %v", round, got, err)
		}
	}
}

// TestCopyOfNoPartition: feedback before the first mark that can be restored is of one of the model's partitions.
func TestCopyOfNoPartition(t *testing.T) {
	for partition, want := range map[int]string{-1: "partition", 0: "round", 1: "round", 2: "partition"} {
		k := copyCheck{f: &fateCheck{feedback: &logCursor{}}, lanes: make([]copyLane, 2)}
		got := ""
		err := k.check(t.Context(), &stream.Record{}, &codec.Feedback{Partition: partition, Round: -1},
			func(field string, _, _ any) { got += field })
		if err != nil || got != want {
			t.Errorf("partition %d: %q, %v", partition, got, err)
		}
	}
}

// TestMarkWithoutCuts: a mark of a joiner that logs no cuts may stand before those of one that does, and not behind.
func TestMarkWithoutCuts(t *testing.T) {
	for begun, want := range map[bool]int64{false: 0, true: 1} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		f := v.newFates(&logCursor{}, nil)
		f.begun = begun
		r := stream.Record{Type: codec.TypeMark, Offset: 7,
			Value: codec.AppendFeedbackMark(nil, &codec.FeedbackMark{N: 3})}
		if err := f.takeMark(t.Context(), &r); err != nil || v.report.Differences != want ||
			v.report.Marks != (Tally{Records: 1, TooOld: 1}) || f.marks[7] != (markPlace{-1, 3, 0}) {
			t.Errorf("behind cuts %v: %v, %+v, %v", begun, err, v.report, f.marks)
		}
	}
}

// TestMarkOfPartitions: a mark has a position of each partition; another is a difference, and is not restored.
func TestMarkOfPartitions(t *testing.T) {
	v := &verification{found: map[site]Difference{}, partitions: 2}
	f := v.newFates(&logCursor{}, nil)
	m := codec.FeedbackMark{From: -1, FromCut: -1, Memory: -1, Limits: codec.Limits{Heart: 1},
		Positions: make([]codec.Position, 1)}
	r := stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, &m)}
	if err := f.takeMark(t.Context(), &r); err != nil || v.report.Differences != 1 ||
		v.report.First.Field != "positions" || v.report.First.Want != "2" || v.report.First.Got != "1" || f.begun {
		t.Errorf("%v, %+v", err, v.report.First)
	}
	v.report = Report{}
	if err := f.takeMark(t.Context(), &stream.Record{Type: codec.TypeMark, Value: []byte("{")}); err != nil ||
		v.report.Differences != 1 || v.report.First.Field != "bytes" || v.report.First.Round != 0 {
		t.Errorf("%v, %+v", err, v.report.First)
	}
}

// TestRejectsOfMarks: before a mark stand the rejects of its cut and of those before it, and none of a later cut.
func TestRejectsOfMarks(t *testing.T) {
	var rejects []codec.Reject
	var stored []stream.Record
	for i := range int64(3) { // of cuts 1, 2 and 3
		x := codec.Reject{Topic: outcomesTopic, Offset: i, Cut: i + 1, Reason: codec.ReasonLate, Bytes: []byte("{}")}
		rejects, stored = append(rejects, x), append(stored, stream.Record{Value: codec.AppendReject(nil, &x)})
	}
	log := logOf(t, "r", stored)
	var offsets []int64
	if err := stream.Scan(t.Context(), log, "r", 0, 0, 100, func(r *stream.Record) error {
		offsets = append(offsets, r.Offset)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cut, says int64
		more      int64 // of this cut a reject is not stored; 0: all are
		first     int64 // offset of the rejects that are kept
		want      int64
		tooOld    int64
	}{{2, offsets[2], 0, 0, 0, 0}, {2, offsets[1] + 1, 0, 0, 0, 0}, {2, offsets[2] + 1, 0, 0, 1, 0},
		{2, offsets[1], 0, 0, 1, 0}, {3, offsets[2] + 1, 0, 0, 0, 0}, {3, offsets[2], 0, 0, 1, 0},
		{3, offsets[2] + 2, 0, 0, 1, 0}, {2, offsets[2], 1, 0, 1, 0}, {2, offsets[2], 1, 2, 0, 1},
		{2, offsets[2], 2, 2, 1, 0}, {0, offsets[0], 1, 2, 0, 1}} {
		v := &verification{Config: Config{Log: log}, found: map[site]Difference{}, partitions: 1,
			rejects: &rejectIndex{}}
		cursor, err := v.openCursor(t.Context(), "r", 0)
		if err != nil {
			t.Fatal(err)
		}
		x := newOutcomeRejects(v, cursor)
		cursor.first = c.first
		x.resume(0)
		x.expect(rejects[:c.cut])
		if c.more > 0 {
			x.expect([]codec.Reject{{Topic: outcomesTopic, Offset: 9, Cut: c.more, Reason: codec.ReasonLate}})
		}
		m := codec.FeedbackMark{Cut: c.cut, Rejects: c.says}
		err = x.mark(t.Context(), &logCursor{topic: "f"}, &stream.Record{}, &m, true)
		v.settle()
		if d := v.report.First; err != nil || v.report.Differences != c.want ||
			v.report.Rejects != (Tally{Checked: c.cut, TooOld: c.tooOld}) ||
			d != nil && (d.Field != "rejects" || d.Topic != "f" || d.Round != 0) || x.last != c.says {
			t.Errorf("%+v: %v, %+v, %+v", c, err, v.report.Rejects, d)
		}
		cursor.close()
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

// TestEraAfterFeedback: the mark of an era, and the record of an epoch, tell of as much feedback as there is before
// them, if that is known.
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
		v.report = Report{}
		f.begin(&stream.Record{Value: codec.AppendEpoch(nil, &codec.Epoch{Epoch: 1, Through: c.told})})
		if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "through" {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestMarksOfLosses: a decider's mark is kept if it says that anything was lost, and a time of loss is noted but for
// rejects.
func TestMarksOfLosses(t *testing.T) {
	for _, c := range []struct {
		mark         codec.DecisionMark
		kept, losses int
	}{
		{codec.DecisionMark{}, 0, 0},
		{codec.DecisionMark{ContextsLost: 1}, 1, 1},
		{codec.DecisionMark{LearnedLost: 1}, 1, 1},
		{codec.DecisionMark{ContextsLost: 1, LearnedLost: 5}, 1, 1},
		{codec.DecisionMark{GapFrom: 1, GapTo: 1, N: 1}, 1, 1},
		{codec.DecisionMark{LearnedLost: 1, GapFrom: 1, GapTo: 1, N: 1}, 1, 1},
		{codec.DecisionMark{RejectsTo: 1}, 1, 0},
		{codec.DecisionMark{LearnedLost: 2, RejectsTo: 1}, 1, 1}, {codec.DecisionMark{Rejects: 1}, 0, 0},
	} {
		v := &verification{found: map[site]Difference{}}
		l := &decisionLane{v: v, decisions: &logCursor{}, contexts: &logCursor{}, next: 1, passed: 9}
		r := stream.Record{Type: codec.TypeMark, Value: codec.AppendDecisionMark(nil, &c.mark)}
		if err := l.mark(t.Context(), &r); err != nil || len(l.lost) != c.kept || len(v.losses.all) != c.losses ||
			v.report.First != nil || (l.passed == 0) != (c.mark.ContextsLost > 0) ||
			l.refuses != (c.mark.Rejects > 0) {
			t.Errorf("%+v: %d kept, %d losses, %v, %+v", c.mark, len(l.lost), len(v.losses.all), err, v.report.First)
		}
	}
}

// TestLostDecisions: of a decision whose era ended in what is lost the rules are not known, though an epoch has its
// number; its draw is checked, but that of a repeat.
func TestLostDecisions(t *testing.T) {
	for _, c := range []struct {
		first codec.RoundRef
		other bool // another action was drawn
		raw   string
		field string
	}{{codec.RoundRef{}, false, "{}", ""}, {codec.RoundRef{}, true, "{}", "action"},
		{codec.RoundRef{N: 1}, true, "{}", ""},
		{codec.RoundRef{}, false, "[]", "context"}} {
		v := &verification{found: map[site]Difference{}, models: modelReader{epochs: map[int64]*epochInfo{1: {}}}}
		l := &decisionLane{v: v, decisions: &logCursor{}, rec: &stream.Record{}, raw: []byte(c.raw),
			head: codec.Decision{N: 5, ID: "x", Epoch: 1, Source: 1, ContextsThrough: 2, Context: []byte("{}"),
				Actions: []string{"a", "b"}, Propensities: []float64{.5, .5}, Gamma: 1, First: c.first}}
		if c.first.N > 0 {
			l.head.Unit = "u"
		}
		if l.head.Action = v.draw(l, l.head.Propensities); c.other {
			l.head.Action = 1 - l.head.Action
		}
		if err := (&decisionCheck{v: v}).old(l, loop.Source{}, "", true); err != nil {
			t.Fatal(err)
		}
		for _, x := range v.suspects {
			v.differ(x.Difference)
		}
		if d := v.report.First; (d == nil) != (c.field == "") || d != nil && d.Field != c.field ||
			v.report.Old != (OldDecisions{Drawn: 1}) {
			t.Errorf("%+v: %+v, %+v", c, v.report.Old, d)
		}
	}
}

// TestLearnedOfRepeats: of a repeat the learner tells how much it had learned, and nothing of the draw.
func TestLearnedOfRepeats(t *testing.T) {
	for first, gamma := range map[int64]float64{0: 7, 1: 0, 2: 0} {
		l := &decisionLane{head: codec.Decision{Gamma: 7, LearnedThrough: 3}}
		l.want.First.N = first
		if l.learned(&loop.Rules{}); l.want.Gamma != gamma || l.want.LearnedThrough != 3 {
			t.Errorf("of a repeat of %d: %+v", first, l.want)
		}
	}
}

// TestLearnedOfGuards: only a guard that holds back what may be lost turns a live decision into one of its shadow.
func TestLearnedOfGuards(t *testing.T) {
	for _, c := range []struct {
		rules loop.Rules
		lose  float64
		want  codec.Mode
	}{{loop.Rules{Mode: codec.Live}, 0, codec.Live}, {loop.Rules{Mode: codec.Live}, .1, codec.Shadow},
		{loop.Rules{Mode: codec.Shadow}, .1, codec.Live}} {
		l := &decisionLane{head: codec.Decision{Mode: codec.Shadow}}
		c.rules.Guard.LoseAtMost = c.lose
		if l.learned(&c.rules); l.want.Mode != c.want {
			t.Errorf("%+v: %v", c, l.want.Mode)
		}
	}
}
