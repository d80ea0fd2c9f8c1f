package join

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// remembered is the history of a log of two partitions, which gives two records at a time and then overwrites them.
// Offset k of decisions holds round k+1, of outcomes that of round k; offset 6 of decisions is of a later program.
func remembered(t *testing.T) *History {
	log, ctx := mem.New(mem.Options{MaxBatch: 2, StrictBytes: true}), t.Context()
	for topic, n := range map[string]int{"d": 2, "o": 2, "f": 1} {
		no(t, log.Create(ctx, topic, n, stream.TopicOptions{}))
	}
	for p := range 2 {
		d, err := log.Writer(ctx, "d", p, nil)
		no(t, err)
		o, err := log.Writer(ctx, "o", p, nil)
		no(t, err)
		for k := range int64(7) {
			x := codec.Decision{N: k + 1, Partition: p, ID: "r", Epoch: 1, Actions: []string{"a"},
				Propensities: []float64{1}, Source: -1, Context: []byte(`{}`)}
			value := codec.AppendDecision(nil, &x)
			if k == 6 {
				value = []byte{0x81, 0xa1, 'v', 0x63} // {"v": 99}
			}
			_, err := d.Append(ctx, &stream.Record{Value: value})
			no(t, err)
			_, err = o.Append(ctx, &stream.Record{Value: fmt.Appendf(nil, `{"id":"%d","loss":0}`, k)})
			no(t, err)
		}
	}
	return &History{Log: log, Topics: Topics{Decisions: "d", Outcomes: "o", Feedback: "f"}, Partitions: 2}
}

// took returns the range that takes offsets from to before next.
func (h *History) took(t *testing.T, topic string, p int, from, next int64) (r codec.Range) {
	no(t, stream.Scan(t.Context(), h.Log, topic, p, from, next, func(x *stream.Record) error {
		r.Sum = codec.Sum(r.Sum, x.Offset, x.Time, x.Type, x.Value)
		return nil
	}))
	return codec.Range{Partition: p, Next: next, Sum: r.Sum}
}

func shown(batches []loop.Batch) string {
	var b strings.Builder
	for i := range batches {
		for _, e := range batches[i].Decisions {
			fmt.Fprintf(&b, " d%d:%d", e.Offset, e.D.N)
		}
		for _, e := range batches[i].Outcomes {
			fmt.Fprintf(&b, " o%d:%s", e.Offset, e.O.ID)
		}
		b.WriteString(";")
	}
	return b.String()
}

// TestSpans: what cuts took is read again, each record once, up to where a later mark says that it is lost, and again
// from where it goes back to.
func TestSpans(t *testing.T) {
	h, seen := remembered(t), 0
	h.Decision = func(*loop.DecisionEvent, *stream.Record) { seen++ }
	s := h.Spans(t.Context(), func(i int) int64 { return []int64{1, 0, 0, 9}[i] })
	defer s.Close()
	for i, x := range []struct {
		back               *codec.FeedbackMark
		limits             map[int]int64
		decisions, outcome []codec.Range
		want               string
	}{
		{nil, nil, []codec.Range{h.took(t, "d", 0, 1, 4), h.took(t, "d", 1, 0, 2)},
			[]codec.Range{h.took(t, "o", 0, 0, 1)}, " d1:2 d2:3 d3:4; d0:1 d1:2; o0:0;"},
		{nil, nil, []codec.Range{h.took(t, "d", 0, 4, 5)}, []codec.Range{h.took(t, "o", 0, 1, 7)},
			" d4:5; o1:1 o2:2 o3:3 o4:4 o5:5 o6:6;"},
		{nil, nil, nil, []codec.Range{{Partition: 1, Next: 20}}, ";"}, // is read from behind its end
		{nil, map[int]int64{0: 5, 2: 7}, []codec.Range{{Next: 9, Sum: 1}}, []codec.Range{{Next: 9, Sum: 1}}, ";;"},
		{&codec.FeedbackMark{LostTails: []codec.LostTail{{Topic: "rejects"}, {Topic: "decisions"},
			{Topic: "outcomes", Partition: 1}}, Positions: []codec.Position{{Decisions: 2, Outcomes: 3},
			{Decisions: 4, Outcomes: 5}}}, nil, []codec.Range{h.took(t, "d", 0, 2, 3), h.took(t, "d", 1, 2, 4)},
			[]codec.Range{{Next: 7}, h.took(t, "o", 1, 5, 7)}, " d2:3; d2:3 d3:4;; o5:5 o6:6;"},
		{nil, map[int]int64{0: 4, 1: 6}, []codec.Range{{Next: 6, Sum: 1}, h.took(t, "d", 1, 4, 6)}, nil,
			" d3:4; d4:5 d5:6;"},
	} {
		if x.back != nil {
			no(t, s.goBack(x.back))
		}
		batches, err := s.Take(&codec.Cut{Decisions: x.decisions, Outcomes: x.outcome}, x.limits)
		if no(t, err); shown(batches) != x.want {
			t.Errorf("cut %d: %s, want %s", i, shown(batches), x.want)
		}
	}
	if seen != 12 {
		t.Errorf("%d decisions seen, want 12", seen)
	}
}

