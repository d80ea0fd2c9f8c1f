package service

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hindsight/internal/follow"
	"hindsight/internal/join"
	"hindsight/internal/watch"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/embedded"
	"hindsight/pkg/stream/kafka"
	"hindsight/pkg/stream/kafkatest"
	"hindsight/pkg/stream/mem"
)

// visited is a system on some log, stepped by hand, where somebody else writes, too.
type visited struct {
	*testing.T
	log    stream.Log
	topics join.Topics
	reg    *prometheus.Registry
	told   bytes.Buffer
	jc     SystemConfig
	dc     SystemConfig
	j      *Joiner
	d      *Decider
	rounds int
	fenced int
}

func newVisited(t *testing.T, log stream.Log) *visited {
	v := &visited{T: t, log: log, topics: createTopics(t, log, "m", 1), reg: prometheus.NewRegistry()}
	logger, m := slog.New(slog.NewTextHandler(&v.told, nil)), watch.NewMetrics(v.reg, nil)
	v.jc = SystemConfig{Log: log, Source: &follow.Source{Name: "m", Version: 1, Model: []byte("x")}, Build: testBuild,
		Partitions: 1, MaxPending: 1000, Dedup: 100, MarkEvery: 10, Logger: logger, Metrics: m}
	v.dc = SystemConfig{Log: log, Name: "m", Build: testBuild, Seed: []byte("seed"), Partitions: 1, Dedup: 100,
		MaxInFlight: 100, SnapshotEvery: 7, Owner: "test", Logger: logger, Metrics: m}
	v.open()
	t.Cleanup(func() { v.shut() })
	return v
}

func (v *visited) open() {
	v.Helper()
	var err error
	v.j, err = OpenJoiner(v.Context(), v.jc)
	must(v.T, 0, err)
	v.d, err = OpenDecider(v.Context(), v.dc)
	must(v.T, 0, err)
}

func (v *visited) shut() {
	v.j.Close()
	v.d.Close()
}

func (v *visited) write(topic string, r stream.Record) {
	v.Helper()
	w, err := v.log.Writer(v.Context(), topic, 0, nil)
	must(v.T, 0, err)
	defer w.Close()
	_, err = w.Append(v.Context(), &r)
	must(v.T, 0, err)
	must(v.T, 0, w.Flush(v.Context()))
}

// settle steps until nothing is left to do, or a part has failed.
func (v *visited) settle() error {
	ctx := v.Context()
	for {
		b1, err1 := v.d.StepFeedback(ctx, 0)
		b2, err2 := v.d.StepContexts(ctx, 10)
		err3 := v.d.out.Flush(ctx)
		b4, err4 := v.j.Step(ctx)
		err5 := v.j.core.Flush(ctx)
		if err := errors.Join(err1, err2, err3, err4, err5, v.d.Err(), v.d.WriteSnapshots(ctx)); err != nil {
			return err
		}
		if !b1 && !b2 && !b4 {
			return nil
		}
	}
}

// play lets rounds come, and then their outcomes.
func (v *visited) play(n int) {
	v.Helper()
	from := v.rounds
	for ; v.rounds < from+n; v.rounds++ {
		v.write(v.topics.Contexts,
			stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","features":{"x":%d},"actions":["a","b"]}`, v.rounds,
				v.rounds%5)})
	}
	v.work()
	for i := from; i < v.rounds; i++ {
		v.write(v.topics.Outcomes, stream.Record{Value: fmt.Appendf(nil, `{"id":"c%d","loss":0.5}`, i)})
	}
	v.work()
}

// work settles. Who is fenced opens again, as in a process.
func (v *visited) work() {
	v.Helper()
	for range 3 { // the joiner and the decider
		err := v.settle()
		if err == nil {
			return
		}
		if !errors.Is(err, stream.ErrFenced) {
			v.Fatal(err)
		}
		v.fenced++
		v.shut()
		v.open()
	}
	v.Fatal("fenced again and again")
}

// strange are records of others. Who follows decisions parses the first three of them, who
// follows feedback all but the mark and the last.
func strange() []stream.Record {
	return []stream.Record{
		{Value: []byte(`{"id":"c1","loss":0}`)},
		{Value: []byte("not a record"), Key: []byte("c1")},
		{Type: codec.TypeMark, Value: []byte(`{}`)},
		{Type: codec.TypeClass, Value: []byte{0x80}},
		{Type: codec.TypeEpoch, Value: []byte("epoch")},
		{Type: "of others"},
	}
}

