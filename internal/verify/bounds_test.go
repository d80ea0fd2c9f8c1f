package verify

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"testing"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/recent"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
)

// TestLossParts: a loss lies between two records if its mark does not stand before the first, and the data before its
// mark not behind the second. It may have taken a reject that was stored no later than the record of that time.
func TestLossParts(t *testing.T) {
	l := losses{all: []loss{{since: 10, time: 20, rejects: 8}}}
	for _, c := range []struct {
		from, to int64
		want     bool
	}{{20, 10, true}, {21, 10, false}, {20, 9, false}, {0, 100, true}, {0, 9, false}, {21, 100, false}} {
		if l.parts(c.from, c.to) != c.want {
			t.Errorf("%+v", c)
		}
	}
	for passed, want := range map[int64]bool{7: false, 8: true, 20: true, 21: false} {
		if l.rejects(passed) != want {
			t.Errorf("a record at %d: %v", passed, !want)
		}
	}
}

// TestExemptRejects: nobody knows what rejects should be of cuts that were not replayed, or that an era made void.
func TestExemptRejects(t *testing.T) {
	x := newOutcomeRejects(nil, nil)
	x.void(1, 5)
	x.gap(9)
	x.resume(12)
	for _, c := range []struct {
		era, cut int64
		want     bool
	}{{0, 5, false}, {0, 6, true}, {1, 6, false}, {2, 6, false}, {1, 9, false}, {1, 10, true}, {1, 12, true},
		{1, 13, false}} {
		if x.exempt(&codec.Reject{Era: c.era, Cut: c.cut}) != c.want {
			t.Errorf("%+v", c)
		}
	}
	x.gap(20)
	if x.exempt(&codec.Reject{Era: 1, Cut: 20}) || !x.exempt(&codec.Reject{Era: 1, Cut: 21}) {
		t.Error("of a gap that has begun")
	}
}

// TestDroppedRejects: a reject may be gone if its record is no younger than the oldest reject of a log that has lost
// its beginning.
func TestDroppedRejects(t *testing.T) {
	for _, c := range []struct {
		first int64
		times []int64
		time  int64
		want  bool
	}{{2, []int64{5, 7}, 5, true}, {2, []int64{5, 7}, 6, false}, {2, nil, 6, true}, {1, []int64{5, 7}, 5, false}} {
		x := rejectIndex{c: &logCursor{first: c.first}, times: c.times}
		if x.dropped(c.time) != c.want {
			t.Errorf("%+v", c)
		}
	}
	x := rejectIndex{times: []int64{5, 3, 9}}
	for before, want := range map[int64]int64{3: 0, 4: 3, 6: 5, 9: 5, 10: 9} {
		if got := x.lastBefore(before); got != want {
			t.Errorf("the last before %d: %d", before, got)
		}
	}
}

// TestLostBehind: a mark excuses what it says is lost, to the record, and only what stands before it.
func TestLostBehind(t *testing.T) {
	mark := codec.DecisionMark{ContextsThrough: 3, ContextsLost: 6, LearnedThrough: 10, LearnedLost: 12,
		RejectsFrom: 20, RejectsTo: 22}
	for _, c := range []struct {
		context, learned int64
		excused          bool
	}{{2, 0, false}, {3, 0, true}, {5, 0, true}, {6, 0, false}, {-1, 10, false}, {-1, 11, true}, {-1, 12, true},
		{-1, 13, false}} {
		for _, behind := range []bool{false, true} {
			v := &verification{found: map[site]Difference{}, rejects: &rejectIndex{}}
			l := decisionLane{v: v}
			if !behind {
				l.lost = append(l.lost, mark)
			}
			l.suspect(Difference{}, nil, c.context, c.learned, func() bool { return false })
			if behind {
				l.lost = append(l.lost, mark)
			}
			v.settle()
			if (v.report.Differences == 0) != (c.excused && behind) {
				t.Errorf("%+v, the mark behind it: %v", c, behind)
			}
		}
	}
	l := decisionLane{lost: []codec.DecisionMark{mark}}
	for offset, want := range map[int64]bool{19: false, 20: true, 21: true, 22: false} {
		if l.lostReject(offset, 0) != want || l.lostReject(offset, 1) {
			t.Errorf("the reject of context %d", offset)
		}
	}
	for head, want := range map[int64]bool{11: true, 12: false} {
		if l.head.LearnedThrough = head; l.relearns(100) != want || l.relearns(head) {
			t.Errorf("feedback %d was learned again", head)
		}
	}
}

