package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// counting is a log that counts the records that are read of each partition of a topic, and whose readers spoil what
// they read before.
type counting struct {
	stream.Log
	read map[int]int
}

func (l *counting) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	return &counted{r, l.read, partition, nil}, err
}

type counted struct {
	stream.Reader
	read      map[int]int
	partition int
	spoil     []stream.Record
}

func (r *counted) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	r.forget()
	n := len(dst)
	dst, err := r.Reader.Next(ctx, dst)
	for i := range dst[n:] {
		dst[n+i].Value = bytes.Clone(dst[n+i].Value)
	}
	r.spoil = append(r.spoil[:0], dst[n:]...)
	r.read[r.partition] += len(dst) - n
	return dst, err
}

func (r *counted) Close() error {
	r.forget()
	return r.Reader.Close()
}

func (r *counted) forget() {
	for i := range r.spoil {
		clear(r.spoil[i].Value)
	}
}

// TestFindDecision finds the last of the decisions of an id wherever it is, and reads little
// of the other partitions where it is where it belongs.
func TestFindDecision(t *testing.T) {
	const partitions, many = 3, 3 * firstBlock
	log := mem.New(mem.Options{Clock: clock()})
	if err := topics.Create(t.Context(), log, "m", partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	out := make([]stream.Appender, partitions)
	for p := range out {
		var err error
		if out[p], err = log.Writer(t.Context(), "m.decisions", p, nil); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(p int, n int64, id string) {
		d := codec.Decision{Partition: p, N: n, ID: id, Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1},
			Context: []byte(`{}`)}
		if _, err := out[p].Append(t.Context(),
			&stream.Record{Key: []byte(id), Value: codec.AppendDecision(nil, &d)}); err != nil {
			t.Fatal(err)
		}
	}
	home := loop.PartitionOf([]byte("home"), partitions)
	away := (loop.PartitionOf([]byte("away"), partitions) + 1) % partitions
	twice := loop.PartitionOf([]byte("twice"), partitions)
	minted := 0
	for loop.PartitionOf(fmt.Appendf(nil, "r-%d-77", minted), partitions) == minted {
		minted++
	}
	for n := range int64(many) {
		for p := range partitions {
			decide(p, n+1, fmt.Sprint(p, "-", n))
		}
	}
	decide(home, many+1, "home")
	decide(away, many+2, "away")
	if _, err := out[home].Append(t.Context(),
		&stream.Record{Key: []byte("home"), Value: []byte(`{"id":"home"}`)}); err != nil {
		// of somebody else
		t.Fatal(err)
	}
	decide(twice, many+3, "twice")
	decide(minted, many+5, fmt.Sprintf("r-%d-77", minted))
	decide((twice+1)%partitions, many+4, "twice")
	for _, c := range []struct {
		id   string
		p    int
		n    int64
		most int // records read of any other partition
	}{{"home", home, many + 1, firstBlock}, {fmt.Sprintf("r-%d-77", minted), minted, many + 5, firstBlock},
		{"away", away, many + 2, 2 * many}, {"twice", (twice + 1) % partitions,
			many + 4, firstBlock}} {
		l := &counting{log, map[int]int{}}
		x := &explainer{Config: Config{Log: l}, topics: join.TopicsOf("m"), partitions: partitions}
		if err := x.findDecision(t.Context(), c.id); err != nil || x.dec.Partition != c.p || x.dec.N != c.n {
			t.Errorf("%s: %v, round %d of partition %d", c.id, err, x.dec.N, x.dec.Partition)
		}
		for p, n := range l.read {
			if p != c.p && n > c.most {
				t.Errorf("%s: %d records of partition %d were read", c.id, n, p)
			}
		}
	}
	x := &explainer{Config: Config{Log: log}, topics: join.TopicsOf("m"), partitions: partitions}
	if err := x.findDecision(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}

	var rounds []int64
	err := x.findRound(t.Context(), codec.RoundRef{Partition: home, N: many},
		func(d *codec.Decision) { rounds = append(rounds, d.N) })
	if err != nil || len(rounds) != 1 || rounds[0] != many {
		t.Errorf("round %d: found %v, %v", many, rounds, err)
	}

	// A decision that is damaged is there, and where.
	d := codec.Decision{ID: "cut", N: many + 5, Epoch: 1, Actions: []string{"a"}, Propensities: []float64{1},
		Context: []byte(`{}`)}
	v := codec.AppendDecision(nil, &d)
	_, at, err := log.Bounds(t.Context(), "m.decisions", away)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out[away].Append(t.Context(), &stream.Record{Key: []byte("cut"), Value: v[:len(v)-3]}); err != nil {
		t.Fatal(err)
	}
	var damaged *stream.Error
	if err := x.findDecision(t.Context(), "cut"); !errors.As(err, &damaged) || damaged.Topic != "m.decisions" ||
		damaged.Partition != away || damaged.Offset != at {
		t.Errorf("%v, want the error of record %d of partition %d", err, at, away)
	}
	if _, err := out[away].Append(t.Context(),
		&stream.Record{Key: []byte("new"), Value: []byte(`{"v":99}`)}); err != nil {
		t.Fatal(err)
	}
	if err := x.findDecision(t.Context(), "new"); !errors.Is(err, codec.ErrVersion) {
		t.Errorf("%v of a decision of a later version", err)
	}
}

// searched returns an explainer of round 5 of partition p, "mine" of unit "u", whose record has the given log time,
// on a log of that many partitions, and what appends to it.
func searched(t *testing.T, clock func() int64, partitions, p int, at int64) (*explainer, func(topic string, p int,
	records ...stream.Record)) {
	t.Helper()
	log := mem.New(mem.Options{Clock: clock})
	if err := topics.Create(t.Context(), log, "m", partitions, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	x := &explainer{Config: Config{Log: &counting{log, map[int]int{}}}, topics: join.TopicsOf("m"),
		partitions: partitions, e: &Explanation{}, rec: &stream.Record{Time: at},
		dec: codec.Decision{ID: "mine", Unit: "u", Partition: p, N: 5}}
	return x, func(topic string, p int, records ...stream.Record) {
		t.Helper()
		out, err := log.Writer(t.Context(), topic, p, nil)
		for i := range records {
			if err == nil {
				_, err = out.Append(t.Context(), &records[i])
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRejectsOfOthers: of a round of a unit the rejects of other rounds, of other units and of contexts are not told,
// nor those that cannot be read as far as a name.
func TestRejectsOfOthers(t *testing.T) {
	x, put := searched(t, clock(), 1, 0, 0)
	for i, c := range []struct{ topic, id, bytes string }{
		{"outcomes", "mine", `{"id":"mine","loss":0.5}`},
		{"outcomes", "other", `{"id":"other","loss":0.5}`},
		{"outcomes", "x", `{"id":"x","loss":0.5}`},
		{"contexts", "mine", `{"id":"mine"}`},
		{"outcomes", "", `{"unit":"u","loss":0.5}`},
		{"outcomes", "", `{"unit":"other","loss":0.5}`},
		{"outcomes", "", `{"unit":"u","loss":"much"}`},
		{"outcomes", "", `{"id":"mine"}`},
		{"outcomes", "", `{"unit":"other","loss":"much"}`},
		{"outcomes", "", `{"loss":"much","id":"mine"}`},
	} {
		r := codec.Reject{Topic: c.topic, Offset: int64(i), ID: c.id, Reason: codec.ReasonLate, Bytes: []byte(c.bytes)}
		put("m.rejects", 0, stream.Record{Key: []byte(c.id), Value: codec.AppendReject(nil, &r)})
	}
	strange := codec.Reject{Topic: "outcomes", Offset: 99, ID: "mine"}
	put("m.rejects", 0, stream.Record{Type: "x", Key: []byte("mine"), Value: codec.AppendReject(nil, &strange)})
	err := x.findRejects(t.Context())
	var told []int64
	for _, o := range x.e.Outcomes {
		told = append(told, o.Offset)
	}
	if err != nil || !slices.Equal(told, []int64{0, 4, 6, 7}) {
		t.Errorf("%v, %+v", err, x.e.Outcomes)
	}
}

// TestClockSkew: clocks of partitions differ by up to [join.ClockSkew], and what is by so much earlier than the
// decision is told, however much came after it. Of two decisions of one time that of the id's own partition is told.
func TestClockSkew(t *testing.T) {
	const at = int64(1e18)
	own := loop.PartitionOf([]byte("mine"), 2)
	x, put := searched(t, func() int64 { return at }, 2, own, at+join.ClockSkew)
	for p := range 2 {
		d := codec.Decision{Partition: p, N: 5, ID: "mine", Unit: "u", Epoch: 1, Actions: []string{"a"},
			Propensities: []float64{1}, Context: []byte(`{}`)}
		put("m.decisions", p, stream.Record{Key: []byte("mine"), Value: codec.AppendDecision(nil, &d)})
		d.N++
		put("m.decisions", p, stream.Record{Type: "another", Key: []byte("mine"), Value: codec.AppendDecision(nil, &d)})
	}
	found := *x
	if found.rec = nil; found.findDecision(t.Context(), "mine") != nil || found.dec.Partition != own ||
		found.dec.N != 5 {
		t.Errorf("round %d of partition %d, want 5 of %d", found.dec.N, found.dec.Partition, own)
	}
	reject := codec.Reject{Topic: "outcomes", Partition: 1, Offset: 1, ID: "mine", Reason: codec.ReasonLate,
		Bytes: []byte(`{"id":"mine","loss":1}`)}
	f := codec.Feedback{N: 1, Partition: own, Round: 5, ID: "mine", Epoch: 1, Actions: []string{"a"},
		Propensities: []float64{1}, Fate: codec.Skipped, OutcomePartition: -1, OutcomeOffset: -1, ClosedAt: at,
		Context: []byte(`{}`)}
	put("m.rejects", 0, stream.Record{Key: []byte("mine"), Value: codec.AppendReject(nil, &reject)})
	put("m.feedback", 0, stream.Record{Key: []byte("mine"), Value: codec.AppendFeedback(nil, &f)})
	put("m.outcomes", 1, stream.Record{Value: []byte(`{"id":"mine","loss":0.5}`)},
		stream.Record{Value: []byte(`{"id":"mine","loss":1}`)},
		stream.Record{Type: "another", Value: []byte(`{"id":"mine","loss":0.25}`)})
	later := make([]stream.Record, firstBlock)
	put("m.rejects", 0, later...)
	put("m.feedback", 0, later...)
	put("m.outcomes", 1, later...)
	for _, find := range []func(context.Context) error{x.findRejects, x.findFeedback,
		func(ctx context.Context) error { return x.findOutcomes(ctx, true) }} {
		if err := find(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if o := x.e.Outcomes; len(o) != 2 || o[0].Became != codec.ReasonLate || o[1].Became != "counted" ||
		o[1].Partition != 1 || o[1].Offset != 0 {
		t.Errorf("%+v", o)
	}
	if x.fedRec == nil || x.fedRec.Offset != 0 || x.e.Feedback.Fate != "skipped" {
		t.Errorf("%+v", x.fedRec)
	}
}

// TestFeedbackOfOthers: feedback of other rounds, an earlier one of the same id too, and damaged one is passed over. A
// stage of the round is told of, and is not its feedback.
func TestFeedbackOfOthers(t *testing.T) {
	x, put := searched(t, clock(), 2, 0, 0)
	record := func(id string, partition int, round int64, stage int) stream.Record {
		f := codec.Feedback{N: 1, Partition: partition, Round: round, ID: id, Epoch: 1, Actions: []string{"a"},
			Propensities: []float64{1}, OutcomePartition: -1, OutcomeOffset: -1, Context: []byte(`{}`), Stage: stage,
			Outcomes: []codec.Closed{{Name: "o", Fate: codec.Imputed, Value: 1, Partition: -1, Offset: -1}}}
		if stage == 0 {
			f.Fate = codec.Imputed
		}
		return stream.Record{Key: []byte(id), Value: codec.AppendFeedback(nil, &f)}
	}
	const stage = 3
	damaged := record("mine", 0, 5, 6)
	damaged.Value = damaged.Value[:len(damaged.Value)-1]
	others := []stream.Record{record("mine", 1, 5, 1), record("mine", 0, 4, 2), record("mine", 0, 5, stage),
		record("other", 0, 5, 4), record("other", 0, 5, 0), damaged}
	put("m.feedback", 0, others...)
	if err := x.findFeedback(t.Context()); err != nil || x.fedRec != nil || len(x.e.Named) != 1 ||
		x.e.Named[0].Stage != stage {
		t.Errorf("%v, %+v, %+v", err, x.fedRec, x.e.Named)
	}
	last := record("mine", 0, 5, 0)
	for i, r := range append(others, last) {
		x.e = &Explanation{}
		if x.tellStage(&r); len(x.e.Named) > 0 != (i+1 == stage) {
			t.Errorf("record %d: %+v", i, x.e.Named)
		}
	}
	put("m.feedback", 0, last)
	if err := x.findFeedback(t.Context()); err != nil || x.fedRec == nil || x.fedRec.Offset != int64(len(others)) {
		t.Errorf("%v, %+v", err, x.fedRec)
	}
}

// TestFindCut: feedback follows from the last cut before it, if no mark lies between them.
func TestFindCut(t *testing.T) {
	cut := func(n int64) stream.Record {
		return stream.Record{Type: codec.TypeCut, Value: codec.AppendCut(nil, &codec.Cut{Cut: n})}
	}
	mark, many := stream.Record{Type: codec.TypeMark}, make([]stream.Record, 100)
	for _, c := range []struct {
		before []stream.Record
		want   int64
	}{
		{nil, 0},
		{many, 0},
		{[]stream.Record{cut(7)}, 7},
		{[]stream.Record{cut(7), cut(8)}, 8},
		{[]stream.Record{mark, cut(7)}, 7},
		{[]stream.Record{cut(7), mark}, 0},
		{append([]stream.Record{cut(7)}, many...), 7},
		{append([]stream.Record{cut(7), mark}, many...), 0},
		{append([]stream.Record{cut(7)}, append(many, mark)...), 0},
	} {
		x, put := searched(t, clock(), 1, 0, 0)
		put("m.feedback", 0, c.before...)
		put("m.feedback", 0, stream.Record{}, cut(9))
		x.fedRec, x.e.Feedback = &stream.Record{Offset: int64(len(c.before))}, &feedback{}
		if err := x.findCut(t.Context()); err != nil || x.e.Feedback.Cut != c.want {
			t.Errorf("%d records, the last of type %q: cut %d, want %d; %v", len(c.before),
				append([]stream.Record{{}}, c.before...)[len(c.before)].Type, x.e.Feedback.Cut, c.want, err)
		}
	}
}

// broken is a log of which one reading fails.
type broken struct {
	stream.Log
	left int // readings until then
}

var errBroken = errors.New("broken")

func (l *broken) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	if l.left--; l.left == -1 {
		return nil, errBroken
	}
	return l.Log.Read(ctx, topic, partition, from)
}

// TestBrokenLog: whichever reading of the log fails, no explanation is given that lacks what would have been read.
func TestBrokenLog(t *testing.T) {
	w := newWorld(t, "window: 2 rounds\noutcomes: mean\n", 10)
	for i := range 12 {
		w.step(`c`)
		w.step(fmt.Sprintf(`o {"id":"r%d","loss":1}`, i))
	}
	w.step(`{"id":"r","actions":["a","b"]}`)
	c, failed := w.c, 1 // the first looks for how many partitions there are, which the topic says, too
	for ; ; failed++ {
		l := &broken{w.log, failed}
		c.Log = l
		e, err := Round(t.Context(), c, "r")
		if l.left >= 0 {
			if err != nil || e.Check != "identical" {
				t.Errorf("%v, %+v", err, e)
			}
			break
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("reading %d failed: %v, %+v", failed, err, e)
		}
	}
	if failed < 6 { // decisions, contexts, outcomes, rejects, feedback and snapshots
		t.Errorf("%d readings", failed)
	}
}