// TestSpansDiffer: a cut that took other records than there are is told with their place, and so is one whose records
// cannot be read.
func TestSpansDiffer(t *testing.T) {
	h := remembered(t)
	for name, x := range map[string]struct {
		cut   codec.Cut
		want  error // nil: another
		topic string
	}{
		"other decisions": {codec.Cut{Decisions: []codec.Range{{Partition: 1, Next: 3, Sum: 5}}}, ErrLost, "d"},
		"other outcomes":  {codec.Cut{Outcomes: []codec.Range{{Partition: 1, Next: 3, Sum: 5}}}, ErrLost, "o"},
		"no partition":    {codec.Cut{Outcomes: []codec.Range{{Partition: 2, Next: 3}}}, loop.ErrCut, ""},
		"a later program": {codec.Cut{Decisions: []codec.Range{h.took(t, "d", 1, 0, 7)}}, nil, "d"},
		"or damage":       {codec.Cut{Decisions: []codec.Range{{Partition: 1, Next: 7, Sum: 5}}}, ErrLost, "d"},
	} {
		s := h.Spans(t.Context(), func(int) int64 { return 0 })
		_, err := s.Take(&x.cut, nil)
		var place *stream.Error
		if err == nil || x.want != nil && !errors.Is(err, x.want) || errors.Is(err, ErrLost) != (x.want == ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		if x.topic != "" && (!errors.As(err, &place) || place.Topic != x.topic || place.Partition != 1) {
			t.Errorf("%s lie at %+v", name, place)
		}
		s.Close()
	}
}

// TestFrom: a heart is restored from the mark to which the last one goes back, which must be that of the cut it names.
func TestFrom(t *testing.T) {
	h := remembered(t)
	w, err := h.Log.Writer(t.Context(), "f", 0, nil)
	no(t, err)
	mark := func(cut int64, partitions int) *codec.FeedbackMark {
		return &codec.FeedbackMark{Cut: cut, Limits: codec.Limits{Heart: loop.Heart},
			Positions: make([]codec.Position, partitions)}
	}
	for _, m := range []*codec.FeedbackMark{mark(3, 2), mark(4, 1)} {
		_, err := w.Append(t.Context(), &stream.Record{Type: codec.TypeMark, Value: codec.AppendFeedbackMark(nil, m)})
		no(t, err)
	}
	for _, x := range []struct {
		from, cut int64
		want      int64 // cut of the mark; -1: the logs' beginning
		err       error
	}{{-1, -1, -1, nil}, {-1, 9, 9, nil}, {0, 3, 3, nil}, {0, 4, 0, ErrHistory}, {1, 4, 0, codec.ErrCorrupt}} {
		m := mark(9, 2)
		m.From, m.FromCut = x.from, x.cut
		from, err := h.From(t.Context(), m)
		if !errors.Is(err, x.err) || err == nil && loop.CutOf(from) != x.want || x.want < 0 &&
			from.Positions[1].Partition != 1 {
			t.Errorf("%+v: %+v, %v", x, from, err)
		}
	}
	if _, err := h.Restore(t.Context(), 2, mark(9, 3), false, nil); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("a mark of three partitions: %v", err)
	}
}

