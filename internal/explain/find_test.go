package explain

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hindsight/internal/join"
	"hindsight/internal/loop"
	"hindsight/internal/topics"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// counting is a log that counts the records that are read of each partition of a topic.
type counting struct {
	stream.Log
	read map[int]int
}

func (l *counting) Read(ctx context.Context, topic string, partition int, from int64) (stream.Reader, error) {
	r, err := l.Log.Read(ctx, topic, partition, from)
	return &counted{r, l.read, partition}, err
}

type counted struct {
	stream.Reader
	read      map[int]int
	partition int
}

func (r *counted) Next(ctx context.Context, dst []stream.Record) ([]stream.Record, error) {
	n := len(dst)
	dst, err := r.Reader.Next(ctx, dst)
	r.read[r.partition] += len(dst) - n
	return dst, err
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
}

// TestRejectsOfOthers: of a round of a unit the rejects of other rounds are not told.
func TestRejectsOfOthers(t *testing.T) {
	log := mem.New(mem.Options{Clock: clock()})
	if err := topics.Create(t.Context(), log, "m", 1, topics.Retention{}); err != nil {
		t.Fatal(err)
	}
	out, err := log.Writer(t.Context(), "m.rejects", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"mine", "other"} {
		r := codec.Reject{Topic: "outcomes", Offset: int64(i), ID: id, Reason: codec.ReasonLate,
			Bytes: fmt.Appendf(nil, `{"id":%q,"loss":0.5}`, id)}
		if _, err := out.Append(t.Context(),
			&stream.Record{Key: []byte(id), Value: codec.AppendReject(nil, &r)}); err != nil {
			t.Fatal(err)
		}
	}
	x := &explainer{Config: Config{Log: log}, topics: join.TopicsOf("m"), partitions: 1, e: &Explanation{},
		rec: &stream.Record{}, dec: codec.Decision{ID: "mine", Unit: "u"}}
	if err := x.findRejects(t.Context()); err != nil || len(x.e.Outcomes) != 1 || x.e.Outcomes[0].Offset != 0 {
		t.Errorf("%v, %+v", err, x.e.Outcomes)
	}
}