// TestForeignRecords: whatever somebody else writes into decisions or feedback, live or
// while nobody is at work, is passed over, counted and told. The owner whose fence rests on
// the log's end sees it, opens again and goes on; nothing is lost.
func TestForeignRecords(t *testing.T) {
	engines := map[string]func(t *testing.T) stream.Log{"mem": func(*testing.T) stream.Log {
		return mem.New(mem.Options{})
	}}
	if !testing.Short() {
		engines["embedded"] = func(t *testing.T) stream.Log {
			e, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Port: -1})
			must(t, 0, err)
			t.Cleanup(func() { e.Close() })
			return e.Log()
		}
		engines["kafka"] = func(t *testing.T) stream.Log {
			addrs, _ := kafkatest.Fake(t, 1)
			c, err := kafka.Dial(t.Context(), kafka.Options{Brokers: addrs})
			must(t, 0, err)
			t.Cleanup(func() { c.Close() })
			return c.Log()
		}
	}
	for engine, open := range engines {
		for _, topic := range []string{"decisions", "feedback"} {
			t.Run(engine+"/"+topic, func(t *testing.T) {
				t.Parallel()
				v := newVisited(t, open(t))
				at := map[string]string{"decisions": v.topics.Decisions, "feedback": v.topics.Feedback}[topic]
				v.visits(at, map[string]float64{"decisions": 3, "feedback": 4}[topic])
				if engine == "embedded" && v.fenced == 0 {
					t.Error("the owner did not see that somebody else wrote")
				}
				v.whole()
			})
		}
	}
}

// visits plants records between rounds, at work and at rest, of which so many are parsed.
func (v *visited) visits(topic string, parsed float64) {
	v.Helper()
	v.play(3)
	for _, r := range strange() {
		v.write(topic, r)
	}
	v.play(3)
	count := v.counted()
	if count < parsed {
		v.Errorf("%v foreign records counted of %v", count, parsed)
	}
	if told := strings.Count(v.told.String(), "did not write is passed over"); told == 0 || told > 1+2*v.fenced {
		v.Errorf("told %d times:\n%s", told, v.told.String())
	}
	v.shut()
	for _, r := range strange() {
		v.write(topic, r)
	}
	v.open()
	v.play(10)
	if got := v.counted(); got < count+parsed {
		v.Errorf("%v foreign records counted, %v of them before the restart, of 2×%v", got, count, parsed)
	}
}

func (v *visited) counted() float64 { return scrape(v.T, v.reg)["hindsight_foreign_records_total"] }

// whole holds that every round is decided once, released once and learned, and that one who
// begins anew learns the same.
func (v *visited) whole() {
	v.Helper()
	var d codec.Decision
	n := int64(0)
	_, end, err := v.log.Bounds(v.Context(), v.topics.Decisions, 0)
	must(v.T, 0, err)
	must(v.T, 0, stream.Scan(v.Context(), v.log, v.topics.Decisions, 0, stream.Earliest, end,
		func(r *stream.Record) error {
			if r.Type == "" && codec.ParseDecision(&d, r.Value) == nil {
				if n++; d.N != n || d.ID != fmt.Sprintf("c%d", n-1) {
					v.Errorf("decision %d is of %s, as number %d", d.N, d.ID, n)
				}
			}
			return nil
		}))
	if n != int64(v.rounds) || v.d.follower.Replica().LearnedThrough() != n || v.j.Heart().LastN() != n {
		v.Errorf("%d of %d rounds decided, %d released, %d learned", n, v.rounds, v.j.Heart().LastN(),
			v.d.follower.Replica().LearnedThrough())
	}
	want, err := v.d.AppendState(nil)
	must(v.T, 0, err)
	a := follow.New(v.log, "m", testBuild, 1)
	_, end, err = v.log.Bounds(v.Context(), v.topics.Feedback, 0)
	must(v.T, 0, err)
	must(v.T, 0, stream.Scan(v.Context(), v.log, v.topics.Feedback, 0, stream.Earliest, end,
		func(r *stream.Record) error {
			return a.Take(v.Context(), r)
		}))
	if got, err := a.AppendState(nil); err != nil || !bytes.Equal(got, want) {
		v.Errorf("who begins anew has another learner: %v", err)
	}
}

// TestForeignNewer: what a later program wrote stops everybody by name, for it may matter.
func TestForeignNewer(t *testing.T) {
	newer := []byte{0x81, 0xa1, 'v', 0x63} // {"v": 99}
	for _, topic := range []string{"decisions", "feedback"} {
		v := newVisited(t, mem.New(mem.Options{}))
		v.play(3)
		at := map[string]string{"decisions": v.topics.Decisions, "feedback": v.topics.Feedback}[topic]
		v.write(at, stream.Record{Value: newer})
		if err := v.settle(); !errors.Is(err, codec.ErrVersion) || !fatal(err) {
			t.Errorf("in %s: %v", topic, err)
		}
		j, err := OpenJoiner(t.Context(), v.jc)
		if err == nil {
			_, err = j.Step(t.Context())
			j.Close()
		}
		d, err2 := OpenDecider(t.Context(), v.dc)
		if err2 == nil {
			d.Close()
		}
		if !errors.Is(err, codec.ErrVersion) || !errors.Is(err2, codec.ErrVersion) {
			t.Errorf("in %s, after a restart: joiner %v, decider %v", topic, err, err2)
		}
		if n := v.counted(); n > 0 {
			t.Errorf("in %s: %v foreign records", topic, n)
		}
	}
}