// TestRefer: a mark names the one from which a restart takes all cuts again that it needs, and the one behind which all
// feedback lies that is remembered. It forgets those to which none will go back.
func TestRefer(t *testing.T) {
	limits := codec.Limits{Heart: loop.Heart}
	for _, x := range []struct {
		oldest, told, remembers int64
		from, cut, memory       int64
		left                    int
	}{
		{13, loop.End, 91, -1, 12, 30, 2}, {13, 91, 91, -1, 12, 30, 2}, {13, 90, 91, -1, 12, 20, 3},
		{13, loop.End, 90, -1, 12, 20, 3}, {13, loop.End, 50, -1, 12, 10, 4}, {12, loop.End, 91, 30, 9, 20, 3},
		{10, loop.End, 91, 30, 9, 20, 3}, {9, loop.End, 91, 20, 5, 10, 4}, {5, loop.End, 91, 10, 0, -1, 4},
		{0, loop.End, 91, -1, -1, -1, 4},
	} {
		l := markLog{dedup: 10}
		for i, m := range []codec.FeedbackMark{{N: 0, Remembers: 1}, {Cut: 5, N: 50, Remembers: 41},
			{Cut: 9, N: 90, Remembers: 81}, {Cut: 11, N: 90, Remembers: 81}} {
			m.Limits = limits
			l.add(uint64(i), &m)
			if i < 3 {
				l.ack(uint64(i), int64(10*(i+1)))
			}
		}
		m := codec.FeedbackMark{Cut: 12, N: 100, Remembers: x.remembers, Limits: limits}
		if l.refer(&m, x.oldest, x.told); m.From != x.from || m.FromCut != x.cut || m.Memory != x.memory ||
			len(l.marks) != x.left {
			t.Errorf("%+v: from %d, cut %d, memory %d, %d left", x, m.From, m.FromCut, m.Memory, len(l.marks))
		}
	}
}

// TestMissingFrom: the error of what retention has dropped says up to where; any other stays what it is.
func TestMissingFrom(t *testing.T) {
	h, ctx, other := remembered(t), context.Background(), errors.New("other")
	no(t, h.Log.(*mem.Log).Truncate("d", 0, 3))
	if err := MissingFrom(ctx, h.Log, "d", 0, 1, other, "what"); err != other {
		t.Errorf("another error: %v", err)
	}
	err := MissingFrom(ctx, h.Log, "d", 0, 1, stream.ErrTruncated, "what")
	if !errors.Is(err, stream.ErrTruncated) || !strings.Contains(err.Error(), "offsets 1…2, what; "+AcceptLoss) {
		t.Errorf("dropped: %v", err)
	}
	err = MissingFrom(ctx, h.Log, "none", 0, 1, stream.ErrTruncated, "what")
	if !errors.Is(err, stream.ErrTruncated) || !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("a topic that is gone: %v", err)
	}
}