// TestNumbersOfMarks: a mark has the number of the last decision; records that could not be read may be decisions.
func TestNumbersOfMarks(t *testing.T) {
	for _, c := range []struct {
		next, unread     int64
		mark             codec.DecisionMark
		field            string
		then, thenUnread int64
	}{
		{0, 0, codec.DecisionMark{N: 7}, "", 8, 0}, {8, 0, codec.DecisionMark{N: 7}, "", 8, 0},
		{8, 0, codec.DecisionMark{N: 8}, "n", 8, 0}, {8, 0, codec.DecisionMark{N: 6}, "n", 8, 0},
		{8, 3, codec.DecisionMark{N: 9}, "", 10, 1}, {8, 3, codec.DecisionMark{N: 10}, "", 11, 0},
		{8, 3, codec.DecisionMark{N: 11}, "n", 8, 3},
		{8, 0, codec.DecisionMark{N: 9, GapFrom: 8, GapTo: 9}, "", 10, 0},
		{8, 0, codec.DecisionMark{N: 9, GapFrom: 7, GapTo: 9}, "gap_from", 10, 0},
		{8, 1, codec.DecisionMark{N: 9, GapFrom: 9, GapTo: 9}, "", 10, 0},
		{8, 0, codec.DecisionMark{N: 7, GapFrom: 8, GapTo: 7}, "gap_from", 8, 0},
	} {
		v := &verification{found: map[site]Difference{}}
		l := decisionLane{v: v, decisions: &logCursor{}, next: c.next, unread: c.unread}
		l.number(&stream.Record{}, &c.mark)
		field := ""
		if d := v.report.First; d != nil {
			field = d.Field
		}
		if field != c.field || l.next != c.then || l.unread != c.thenUnread {
			t.Errorf("%+v: %q, next %d, %d unread", c, field, l.next, l.unread)
		}
	}
}

// TestLearnedOfMarks: a mark of decisions says no more feedback than the log has, unless none can be read or
// retention has dropped all, or an era has made it void.
func TestLearnedOfMarks(t *testing.T) {
	for _, c := range []struct {
		first, firstN, last, through, era int64
		ok                                bool
	}{{1, 1, 10, 10, 0, true}, {1, 1, 10, 11, 0, false}, {1, 0, 0, 11, 0, true}, {1, 1, 10, 11, 1, true},
		{9, 0, 10, 11, 0, true}, {9, 3, 10, 11, 0, false}, {1, 0, 10, 11, 0, false}} {
		v := &verification{found: map[site]Difference{}, rejects: &rejectIndex{}, partitions: 1}
		v.models.firstN, v.models.lastN = c.firstN, c.last
		d := &decisionCheck{v: v, audit: follow.New(nil, "m", nil, 1), feedback: &logCursor{first: c.first}}
		if c.era > 0 {
			d.eras.Eras = []codec.EraStart{{Era: c.era, N: c.last}}
		}
		l := decisionLane{v: v, check: d, decisions: &logCursor{}}
		l.checkLearned(&stream.Record{}, &codec.DecisionMark{LearnedThrough: c.through})
		if v.settle(); (v.report.Differences == 0) != c.ok || l.at.through != c.through {
			t.Errorf("%+v: %+v, then %v", c, v.report.First, l.at)
		}
		// what a decision had learned is gone if it is more than what a snapshot or the beginning knows
		d.from.through = 10
		if gone := c.first == 9 && c.firstN == 0; d.hungry(place{through: 10}) || d.hungry(place{through: 11}) != gone {
			t.Errorf("%+v: what is gone", c)
		}
	}
}

