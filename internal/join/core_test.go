package join

import (
	"context"
	"errors"
	"testing"
	"time"

	"hindsight/internal/intake"
	"hindsight/internal/loop"
	"hindsight/pkg/codec"
	"hindsight/pkg/stream"
	"hindsight/pkg/stream/mem"
)

// TestMemoryBeforeFrom holds that a restart reads no less than what lies behind the mark to which a
// mark goes back, though nothing need be remembered.
func TestMemoryBeforeFrom(t *testing.T) {
	var l markLog
	for i, cut := range []int64{0, 5, 9} {
		l.add(uint64(i+1), &codec.FeedbackMark{Cut: cut, Remembers: 1, Limits: codec.Limits{Heart: 1}})
		l.ack(uint64(i+1), int64(10*(i+1)))
	}
	m := codec.FeedbackMark{Cut: 12, Remembers: 1}
	if l.refer(&m, 3, loop.End); m.From != 10 || m.FromCut != 0 || m.Memory != 10 {
		t.Errorf("from %d of cut %d, memory %d; want 10 of cut 0, 10", m.From, m.FromCut, m.Memory)
	}
}

// asked is a log whose readers note whether they are to send on demand.
type asked struct {
	stream.Log
	onDemand map[string]bool // by topic; the topics that were not told are not in it
}

type askedReader struct {
	stream.Reader
	log   asked
	topic string
}

func (a asked) Read(_ context.Context, topic string, _ int, _ int64) (stream.Reader, error) {
	return askedReader{log: a, topic: topic}, nil
}

func (r askedReader) Position() int64  { return 0 }
func (r askedReader) OnDemand(on bool) { r.log.onDemand[r.topic] = on }

// TestSendAhead holds that decisions are sent ahead while outcomes come, and outcomes always.
func TestSendAhead(t *testing.T) {
	log := asked{onDemand: map[string]bool{}}
	c := &Core{chooser: &chooser{partitions: 1}}
	for _, topic := range []string{"decisions", "outcomes"} {
		in, err := intake.Open(t.Context(), log, topic, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.chooser.inputs = append(c.chooser.inputs, in)
	}
	at := time.Now()
	for _, x := range []struct {
		outcomes int
		after    time.Duration
		onDemand bool
	}{{0, 0, true}, {1, 0, false}, {0, calm, false}, {0, calm + 1, true}, {1, 2 * calm, false}} {
		c.sendAhead(x.outcomes, at.Add(x.after))
		if on, told := log.onDemand["decisions"]; !told || on != x.onDemand {
			t.Errorf("%+v: decisions on demand %v, told %v", x, on, told)
		}
	}
	if _, told := log.onDemand["outcomes"]; told {
		t.Error("outcomes may be late")
	}
}

// TestHoldsWhatIsDropped: what retention drops while it is looked for was there.
func TestHoldsWhatIsDropped(t *testing.T) {
	log := mem.New(mem.Options{})
	defer log.Close()
	if err := log.Create(t.Context(), "d", 1, stream.TopicOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := log.Writer(t.Context(), "d", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := w.Append(t.Context(), &stream.Record{Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	c := &Core{history: History{Topics: Topics{Decisions: "d"}, Partitions: 1}}
	c.cfg.Partitions = 1
	for _, x := range []struct {
		before int64
		want   bool
	}{{0, false}, {4, true}} {
		c.cfg.Log = eager{log, x.before}
		held, err := (&ledger{core: c}).holds(t.Context(), 0, taken{since: 3, next: 5, sum: 1})
		if err != nil || held != x.want {
			t.Errorf("before %d dropped: held %v, %v", x.before, held, err)
		}
	}
}

// eager is a log that drops records as soon as it has been asked what it keeps.
type eager struct {
	*mem.Log
	before int64
}

func (l eager) Bounds(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Bounds(ctx, topic, partition)
	return first, next, errors.Join(err, l.Truncate(topic, partition, l.before))
}

// TestPace: an outcome waits for the acknowledgement of the cut before it, 5 ms at most, and a decision without one
// 100 ms from when the first came, unless they are many.
func TestPace(t *testing.T) {
	c := &Core{chooser: newChooser(nil, loop.NewJoiner(0, codec.Limits{Heart: loop.Heart}, 1, nil), 0)}
	at := time.Now()
	c.cutAt = at
	for i, x := range []struct {
		outcomes, decisions int
		acked               uint64
		after, want         time.Duration // ms
	}{
		{0, 0, 7, 0, -1}, {0, 1, 7, 0, 100}, {0, 2, 7, 40, 60}, {0, 2, 7, 100, 0}, {0, 2, 7, 150, 0},
		{0, 0, 7, 150, -1}, {0, 1, 7, 200, 100}, {0, manyDecisions - 1, 7, 200, 100}, {0, manyDecisions, 7, 200, 0},
		{1, 0, 7, 201, 0}, {1, 0, 8, 2, 0}, {1, 0, 6, 2, 3}, {1, 9, 6, 4, 1}, {1, 0, 6, 5, 0}, {1, 0, 6, 9, 0},
	} {
		c.cutSeq = 7
		c.acked.Store(x.acked)
		want := x.want
		if want > 0 {
			want *= time.Millisecond
		}
		if got := c.pace(x.outcomes, x.decisions, at.Add(x.after*time.Millisecond)); got != want {
			t.Errorf("%d: %+v: wait %v", i, x, got)
		}
	}
	if c.acked.Store(6); c.pace(1, 0, time.Time{}) != 0 || c.pace(0, 1, time.Time{}) != 0 {
		t.Error("a simulation waits")
	}
}

// TestAcknowledged: rejects are stored once their cut is, the owner is woken once by the acknowledgement for which it
// waits, and an append that failed ends the joiner.
func TestAcknowledged(t *testing.T) {
	log, ctx, woken, told := mem.New(mem.Options{}), t.Context(), 0, ""
	no(t, log.Create(ctx, "r", 1, stream.TopicOptions{}))
	c := &Core{cfg: Config{Topics: Topics{Feedback: "f", Rejects: "r"}, Wake: func() { woken++ }}}
	c.cfg.Hooks.Append = func(topic string, _ error) { told += topic }
	var err error
	c.rejects, err = log.Writer(ctx, "r", 0, nil)
	no(t, err)
	for seq := range uint64(3) {
		c.ready.Rejects = []codec.Reject{{Topic: "outcomes", Reason: codec.ReasonOrphan, Bytes: make([]byte, 10)}}
		no(t, c.queueRejects(ctx, seq+1))
	}
	c.cutSeq = 2
	for _, x := range []struct {
		seq           uint64
		stored, woken int
	}{{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 1}} {
		if x.seq > 0 {
			c.ack(x.seq, int64(x.seq), nil)
		}
		no(t, c.rest(ctx))
		if _, stored, err := log.Bounds(ctx, "r", 0); err != nil || int(stored) != x.stored || woken != x.woken ||
			len(c.queue) != 3-x.stored || c.queued != 10*len(c.queue) {
			t.Errorf("%+v: %d stored, woken %d times, %d wait, of %d bytes", x, stored, woken, len(c.queue), c.queued)
		}
	}
	broken := errors.New("broken")
	for range 2 {
		c.ack(4, -1, broken)
	}
	if _, _, err := c.Step(ctx, time.Time{}); err != broken || c.acked.Load() != 3 || woken != 2 || told != "ff" {
		t.Errorf("%v, acknowledged %d, woken %d times, told of %s", err, c.acked.Load(), woken, told)
	}
}