// TestSurvivor: of what was taken of an input the newest range counts that the log still holds as it was, before the
// place at which an era is to stand and behind nothing to which an era went back.
func TestSurvivor(t *testing.T) {
	h := remembered(t)
	no(t, h.Log.(*mem.Log).Truncate("d", 1, 4))
	no(t, h.Log.(*mem.Log).Truncate("o", 1, LogStart))
	l := ledger{core: &Core{cfg: Config{Log: h.Log, Partitions: 2}, history: *h}, ranges: make([][]taken, 4)}
	const none = int64(math.MaxInt64)
	lost := func(since, next, at int64) taken { return taken{since, next, 1, at} }
	for name, x := range map[string]struct {
		input  int
		ranges []taken
		before int64
		next   int64 // of the range that survives; -1: none
		gone   int64
	}{
		"all":              {0, []taken{{0, 3, 0, 10}, {3, 5, 0, 20}}, none, 5, none},
		"not the last":     {0, []taken{{0, 3, 0, 10}, lost(3, 5, 20)}, none, 3, 20},
		"none":             {0, []taken{lost(0, 3, 10), lost(3, 5, 20)}, none, -1, 10},
		"before an era":    {2, []taken{{0, 3, 0, 10}, {3, 5, 0, 20}}, 20, 3, 20},
		"an era between":   {0, []taken{{0, 2, 0, 5}, {2, 5, 0, 10}, {2, 3, 0, 15}}, 15, 2, 10},
		"nothing taken":    {0, []taken{{3, 3, 0, 1}}, none, 3, none},
		"without cuts":     {0, []taken{{3, 3, 0, 1}, lost(3, 5, 10)}, none, 0, 10},
		"of outcomes":      {2, []taken{{3, 3, 0, 1}, lost(3, 5, 10)}, none, 3, 10},
		"behind the end":   {2, []taken{{9, 9, 0, 1}}, none, 7, none},
		"dropped since":    {1, []taken{{0, 2, 0, 10}, lost(3, 5, 20)}, none, 5, none},
		"and lost":         {1, []taken{{0, 2, 0, 10}, lost(3, 9, 20)}, none, 2, 20},
		"where logs begin": {3, []taken{{2, 3, 0, 10}, lost(1, 5, 20)}, none, 3, 20},
	} {
		for k := range x.ranges {
			if r := &x.ranges[k]; r.sum == 0 && r.next > r.since {
				r.sum = h.took(t, h.Topic(x.input), x.input%2, r.since, r.next).Sum
			}
		}
		l.ranges[x.input], l.before = x.ranges, x.before
		r, gone, ok, err := l.survivor(t.Context(), x.input)
		if no(t, err); gone != x.gone || ok != (x.next >= 0) || ok && r.next != x.next {
			t.Errorf("%s: to %d, what is behind it lies at %d, %v", name, r.next, gone, ok)
		}
	}
}

// TestEraPosition: the mark of an era says up to where outcomes may be read again, of all eras so far.
func TestEraPosition(t *testing.T) {
	h := remembered(t)
	l := ledger{core: &Core{cfg: Config{Log: h.Log, Partitions: 2}, history: *h}, before: math.MaxInt64}
	for _, x := range []struct{ outcomes, was, want int64 }{{3, 4, 5}, {3, 9, 9}, {5, 4, 4}} {
		took := h.took(t, "o", 0, 0, x.outcomes)
		l.ranges = [][]taken{{{0, 3, h.took(t, "d", 0, 0, 3).Sum, 10}}, nil, {{0, took.Next, took.Sum, 10}}, nil}
		if x.outcomes < 5 {
			l.ranges[2] = append(l.ranges[2], taken{x.outcomes, 5, 1, 20})
		}
		pos, err := l.position(t.Context(), 0, &codec.FeedbackMark{Positions: []codec.Position{{Again: x.was}}})
		if no(t, err); pos.Again != x.want || pos.Decisions != 3 || pos.Outcomes != x.outcomes ||
			pos.OutcomesSum != took.Sum {
			t.Errorf("%+v: %+v", x, pos)
		}
	}
}