// TestLearnedAgain: a mark has learned no less than what stands before it, unless it says that this is lost.
func TestLearnedAgain(t *testing.T) {
	for _, c := range []struct {
		at, lost int64
		ok       bool
	}{{9, 0, true}, {10, 0, true}, {11, 0, false}, {11, 1, true}, {11, 20, true}} {
		v := &verification{found: map[site]Difference{}, partitions: 1}
		l := decisionLane{v: v, check: &decisionCheck{v: v}, decisions: &logCursor{}, at: place{1, c.at, 3}}
		l.checkLearned(&stream.Record{}, &codec.DecisionMark{Era: 1, LearnedThrough: 10, LearnedLost: c.lost})
		want := place{1, 10, 3}
		if !c.ok {
			want.through = c.at
		}
		if d := v.report.First; (d == nil) != c.ok || d != nil && d.Field != "learned_through" || l.at != want {
			t.Errorf("%+v: %+v, then %v", c, d, l.at)
		}
	}
}

// TestEpochsOfMarks: a mark names the current epoch last, and of each the offset of a record of its own.
func TestEpochsOfMarks(t *testing.T) {
	ref := func(epoch, offset int64) codec.EpochRef { return codec.EpochRef{Epoch: epoch, Offset: offset} }
	for _, c := range []struct {
		epoch, n int64
		refs     []codec.EpochRef
		ok       bool
	}{
		{2, 9, []codec.EpochRef{ref(1, 10), ref(2, 20)}, true}, {2, 9, []codec.EpochRef{ref(1, 10)}, false},
		{2, 9, []codec.EpochRef{ref(3, 20)}, false}, {2, 9, []codec.EpochRef{ref(2, 21)}, false},
		{2, 9, []codec.EpochRef{ref(1, 4), ref(2, 20)}, true}, {2, 9, []codec.EpochRef{ref(1, 5), ref(2, 20)}, false},
		{2, 9, nil, false}, {0, 9, nil, false}, {0, 0, nil, true}, {0, 9, []codec.EpochRef{ref(7, 99)}, true},
		{1, 9, []codec.EpochRef{ref(1, 10)}, true}, {1, 9, []codec.EpochRef{ref(1, 11)}, false}, {1, 0, nil, false},
		{1, 9, []codec.EpochRef{ref(2, 20)}, false},
	} {
		v := &verification{found: map[site]Difference{}}
		f := &fateCheck{v: v, feedback: &logCursor{first: 5}, epoch: c.epoch,
			epochs: map[int64]bool{10: true, 20: true}}
		f.refersEpochs(&stream.Record{}, &codec.FeedbackMark{N: c.n, Epochs: c.refs})
		if (v.report.First == nil) != c.ok {
			t.Errorf("%s: %+v", fmt.Sprintf("%+v", c), v.report.First)
		}
	}
}