// TestHangsOn: a mark hangs on what is lost if it stands behind it in that partition, unless its joiner logged no cuts.
func TestHangsOn(t *testing.T) {
	m := codec.FeedbackMark{Limits: codec.Limits{Heart: loop.Heart}, Positions: []codec.Position{
		{Decisions: 5, Outcomes: 7}, {Partition: 1, Decisions: 1, Outcomes: 2}}}
	for lost, want := range map[codec.LostTail]bool{
		{Topic: "decisions", Offset: 4}: true, {Topic: "decisions", Offset: 5}: false,
		{Topic: "decisions", Partition: 1, Offset: 4}: false, {Topic: "outcomes", Offset: 6}: true,
		{Topic: "outcomes", Offset: 7}: false, {Topic: "rejects"}: false,
	} {
		without := codec.FeedbackMark{Positions: m.Positions}
		other := codec.LostTail{Topic: "outcomes", Offset: 9}
		if hangsOn(&m, []codec.LostTail{other, lost}) != want || hangsOn(&without, []codec.LostTail{lost}) {
			t.Errorf("%+v", lost)
		}
	}
}

// knownEpochs are epochs of which only the places are known.
type knownEpochs struct {
	Epochs
	refs []codec.EpochRef
}

func (k knownEpochs) Refs() []codec.EpochRef { return k.refs }

// TestClaimed: deciders and rejects that know of more than a feedback log that ends in era 2 with feedback 100, cut 50
// and epoch 7 tell of an era that is lost.
func TestClaimed(t *testing.T) {
	type claim struct{ era, n, epoch int64 }
	reject := func(era, cut int64) codec.Reject { return codec.Reject{Topic: "outcomes", Era: era, Cut: cut} }
	for i, x := range []struct {
		claims  []claim
		rejects []codec.Reject
		want    int64
	}{
		{nil, nil, -1}, {[]claim{{2, 100, 7}, {1, 0, 9}}, nil, -1}, {[]claim{{3, 0, 0}}, nil, 3},
		{[]claim{{2, 101, 0}}, nil, 2}, {[]claim{{2, 0, 8}}, nil, 2}, {[]claim{{4, 0, 0}, {3, 0, 0}}, nil, 4},
		{[]claim{{1, 200, 0}}, nil, -1}, // which the feedback log says
		{nil, []codec.Reject{reject(2, 50)}, -1}, {nil, []codec.Reject{reject(2, 51)}, 2},
		{nil, []codec.Reject{reject(3, 1)}, 3}, {nil, []codec.Reject{reject(3, 0)}, -1},
		{nil, []codec.Reject{reject(1, 60), reject(2, 40)}, -1}, {[]claim{{5, 0, 0}}, []codec.Reject{reject(3, 1)}, 5},
		{nil, append([]codec.Reject{reject(2, 51)}, slices.Repeat([]codec.Reject{reject(2, 41)}, 40)...), 2},
		{nil, append([]codec.Reject{reject(2, 51)}, slices.Repeat([]codec.Reject{reject(2, 40)}, 40)...), -1},
	} {
		log, ctx := mem.New(mem.Options{}), t.Context()
		no(t, log.Create(ctx, "r", 1, stream.TopicOptions{}))
		w, err := log.Writer(ctx, "r", 0, nil)
		no(t, err)
		for k := range x.rejects {
			_, err := w.Append(ctx, &stream.Record{Value: codec.AppendReject(nil, &x.rejects[k])})
			no(t, err)
		}
		c := &Core{cfg: Config{Log: log, Topics: Topics{Rejects: "r"}, Epochs: knownEpochs{refs: []codec.EpochRef{
			{Epoch: 3}, {Epoch: 7}}}}, eras: []codec.EraStart{{Era: 1, N: 20}, {Era: 2, N: 90}}}
		c.cfg.Claims = func(_ context.Context, tell func(era, n, epoch int64)) error {
			for _, y := range x.claims {
				tell(y.era, y.n, y.epoch)
			}
			return nil
		}
		if got, err := c.claimed(ctx, 2, 100, 50, 40); got != x.want || err != nil {
			t.Errorf("%d: %d, %v, want %d", i, got, err, x.want)
		}
		c.cfg.Claims = func(context.Context, func(era, n, epoch int64)) error { return ErrHistory }
		if _, err := c.claimed(ctx, 2, 100, 50, 40); !errors.Is(err, ErrHistory) {
			t.Errorf("claims that cannot be read: %v", err)
		}
	}
}