// TestRefused: a context without a decision has its reject, for a reason that holds, of its id and bytes; what may be
// gone, or come behind the end, is no difference.
func TestRefused(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.use(0)
	const id, none = `{"id":"a","features":{"x":1},"actions":["a","b"]}`, `{"features":{"x":1},"actions":["a","b"]}`
	const dup, bad = codec.ReasonDuplicateID, codec.ReasonMalformed
	learned := codec.DecisionMark{LearnedLost: 5} // excuses no context
	type refusal struct {
		value, header string
		reasons       []string // none: no reject
		bytes         string   // of the reject, if they are others
		passed        int64
		lane          decisionLane
		decisionsFrom int64 // that are kept
		rejectsFrom   int64
		loss          bool
		mark          codec.DecisionMark // behind it
	}
	is, old := Tally{Checked: 1}, Tally{TooOld: 1}
	passed := refusal{value: id, passed: 90, lane: decisionLane{known: true}, mark: learned}
	for name, c := range map[string]struct {
		change         func(c *refusal)
		tally, rejects Tally
		field, id, got string
		tooOld         int64 // rejects, or contexts, behind the end
	}{
		"waits":         {func(c *refusal) { c.passed = loop.End }, Tally{}, Tally{}, "", "", "", 0},
		"may be gone":   {func(c *refusal) { c.lane.known = false }, old, Tally{}, "", "", "", 0},
		"its reject is": {func(c *refusal) { c.rejectsFrom = 2 }, old, Tally{}, "", "", "", 0},
		"neither":       {func(*refusal) {}, is, Tally{}, "decision", "", "neither", 0},
		"its loss is told": {func(c *refusal) { c.mark = codec.DecisionMark{RejectsTo: 8} }, is, Tally{}, "", "", "",
			1},
		"an older decider": {func(c *refusal) { c.loss = true }, is, Tally{}, "", "", "", 1},
		"which tells of it": {func(c *refusal) { c.loss, c.lane.refuses = true, true }, is, Tally{}, "decision", "",
			"neither", 0},
		"a repeat": {func(c *refusal) { c.reasons, c.header = []string{dup}, "used" }, is, is, "reason", "a", dup, 0},
		"a repeat by header": {func(c *refusal) { c.value, c.header, c.reasons = none, "used", []string{dup} }, is, is,
			"", "", "", 0},
		"no repeat by header": {func(c *refusal) { c.value, c.header, c.reasons = none, "b", []string{dup} }, is, is,
			"reason", "b", dup, 0},
		"no repeat without id": {func(c *refusal) { c.value, c.reasons = none, []string{dup} }, is, is, "reason", "0-7",
			dup, 0},
		"of what is gone": {func(c *refusal) { c.reasons, c.decisionsFrom = []string{dup}, 2 }, is, is, "", "", "", 0},
		"behind the end": {func(c *refusal) { c.reasons, c.passed, c.lane.grown = []string{dup}, loop.End, true }, is,
			is, "", "", "", 0},
		"at the end": {func(c *refusal) { c.reasons, c.passed = []string{dup}, loop.End }, is, is, "reason", "a", dup,
			0},
		"before the end": {func(c *refusal) { c.reasons, c.lane.grown = []string{dup}, true }, is, is, "reason", "a",
			dup, 0},
		"well formed":      {func(c *refusal) { c.reasons = []string{bad} }, is, is, "reason", "a", bad, 0},
		"by a later model": {func(c *refusal) { c.reasons, c.lane.at.epoch = []string{bad}, 2 }, is, is, "", "", "", 0},
		"by one behind it": {func(c *refusal) { c.reasons, c.passed, c.lane.grown = []string{bad}, loop.End, true }, is,
			is, "", "", "", 0},
		"well formed at the end": {func(c *refusal) { c.reasons, c.passed = []string{bad}, loop.End }, is, is, "reason",
			"a", bad, 0},
		"well formed before the end": {func(c *refusal) { c.reasons, c.lane.grown = []string{bad}, true }, is, is,
			"reason", "a", bad, 0},
		"malformed": {func(c *refusal) { c.value, c.reasons = "{", []string{bad} }, is, is, "", "", "", 0},
		"refused anew": {func(c *refusal) { c.value, c.reasons = "{", []string{bad, codec.ReasonLate} }, is, is,
			"reason", "0-7", bad + " and " + codec.ReasonLate, 0},
		"other bytes": {func(c *refusal) { c.value, c.reasons, c.bytes = "{", []string{bad}, "[" }, is, is, "bytes",
			"0-7", "others", 0},
		"other bytes, lost": {func(c *refusal) { c.value, c.reasons, c.bytes, c.loss = "{", []string{bad}, "[", true },
			is, is, "", "", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := w.attempt()
			v.report, v.found = Report{}, map[site]Difference{}
			c, r := passed, c
			r.change(&c)
			rec := stream.Record{Offset: 7, Time: 70, Value: []byte(c.value)}
			if c.header != "" {
				rec.Headers = []stream.Header{{Key: "ce_specversion", Value: "1.0"}, {Key: "ce_id", Value: c.header}}
			}
			v.rejects = &rejectIndex{c: &logCursor{first: c.rejectsFrom}, seed: maphash.MakeSeed(),
				all: map[rejectKey]*rejectInfo{}, times: []int64{80}}
			for _, reason := range c.reasons {
				v.rejects.add(v, rejectKey{false, 0, 7, 70}, &stream.Record{Offset: 3, Time: 80},
					&codec.Reject{Reason: reason, Bytes: []byte(cmp.Or(c.bytes, c.value))})
			}
			if c.loss {
				v.losses.add(85, 90)
			}
			l := &c.lane
			l.v, l.decisions, l.contexts = v, &logCursor{first: c.decisionsFrom}, &logCursor{}
			l.ids = recent.New[int64](10)
			l.ids.Put(0, []byte("used"), 4)
			got, err := l.refused(&rec, func() int64 { return 1 }, c.passed)
			l.lost = append(l.lost, c.mark)
			v.settle()
			d := v.report.First
			if err != nil || got != r.tally || v.report.Rejects.Checked != r.rejects.Checked ||
				v.report.Rejects.TooOld+v.report.Contexts.TooOld != r.tooOld || (d == nil) != (r.field == "") {
				t.Fatalf("%v, %+v, %+v, %+v", err, got, v.report.Rejects, d)
			}
			if d != nil && (d.Field != r.field || d.ID != r.id || d.Got != r.got || d.Round != 0) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestNotRejected: a context that was decided and rejected is a difference, unless a round for whose sake it was
// rejected may be lost.
func TestNotRejected(t *testing.T) {
	for rejected, excused := range map[int64]bool{90: true, 91: false} {
		v := &verification{found: map[site]Difference{}}
		v.rejects = &rejectIndex{all: map[rejectKey]*rejectInfo{{false, 0, 7, 70}: {time: rejected}}}
		v.losses.add(85, 90)
		l := &decisionLane{v: v, decisions: &logCursor{}, rec: &stream.Record{Time: 95},
			head: codec.Decision{N: 3, ID: "a"}}
		l.notRejected(&stream.Record{Offset: 7, Time: 71}) // another
		l.notRejected(&stream.Record{Offset: 7, Time: 70})
		l.lost = append(l.lost, codec.DecisionMark{LearnedLost: 5}) // excuses no context
		v.settle()
		if d := v.report.First; (d == nil) != excused || (v.report.Rejects.TooOld == 1) != excused ||
			d != nil && (d.Field != "source" || d.Round != 3 || d.ID != "a") {
			t.Errorf("%d: %+v, %+v", rejected, d, v.report.Rejects)
		}
	}
}

// TestFollows: a decision has learned no less than the one before it, in its era and epoch.
func TestFollows(t *testing.T) {
	for _, c := range []struct {
		is          place
		field, want string
	}{{place{2, 10, 3}, "", ""}, {place{2, 10, 4}, "", ""}, {place{2, 11, 1}, "epoch", "at least 3"},
		{place{3, 0, 0}, "", ""},
		{place{1, 99, 9}, "era", "at least 2"}, {place{2, 9, 9}, "learned_through", "at least 10"},
		{place{2, 10, 2}, "epoch", "at least 3"}} {
		v := &verification{found: map[site]Difference{}}
		l := &decisionLane{v: v, decisions: &logCursor{}, rec: &stream.Record{}, at: place{2, 10, 3},
			ids: recent.New[int64](1), units: loop.NewUnits(1)}
		ok := l.follows(c.is)
		for _, x := range v.suspects {
			v.differ(x.Difference)
		}
		if d := v.report.First; ok != (c.field == "") || (d == nil) != ok || d != nil && (d.Field != c.field ||
			d.Want != c.want) {
			t.Errorf("%+v: %v, %+v", c, ok, d)
		}
		l.head, l.decisions.batch = codec.Decision{Era: c.is.era, LearnedThrough: c.is.through, Epoch: c.is.epoch},
			make([]stream.Record, 1)
		want := place{2, 10, 3}
		if want.before(c.is) {
			want = c.is
		}
		if l.done(); l.at != want {
			t.Errorf("%+v: then at %v", c, l.at)
		}
	}
}

// TestTakeAtItsWord: what the draw of a unit was that a repeat refers to is taken from the repeat if the log may not
// hold it, and from one repeat only.
func TestTakeAtItsWord(t *testing.T) {
	for _, c := range []struct {
		first, firstN, known int64 // round that it repeats, that is kept first, and of the unit's last draw; 0: none
		holes                bool
		want                 int64
	}{{0, 5, 0, true, 0}, {1, 5, 0, false, 1}, {4, 5, 0, false, 4}, {5, 5, 0, false, 0}, {6, 5, 0, false, 0},
		{6, 5, 0, true, 6}, {6, 5, 5, true, 6}, {4, 5, 6, false, 6}, {6, 5, 7, true, 7}} {
		l := &decisionLane{units: loop.NewUnits(1), firstN: c.firstN, holes: c.holes}
		of := func(n, first, time int64) codec.Decision {
			return codec.Decision{N: n, Unit: "u", Actions: []string{"a", "b"}, Propensities: []float64{.5, .5},
				First: codec.RoundRef{N: first}, Time: time}
		}
		if c.known > 0 {
			was := of(c.known, 0, 1)
			l.units.Remember(&was)
		}
		l.head = of(9, c.first, 2)
		l.takeAtItsWord()
		if got := l.units.Last("u"); got != c.want || l.head.N != 9 || l.head.First.N != c.first {
			t.Errorf("%+v: %d, %+v", c, got, l.head)
		}
	}
}

// TestOpenLane: of decisions that have lost nothing the first is the first, and no context was passed before.
func TestOpenLane(t *testing.T) {
	for first, whole := range map[int64]bool{0: true, 1: true, 2: false} {
		v := &verification{Config: Config{Log: firstKept{of: map[stream.Place]int64{{Topic: "d"}: first}}},
			topics: join.Topics{Decisions: "d"}}
		l, err := v.openLane(t.Context(), &decisionCheck{v: v}, 0)
		if err != nil || l.known != whole || (l.next == 1) != whole || l.next > 1 || l.decisions.read == nil {
			t.Errorf("from %d on: %v, next %d, known %v", first, err, l.next, l.known)
		}
	}
}

// TestUnreadDecisions: behind a record that cannot be read a decision may have a later number, and contexts may have
// been passed; behind a decision all is known again.
func TestUnreadDecisions(t *testing.T) {
	w := newWorld(t, 1, 1)
	a, err := w.log.Writer(w.ctx, w.ts.Decisions, 0, nil)
	w.no(err)
	decision := codec.Decision{N: 5, ID: "a", Epoch: 1, Source: loop.RequestSource, ContextsThrough: 7, Unit: "u",
		Context: []byte("{}"), Actions: []string{"a"}, Propensities: []float64{1}}
	for _, r := range []stream.Record{{Value: []byte("{")}, {Type: "of others"},
		{Type: codec.TypeMark, Value: []byte("{")}, {Key: []byte("a"), Value: codec.AppendDecision(nil, &decision)}} {
		_, err := a.Append(w.ctx, &r)
		w.no(err)
	}
	v := &verification{Config: Config{Log: w.log, Seed: worldSeed()}, topics: w.ts, found: map[site]Difference{}}
	l, err := v.openLane(w.ctx, &decisionCheck{v: v}, 0)
	w.no(err)
	defer l.close()
	ok, err := l.advance(w.ctx)
	if !ok || err != nil || l.unread != 1 || !l.holes || l.known || l.next != 1 || l.firstN != 5 ||
		v.report.Foreign != 3 || v.report.Decisions != (Tally{Records: 2}) ||
		v.report.Marks != (Tally{Records: 1, Checked: 1}) {
		t.Fatalf("%v, %v, %+v, %+v", ok, err, l, v.report)
	}
	for at, d := range v.found {
		if d.Round != 0 && !(at.field == "bytes" && d.Round == 1) {
			t.Errorf("%+v", d)
		}
	}
	since := l.rec.Time
	l.done()
	n, used := l.used("a")
	if l.next != 6 || l.unread != 0 || !l.known || l.through != 7 || l.since != since || l.rec != nil || !used ||
		n != 5 || l.units.Last("u") != 5 || !l.holes {
		t.Errorf("%+v", l)
	}
	if ok, err := l.advance(w.ctx); ok || err != nil {
		t.Errorf("behind the last: %v, %v", ok, err)
	}
}

// TestGrown: what comes behind the ends of decisions or feedback may explain what waits, if anything does.
func TestGrown(t *testing.T) {
	for _, c := range []struct {
		decisions, feedback int64
		want                bool
	}{{100, 100, false}, {99, 100, true}, {100, 99, true}, {99, 99, true}} {
		log := firstKept{of: map[stream.Place]int64{}} // to offset 100
		l := &decisionLane{decisions: &logCursor{log: log, topic: "d", end: c.decisions}, contexts: &logCursor{}}
		d := &decisionCheck{feedback: &logCursor{log: log, topic: "f", end: c.feedback}}
		if err := d.waiting(t.Context(), l); err != nil || l.grown != c.want {
			t.Errorf("%+v: %v, %v", c, l.grown, err)
		}
	}
}

// TestPassed: of the contexts before an offset each has its reject, but those that were passed before, which are too
// old to be judged. Each is counted once.
func TestPassed(t *testing.T) {
	w := newWorld(t, 1, 1)
	for range 3 {
		_, err := w.in[0].Append(w.ctx, &stream.Record{Value: []byte("{")})
		w.no(err)
	}
	var at []int64
	for _, r := range w.records(w.ts.Contexts, 0) {
		if r.Type == "" {
			at = append(at, r.Offset)
		}
	}
	v := &verification{Config: Config{Log: w.log}, found: map[site]Difference{},
		rejects: &rejectIndex{c: &logCursor{}, all: map[rejectKey]*rejectInfo{}}}
	c, err := v.openCursor(w.ctx, w.ts.Contexts, 0)
	w.no(err)
	defer c.close()
	l := &decisionLane{v: v, contexts: c, decisions: &logCursor{batch: make([]stream.Record, 1)}, known: true,
		through: at[1] + 1}
	for i, x := range []struct {
		before, through, passed int64
		contexts                Tally
	}{{at[0], at[1] + 1, 0, Tally{}}, {at[2], at[2], at[1] + 1, Tally{Records: 2, TooOld: 2}},
		{at[2] + 1, at[2] + 1, at[2] + 1, Tally{Records: 3, Checked: 1, TooOld: 2}},
		{at[2] + 1, at[2] + 1, at[2] + 1, Tally{Records: 3, Checked: 1, TooOld: 2}}} {
		if i == 3 { // a mark says that it is taken again
			c.seek(at[2])
			l.through = at[2]
		}
		err := l.pass(w.ctx, x.before, func() int64 { return 1 })
		if err != nil || !l.known || l.through != x.through || l.passed != x.passed ||
			v.report.Contexts != x.contexts || len(v.suspects) != max(i-1, 0) {
			t.Errorf("%+v: %v, through %d, passed %d, %+v", x, err, l.through, l.passed, v.report.Contexts)
		}
	}
	v.report, l.contexts = Report{}, &logCursor{batch: make([]stream.Record, 3)}
	for _, offset := range []int64{100, 101, 101} { // without a gap
		l.takeContext(&stream.Record{Offset: offset}, Tally{})
	}
	if v.report.Contexts.Records != 2 || l.passed != 102 {
		t.Errorf("%+v, passed %d", v.report.Contexts, l.passed)
	}
}
